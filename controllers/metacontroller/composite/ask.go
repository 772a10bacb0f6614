package composite

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file calls the hooks, and prepares their answers for plans.

// selectorMismatch is the reason for a child that its parent could never claim.
const selectorMismatch = "SelectorMismatch"

// relatedObjects are the objects that a customize hook wants sync and finalize to get.
type relatedObjects interface {
	GatherFor(ctx context.Context, q *hook.Question) ([]hook.Group, error)
	Forget(parent types.UID)
}

// asker calls the hooks of one CompositeController.
type asker struct {
	*settings

	// sync is always there; finalize is nil if it is not declared.
	sync, finalize hook.Asker
	related        relatedObjects
	resync         watching.Resyncs
}

// prepared is an answer that is ready for plans. It is kept with the answer itself, so that both are dropped when the
// memory of answers is full. What is remembered beside that has no objects.
type prepared struct {
	parent   types.UID
	revision string
	wanted   wanted
}

// question is what the hook gets for a parent as it is.
func (o *gathered) question(children []hook.Group) *hook.Question {
	return &hook.Question{Parent: o.parent, Version: o.memory.version.of(o.parent), Children: children}
}

// ask calls the hook that the parent's state calls for. Without a finalize hook, sync is called until the parent is
// deleted: while another controller's finalizer holds a parent, the status of sync's answer is written.
func (r *asker) ask(ctx context.Context, o *gathered, q *hook.Question, revision string) (*hook.Answer, error) {
	h := r.sync
	if o.ending && r.finalizes {
		h = r.finalize
	}
	q.Revision = revision
	var err error
	if q.Related, err = r.related.GatherFor(ctx, q); err != nil {
		return nil, err
	}
	answer, err := h.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer.ResyncAfter > 0 {
		r.resync.After(types.NamespacedName{Namespace: o.parent.GetNamespace(), Name: o.parent.GetName()}, answer.ResyncAfter)
	}
	return answer, nil
}

// askAgain calls the hook for an older revision of the parent (W2).
func (r *asker) askAgain(ctx context.Context, o *gathered, q hook.Question, name string) (wanted, error) {
	restored, err := metacontroller.Restore(o.parent, o.log.entry(name).revision.Snapshot)
	if err != nil {
		return wanted{}, &faultError{Reason: "RestoreFailed", Err: fmt.Errorf("revision %s: %w", name, err)}
	}
	q.Parent = restored
	answer, err := r.ask(ctx, o, &q, name)
	if err != nil {
		return wanted{}, fmt.Errorf("revision %s: %w", name, err)
	}
	return r.prepare(o, name, answer)
}

// prepare makes an answer ready for plans, once. It checks that the parent could claim the children that it is to
// create: otherwise it would release them at once, and create them again for ever.
func (r *asker) prepare(o *gathered, revision string, answer *hook.Answer) (wanted, error) {
	if p, ok := answer.Kept().(prepared); ok && p.parent == o.parent.GetUID() && p.revision == revision {
		return p.wanted, nil
	}
	w := wanted{objects: make(map[metacontroller.Child]*unstructured.Unstructured, len(answer.Children))}
	for _, desired := range answer.Children {
		if r.generate && desired.GetLabels()[metacontroller.UIDLabel] == "" {
			desired = labelled(desired, string(o.parent.GetUID()))
		}
		key := child(o.parent, desired)
		if !o.selector.Matches(labels.Set(desired.GetLabels())) {
			return wanted{}, &faultError{Reason: selectorMismatch, Err: fmt.Errorf(
				"the hook wants %s with labels that the selector of %s does not match (%s), so that it could never be its child",
				key, anyobject.Describe(o.parent), o.selector)}
		}
		w.order = append(w.order, key)
		w.objects[key] = desired
	}
	answer.Keep(prepared{o.parent.GetUID(), revision, w})
	o.memory.answers.wanted[revision] = w.names()
	return w, nil
}

// labelled returns a copy with the label by which parents claim children if the controller generates the selector. It
// shares everything but the labels with desired.
func labelled(desired *unstructured.Unstructured, uid string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	metadata, _ := desired.Object["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	out.Object["metadata"] = metadata
	l := desired.GetLabels() // a copy
	if l == nil {
		l = map[string]string{}
	}
	l[metacontroller.UIDLabel] = uid
	out.SetLabels(l)
	return out
}
