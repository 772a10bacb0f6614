package verify

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
)

// This file says what is wrong with revisions and with what belongs to them: what somebody planted, restored from a
// backup or left behind. It decides by what was read; verifyread.go reads, and repair.go carries fixes out.

// What can be wrong. Scripts read these words.
const (
	// OrphanRevision is a revision that no object controls.
	OrphanRevision = "OrphanRevision"
	// ParentGone is a revision, or a child, whose controller does not exist any more.
	ParentGone = "ParentGone"
	// SameContent is a revision that another one repeats.
	SameContent = "SameContent"
	// SameNumber is a number that several revisions have.
	SameNumber = "SameNumber"
	// NotIntact is a revision whose name does not go with its content.
	NotIntact = "NotIntact"
	// Unreadable is a revision whose content cannot be read.
	Unreadable = "Unreadable"
	// NoRevision are children that come from no revision of the history.
	NoRevision = "NoRevision"
	// NoControllerRef is an object that names its creator in an annotation of old clusters, and has no ControllerRef.
	NoControllerRef = "NoControllerRef"
)

// Problem is something that is wrong and that no controller puts right by itself, or has not yet.
type Problem struct {
	// Reason is one of the words above.
	Reason string
	// Object is what it is about.
	Object object.Parent
	// Message says what is wrong with the object, and what to do if there is no fix.
	Message string
	// Fix is what [Repair] would do, nil if nothing can be done without knowing more.
	Fix *Fix
}

// Fix is one write that puts a problem right.
type Fix struct {
	// Message says what is done and why nothing is lost by it.
	Message string

	object client.Object
	adopt  *metav1.OwnerReference // nil: the object is deleted
}

// check returns what is wrong with the log of one parent.
func check(r *inspect.Log) []Problem {
	h := r.History()
	var out []Problem
	say := func(reason string, e inspect.Entry, fix *Fix, format string, args ...any) {
		out = append(out, Problem{Reason: reason, Object: h.Holder(e), Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	for n, e := range h.Entries {
		if e.Unreadable != nil {
			say(Unreadable, e, nil, "%s of %s can be neither shown nor restored: %v. It is kept; delete it by hand if nothing was made from it.",
				object.Capital(e.String()), h.Parent, e.Unreadable)
		}
		if doubt, _ := e.Origin(); doubt != "" {
			say(NotIntact, e, nil, "%s Nothing is done about it: if its origin is not known, delete it by hand.", doubt)
		}
		if n > 0 && e.Number > 0 && h.Entries[n-1].Number == e.Number {
			say(SameNumber, e, nil, "Revisions %s and %s of %s both have number %d, so which one is newer is not known; select them by name.",
				h.Entries[n-1].Name, e.Name, h.Parent, e.Number)
		}
	}
	out = append(out, repeated(r, h)...)
	if r.Strays > 0 {
		out = append(out, Problem{Reason: NoRevision, Object: h.Parent, Message: fmt.Sprintf(
			"Of the %s of %s, %d come from no revision of its history, and cannot be recreated as they are. The next rollout replaces them.",
			r.Children, h.Parent, r.Strays)})
	}
	return out
}

// repeated returns the revisions that repeat another one. Which of two equal ones goes is for the controller to decide,
// too: the one that is not the update revision. It goes only if no child belongs to it.
func repeated(r *inspect.Log, h *inspect.History) []Problem {
	if r.Resolution == nil {
		return nil
	}
	var out []Problem
	for _, d := range r.Resolution.Duplicates {
		n := slices.IndexFunc(h.Entries, func(e inspect.Entry) bool { return e.UID == d.Revision.UID })
		if n < 0 {
			continue
		}
		e := h.Entries[n]
		p := Problem{Reason: SameContent, Object: h.Holder(e)}
		p.Message = fmt.Sprintf("%s of %s repeats %s.", object.Capital(e.String()), h.Parent, object.RevisionName(d.Of.Number, d.Of.Name))
		switch {
		case e.Children > 0:
			p.Message += fmt.Sprintf(" It is kept, because %s belong to it: %d, until its controller relabels them.", r.Children, e.Children)
		case r.Counts == nil:
			p.Message += " It is kept: what belongs to it could not be counted."
		default:
			p.Fix = &Fix{
				Message: fmt.Sprintf("delete %s: %s has the same content, and nothing belongs to it", p.Object, d.Of.Name),
				object:  r.Revisions[n].Object,
			}
		}
		out = append(out, p)
	}
	return out
}

// orphaned is the problem of a revision without a controller.
func orphaned(o client.Object, name object.Parent) Problem {
	labels := make([]string, 0, len(o.GetLabels()))
	for key, value := range o.GetLabels() {
		labels = append(labels, key+"="+value)
	}
	slices.Sort(labels)
	return Problem{Reason: OrphanRevision, Object: name, Message: fmt.Sprintf(
		"No object controls it. A controller whose parent selects its labels (%s) adopts it, as after a deletion with --cascade=orphan; "+
			"if there is none, nothing ever deletes it: look at it, and delete it by hand.", strings.Join(labels, ", "))}
}

// abandoned is the problem of a revision whose controller is gone. The garbage collector would delete it as well.
func abandoned(o client.Object, name object.Parent, ref *metav1.OwnerReference, other bool) Problem {
	why := "does not exist"
	if other {
		why = "was deleted, and another one of this name exists"
	}
	return Problem{
		Reason: ParentGone, Object: name,
		Message: fmt.Sprintf("%s %s with UID %s, which controls it, %s.", ref.Kind, ref.Name, ref.UID, why),
		Fix:     &Fix{Message: fmt.Sprintf("delete %s, as the garbage collector would", name), object: o},
	}
}
