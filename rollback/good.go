package rollback

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// This file decides which revisions of a parent are good: known to have worked. Annotations do not count, because a
// user who may create a revision may annotate it.

// LastGood is the type of the condition that names the last good revision of a parent and the one before it. It is
// absent while none is known.
const LastGood = "LastGood"

// allAvailable is the reason of [LastGood].
const allAvailable = "AllAvailable"

// Revision identifies a revision. The data of a revision is immutable, so name and UID pin its content. The zero value
// means no revision.
type Revision struct {
	Name string
	UID  types.UID
}

// IsZero reports whether r identifies no revision.
func (r Revision) IsZero() bool { return r.Name == "" || r.UID == "" }

// String returns name/UID.
func (r Revision) String() string { return r.Name + "/" + string(r.UID) }

// Good holds the last good revision of a parent and the previous one. A revision is good once the controller has
// observed that more than zero children were desired, and that all of them were updated to it and available. The zero
// value means that no good revision is known.
type Good struct {
	Last, Before Revision
	// Down is the time since which Last has had no available child, in whole seconds; zero if it has one.
	Down time.Time
}

// downFor is the time without an available child after which a revision has stopped working. A replaced child is back
// before that.
const downFor = time.Minute

// Observed returns the good revisions after an observation of current. complete means that all desired children come
// from current and have been available for minReadySeconds; available counts the available ones.
//
// If the last good revision had no available child for a minute when another revision is rolled out, the previous one
// takes its place. A later rollback must not go to a revision that stopped working. Once all its children are available
// again, it is the last good one again.
func (g Good) Observed(current Revision, complete bool, available, desired int, now time.Time) Good {
	down := g.Down
	g.Down = time.Time{}
	switch {
	case current.IsZero():
		g.Down = down
	case desired <= 0:
	case complete && available >= desired && g.Last != current:
		return Good{Last: current, Before: g.otherThan(current)}
	case g.Last == current && available <= 0:
		if g.Down = down; down.IsZero() {
			g.Down = now.UTC().Truncate(time.Second)
		}
	case g.Last != current && !down.IsZero() && now.Sub(down) >= downFor && !g.Before.IsZero():
		return Good{Last: g.Before, Before: g.Last}
	}
	return g
}

// otherThan returns the last good revision that is not current.
func (g Good) otherThan(current Revision) Revision {
	if g.Last.Name == current.Name { // it was deleted and recorded again
		return g.Before
	}
	return g.Last
}

// Target returns the revision to roll back to after the rollout to the revision named failed: the last good one. It is
// zero if none is known. It is also zero if that is the failed one: a user went back to it, and its children may only
// be slow.
func (g Good) Target(failed string) Revision {
	if g.Last.Name == failed {
		return Revision{}
	}
	return g.Last
}

// Includes reports whether a revision is one of both.
func (g Good) Includes(uid types.UID) bool {
	return uid != "" && (uid == g.Last.UID || uid == g.Before.UID)
}

// Names returns the names of both, which truncation keeps.
func (g Good) Names() []string {
	var out []string
	for _, r := range []Revision{g.Last, g.Before} {
		if !r.IsZero() {
			out = append(out, r.Name)
		}
	}
	return out
}

// Condition returns the condition [LastGood], nil if no good revision is known. at is its transition time.
func (g Good) Condition(at metav1.Time) *metav1.Condition {
	if g.Last.IsZero() {
		return nil
	}
	message := "revision=" + g.Last.String()
	if !g.Before.IsZero() {
		message += " before=" + g.Before.String()
	}
	if !g.Down.IsZero() {
		message += " down=" + g.Down.Format(time.RFC3339)
	}
	return &metav1.Condition{Type: LastGood, Status: metav1.ConditionTrue, Reason: allAvailable, Message: message, LastTransitionTime: at}
}

// GoodOf parses the condition [LastGood] of a parent.
func GoodOf(parent runtime.Object) Good { return GoodIn(stored(parent, LastGood)) }

// GoodIn parses the condition [LastGood]. It is zero for a condition that this package did not write.
func GoodIn(c metav1.Condition) Good {
	if c.Reason != allAvailable || c.Status != metav1.ConditionTrue {
		return Good{}
	}
	values := valuesOf(c.Message)
	down, _ := time.Parse(time.RFC3339, values["down"]) // zero if there is none
	return Good{Last: revisionOf(values["revision"]), Before: revisionOf(values["before"]), Down: down}
}

func revisionOf(text string) Revision {
	name, uid, _ := strings.Cut(text, "/")
	if r := (Revision{name, types.UID(uid)}); !r.IsZero() {
		return r
	}
	return Revision{}
}
