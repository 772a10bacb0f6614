package rollback

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// This file says which revision of a parent is good: known to have worked. Nothing else makes a revision good, no
// annotation in particular: who may create a revision may annotate it.

// LastGood is the type of the condition that names the last good revision of a parent and the one before it. It is
// absent while none is known.
const LastGood = "LastGood"

// allAvailable is the reason of [LastGood].
const allAvailable = "AllAvailable"

// Revision identifies a revision. Its data never changes, so that name and UID stand for its content. The zero value is
// none.
type Revision struct {
	Name string
	UID  types.UID
}

// IsZero reports whether r is none.
func (r Revision) IsZero() bool { return r.Name == "" || r.UID == "" }

// String names it: name/UID.
func (r Revision) String() string { return r.Name + "/" + string(r.UID) }

// Good are the last good revision of a parent and the one before it. A revision is good once the controller has
// observed that more than zero children were desired, and that all of them were updated to it and available. The zero
// value says that none is known.
type Good struct {
	Last, Before Revision
}

// Observed returns what is good after current was observed: complete says that all desired children come from it and
// have been available for minReadySeconds, available how many are, of desired.
//
// A revision that lost all its children gives way to the one before it: an edit that follows does not go back to what
// works no more. It is the last good one again when all of them are available.
func (g Good) Observed(current Revision, complete bool, available, desired int) Good {
	switch {
	case current.IsZero() || desired <= 0:
		return g
	case complete && available >= desired && g.Last != current:
		return Good{Last: current, Before: g.otherThan(current)}
	case available <= 0 && g.Last == current && !g.Before.IsZero():
		return Good{Last: g.Before, Before: g.Last}
	default:
		return g
	}
}

// otherThan is the last good revision but one.
func (g Good) otherThan(current Revision) Revision {
	if g.Last.Name == current.Name { // it was deleted and recorded again
		return g.Before
	}
	return g.Last
}

// Target is the revision to which a failed rollout goes back: the last good one but failed, the name of that to which
// it goes. It is zero if none is known.
func (g Good) Target(failed string) Revision {
	if g.Last.Name == failed {
		return g.Before
	}
	return g.Last
}

// Names are the names of both, for what keeps them from being deleted.
func (g Good) Names() []string {
	var out []string
	for _, r := range []Revision{g.Last, g.Before} {
		if !r.IsZero() {
			out = append(out, r.Name)
		}
	}
	return out
}

// Condition is [LastGood], nil if none is known. at is its transition time if it is new.
func (g Good) Condition(at metav1.Time) *metav1.Condition {
	if g.Last.IsZero() {
		return nil
	}
	message := "revision=" + g.Last.String()
	if !g.Before.IsZero() {
		message += " before=" + g.Before.String()
	}
	return &metav1.Condition{Type: LastGood, Status: metav1.ConditionTrue, Reason: allAvailable, Message: message, LastTransitionTime: at}
}

// GoodOf reads what the status of a parent says: see [Good.Condition].
func GoodOf(parent runtime.Object) Good {
	c := stored(parent, LastGood)
	if c.Reason != allAvailable || c.Status != metav1.ConditionTrue {
		return Good{}
	}
	values := valuesOf(c.Message)
	return Good{Last: revisionOf(values["revision"]), Before: revisionOf(values["before"])}
}

func revisionOf(text string) Revision {
	name, uid, _ := strings.Cut(text, "/")
	if r := (Revision{name, types.UID(uid)}); !r.IsZero() {
		return r
	}
	return Revision{}
}
