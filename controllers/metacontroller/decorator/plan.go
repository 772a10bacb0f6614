package decorator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// This file says what follows from a hook's answer. It is pure: what exists and what was answered go in, writes with
// their reasons come out.

// key names one attachment of an object. The version of its kind is no part of it: two versions show one object.
type key struct {
	schema.GroupKind

	namespace, name string
}

func keyOf(o *unstructured.Unstructured) key {
	return key{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// facts is all that a plan is made from.
type facts struct {
	settings *settings
	resource *decorated
	object   *unstructured.Unstructured
	// finalizing says that the answer is that of the finalize hook.
	finalizing bool
	answer     *hook.Answer
	// observed are the existing attachments, terminating ones included. desired are those of the answer, with the
	// controller's annotation, in the answer's order.
	observed map[key]*unstructured.Unstructured
	desired  []*unstructured.Unstructured
	// stated is the status that was written last.
	stated stated
	// applied is what applying a desired attachment to the observed one would do, wherever that could matter.
	applied map[key]apply.Result
	// compareErr says which attachments stay as they are because they could not be compared, and why.
	compareErr error
}

// plan is what a pass writes.
type plan struct {
	// object is what the decorated object should be, nil if it is that already. done says that our finalizer is removed.
	object *edit
	done   bool
	// restate says that the object should have this status, which is a subresource.
	restate bool
	status  map[string]any

	deletes []deletion
	updates []update
	creates []creation
	// blocked says why a missing attachment is not created, nil if all are, and compareErr why others stay as they are.
	blocked, compareErr error
}

// deletion is an attachment to delete, what is to replace it, nil if nothing is, and why.
type deletion struct {
	attachment, instead *unstructured.Unstructured
	reason              string
}

// update is an attachment that is changed, what was asked for, and why.
type update struct {
	attachment, desired *unstructured.Unstructured
	reason              string
}

// creation is an attachment to create.
type creation struct {
	attachment *unstructured.Unstructured
}

// makePlan returns the plan for the facts.
func makePlan(f *facts) *plan {
	p := &plan{}
	planObject(f, p)
	if f.settings.manages(f.object) && f.answer.ChildrenPresence != hook.Absent {
		planAttachments(f, p)
		p.compareErr = f.compareErr
	}
	return p
}

// planObject compares the object with the hook's answer.
func planObject(f *facts, p *plan) {
	e := editOf(f.object)
	var relabelled, reannotated bool
	e.labels, relabelled = decorate(e.labels, f.answer.Labels)
	e.annotations, reannotated = decorate(e.annotations, f.answer.Annotations)
	restated := f.answer.StatusPresence == hook.Given && !f.stated.holds(f.object, f.answer.Status)
	if restated && f.resource.status {
		p.restate, p.status = true, f.answer.Status
	}
	if restated && !f.resource.status {
		e.restate, e.status = true, f.answer.Status
	}
	if f.finalizing && f.answer.Finalized && f.settings.finalized(f.object) {
		p.done = true
		e.finalizers = without(e.finalizers, f.settings.finalizer)
	}
	if relabelled || reannotated || e.restate || p.done {
		p.object = e
	}
}

// decorate returns values with the hook's changes, and whether there are any. A nil removes a key; keys that the hook
// does not name stay.
func decorate(values map[string]string, said map[string]*string) (out map[string]string, changed bool) {
	out = maps.Clone(values)
	for name, value := range said {
		was, there := out[name]
		switch {
		case value == nil && there:
			delete(out, name)
			changed = true
		case value != nil && (!there || was != *value):
			if out == nil {
				out = map[string]string{}
			}
			out[name] = *value
			changed = true
		}
	}
	return out, changed
}

// planAttachments compares the attachments with what the hook asked for.
func planAttachments(f *facts, p *plan) {
	wanted := make(map[key]struct{}, len(f.desired))
	for _, desired := range f.desired {
		k := keyOf(desired)
		wanted[k] = struct{}{}
		observed, there := f.observed[k]
		switch {
		case !there:
			p.creates = append(p.creates, creation{desired})
		case observed.GetDeletionTimestamp() != nil:
			// It is recreated once it is deleted.
		default:
			planAttachment(f.settings.methods[k.GroupKind], observed, desired, f.applied[k], p)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(f.observed), compareKeys) {
		if _, ok := wanted[k]; !ok && f.observed[k].GetDeletionTimestamp() == nil {
			p.deletes = append(p.deletes, deletion{f.observed[k], nil, "the hook does not ask for it"})
		}
	}
}

// planAttachment says what happens to an existing attachment that is desired.
func planAttachment(method v1alpha1.ChildUpdateMethod, observed, desired *unstructured.Unstructured, r apply.Result, p *plan) {
	switch {
	case !r.Changed || method == v1alpha1.ChildUpdateOnDelete:
	case method == v1alpha1.ChildUpdateRecreate && r.Content:
		p.deletes = append(p.deletes, deletion{observed, desired, differences(observed, r)})
	case r.Content:
		p.updates = append(p.updates, update{observed, desired, differences(observed, r)})
	default:
		// Its content is as desired; only the annotation that remembers what was applied is not.
		p.updates = append(p.updates, update{observed, desired, "it remembers something else as applied last"})
	}
}

func differences(observed *unstructured.Unstructured, r apply.Result) string {
	const shown = 3
	return fmt.Sprintf("the hook asks for another %s", strings.Join(r.Differences(observed.Object, shown), ", "))
}
