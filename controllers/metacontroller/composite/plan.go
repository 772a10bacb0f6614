package composite

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/rollout"
)

// This file is what one pass is about to do with the children, and what follows from that for the parent. planner.go
// makes it.

// plan is what one pass does, and what it found out.
type plan struct {
	// belongsTo says which revision each child of a rolling kind belongs to from now on. It is stored before any child is
	// touched.
	belongsTo map[metacontroller.Child]string
	// held are the children that partition or paused keep at another revision than the newest, and stranded those of them
	// whose revision is lost. Those are left as they are, and not recreated.
	held     metacontroller.Held
	stranded []heldAtLostRevision
	creates  []creation
	updates  []update
	deletes  []deletion
	// waits says what the rollout waits for, in the order of the hook's answer.
	waits []rollout.Wait
	// total counts the desired children, updated those that are what the newest revision asks for, serving those that are
	// available, and keeping those that partition, paused or OnDelete keep at something else. done is how far the rollout
	// is.
	total, updated, serving, keeping int
	// unproven is as in [pass.Rollout].
	unproven bool
	done     rollout.Progress
	// compareErrs says which children could not be compared, and why. They stay as they are.
	compareErrs []error
	// again is when to requeue even if no event comes; zero means never.
	again time.Duration
	// asks are the older revisions for which the hook has to be called first. While there are any, nothing else in the
	// plan is valid.
	asks []string
}

type creation struct {
	key      metacontroller.Child
	object   *unstructured.Unstructured
	revision string
	reason   string
}

type update struct {
	key              metacontroller.Child
	observed, object *unstructured.Unstructured
	// newest says that the newest revision wants the object.
	newest bool
	reason string
}

type deletion struct {
	key      metacontroller.Child
	observed *unstructured.Unstructured
	// instead is what is to replace it, made from revision, nil if nothing is.
	instead  *unstructured.Unstructured
	revision string
	reason   string
}

// heldAtLostRevision is a child that is held at a revision from which nothing can be created, for that reason. The
// revision is empty if none lists the child.
type heldAtLostRevision struct {
	key              metacontroller.Child
	revision, reason string
	// missing says that the child does not exist.
	missing bool
}

// writes reports whether any child is written.
func (p *plan) writes() bool { return len(p.creates) > 0 || p.replaces() }

// replaces reports whether an existing child is changed or deleted.
func (p *plan) replaces() bool { return len(p.updates)+len(p.deletes) > 0 }

// touches reports whether an existing child of that kind is changed or deleted.
func (p *plan) touches(kind schema.GroupKind) bool {
	return slices.ContainsFunc(p.updates, func(u update) bool { return u.key.GroupKind == kind }) ||
		slices.ContainsFunc(p.deletes, func(d deletion) bool { return d.key.GroupKind == kind })
}

// complete reports whether every child is what the newest revision asks for and passes its checks, and there is no
// other (R4).
func (p *plan) complete() bool {
	return p.updated == p.total && p.serving == p.total && !p.writes()
}

// note remembers what the plan changes in place, and forgets all of it once the rollout is over.
func (p *plan) note(c changes, now time.Time) {
	if p.complete() {
		clear(c)
	}
	for _, u := range p.updates {
		c[u.observed.GetUID()] = now
	}
}

// condition is the condition Updated of the parent that follows from a plan: its status, and reason and message in
// Metacontroller's words.
func (p *plan) condition(newest string) (status, reason, message string) {
	switch {
	case p.complete() && newest == "": // its children are not rolled, but those of another controller are
		return "True", "ChildrenUpdated", "all children are what the hook wants"
	case p.complete():
		return "True", "OnLatestRevision", "latest ControllerRevision: " + newest
	case len(p.stranded) > 0:
		return "False", revisionLost, p.strandedMessage()
	case len(p.updates) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("updating %s", p.updates[0].key)
	case len(p.deletes) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("updating %s", p.deletes[0].key)
	case len(p.creates) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("creating %s", p.creates[0].key)
	case len(p.waits) > 0:
		return "False", "RolloutWaiting", p.waits[0].Unit + ": " + p.waits[0].Reason
	}
	message = fmt.Sprintf("%d of %d children updated, %d available", p.updated, p.total, p.serving)
	if p.keeping > 0 {
		message += fmt.Sprintf("; %d are held by the strategy", p.keeping)
	}
	return "False", "RolloutWaiting", message
}

// revisionLost is the reason of the condition Updated while children are held at a lost revision.
const revisionLost = "RevisionLost"

// strandedMessage says which child is held at what, and what a user can do about it. It is empty if none is.
func (p *plan) strandedMessage() string {
	if len(p.stranded) == 0 {
		return ""
	}
	first := p.stranded[0]
	who, does, held := first.key.String(), "is", "it"
	if more := len(p.stranded) - 1; more > 0 {
		who, does, held = fmt.Sprintf("%s and %d more", who, more), "are", "they"
	}
	at := "although no revision says what it was made from"
	if first.revision != "" {
		at = fmt.Sprintf("at ControllerRevision %s, %s", first.revision, first.reason)
	}
	left := held + " " + does + " left alone"
	if i := slices.IndexFunc(p.stranded, func(s heldAtLostRevision) bool { return s.missing }); i >= 0 {
		left = fmt.Sprintf("%s is missing and is not made from another revision", p.stranded[i].key)
	}
	return fmt.Sprintf("%s %s held by partition or paused, %s; %s. To go on, restore that ControllerRevision, "+
		"or lower partition and end the pause so that the newest revision takes its place", who, does, at, left)
}
