package revision_test

// A short notation for the tests of Resolve: contents by letter, revisions in one line, resolutions as one sentence.

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/revision"
)

// app is the smallest kind that can tell all stories.
type app struct {
	Spec struct {
		Image  string   `json:"image"`
		Args   []string `json:"args,omitempty"`
		Policy string   `json:"policy,omitempty"`
	} `json:"spec"`
}

var appTarget = func() *revision.Target {
	target, err := revision.FieldPaths(revision.Typed[app](), revision.Path{"spec"})
	if err != nil {
		panic(err)
	}
	return target
}()

// spelling returns the data of a content: an image, and after it what is odd about the data.
//
//	A   {"spec":{"image":"A"}}
//	A~  the same in other bytes (E1)
//	A!  the same once today's type has seen it (E2)
//	A+  the same for an API server that fills in the policy (E3)
//	A^  another content, which could differ by a default only
func spelling(content string) string {
	image, odd := content[:1], content[1:]
	switch odd {
	case "~":
		return fmt.Sprintf(` {"spec":{"creationTimestamp":null,"image":%q}}`, image)
	case "!":
		return fmt.Sprintf(`{"spec":{"gone":1,"image":%q}}`, image)
	case "+":
		return fmt.Sprintf(`{"spec":{"image":%q,"policy":"Always"}}`, image)
	case "^":
		return fmt.Sprintf(`{"spec":{"args":["x"],"image":%q}}`, image)
	default:
		return fmt.Sprintf(`{"spec":{"image":%q}}`, image)
	}
}

const (
	parentUID = types.UID("parent")
	otherUID  = types.UID("other")
)

type option func(*revision.Revision)

// at stamps with the parent and a generation, by with another UID.
func at(generation int64) option { return by(parentUID, generation) }

func by(uid types.UID, generation int64) option {
	return func(r *revision.Revision) { r.Stamp = revision.Stamp{ParentUID: uid, Generation: generation} }
}

func deleting(r *revision.Revision)   { r.Deleting = true }
func unlabelled(r *revision.Revision) { r.Unlabelled = true }

// stored is a revision in the log; the content "?" is one that cannot be decoded.
func stored(name string, number int64, content string, options ...option) revision.Revision {
	r := revision.Revision{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Number: number, Hash: "hash-" + name,
	}
	if content == "?" {
		r.Err = errors.New("unreadable")
	} else {
		var err error
		if r.Snapshot, err = appTarget.Decode([]byte(spelling(content))); err != nil {
			panic(err)
		}
	}
	for _, o := range options {
		o(&r)
	}
	return r
}

// parent is one read of the parent.
func parent(content string, generation int64) revision.ParentState {
	s, err := appTarget.Decode([]byte(spelling(content)))
	if err != nil {
		panic(err)
	}
	return revision.ParentState{UID: parentUID, Generation: generation, Snapshot: s, Generational: true}
}

// tell says all that a resolution holds, the reason excepted, and leaves out what is not there.
func tell(res *revision.Resolution) string {
	var out strings.Builder
	out.WriteString(string(res.Change))
	if res.Update != nil {
		fmt.Fprintf(&out, " %s by %s", res.Update.Name, res.Rule)
	}
	if res.Change == revision.NoChange || res.Change == revision.Rollback || res.Change == revision.RollForward {
		fmt.Fprintf(&out, ", number %d", res.Number)
	}
	if res.Renumber() {
		fmt.Fprintf(&out, " (was %d)", res.Update.Number)
	}
	if res.Restamp() || res.Change == revision.RollForward {
		fmt.Fprintf(&out, ", stamp %s@%d", res.Stamp.ParentUID, res.Stamp.Generation)
	}
	list := func(what string, revisions []revision.Revision) {
		if len(revisions) > 0 {
			fmt.Fprintf(&out, ", %s %s", what, strings.Join(names(revisions), " "))
		}
	}
	list("relabel", res.Relabel)
	for _, d := range res.Duplicates {
		fmt.Fprintf(&out, ", %s repeats %s", d.Revision.Name, d.Of.Name)
	}
	list("ask about", res.Ask)
	list("cannot read", res.Undecodable)
	return out.String()
}
