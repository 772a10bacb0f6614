package builder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass, and makes facts of them. Objects come from a cache without copies: nothing here
// or later may change them.

// uncopied lists what a cache holds as it is, also where the author's manager has it copied: a pass reads all children
// of a parent, and changes none.
type uncopied struct{ client.Reader }

// List implements [client.Reader].
func (u uncopied) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.Reader.List(ctx, list, append(slices.Clip(opts), client.UnsafeDisableDeepCopy)...)
}

// observed is what one pass works on.
type observed struct {
	parent   client.Object
	selector labels.Selector
	strategy Strategy
	// wanted are the children that the parent wants as it is.
	wanted []want
	// children are by the index of their kind.
	children [][]client.Object
	families []pass.Family // the children
	entries  []revision.Revision
	now      time.Time
	// pause is that of children which have failed: see [pass.Pass.Pause].
	pause func(revision, place string) pass.Wait
	// failed is [pass.Pass.Failed].
	failed func(name string) int
	// genuine says of a revision that somebody may have planted that nobody has.
	genuine func(revision.Revision) bool
}

// want is one child that is wanted.
type want struct {
	rule   int
	object client.Object
}

// position is where a child is, or its name: kinds may have the same.
type position struct {
	rule int
	name string
}

// gather reads the children and revisions of a parent, and claims what is its own.
func (r *reconciler[P]) gather(ctx context.Context, p *pass.Pass, parent P) (*observed, error) {
	o := &observed{parent: parent, now: p.Now(), pause: p.Pause, failed: p.Failed}
	o.genuine = func(e revision.Revision) bool { return r.log.Genuine(ctx, parent, e) }
	var err error
	if o.selector, err = r.selector(parent); err != nil || o.selector.Empty() {
		return nil, pass.Refusef("InvalidLabels", "Labels of the controller %s returned %v, which select nothing: %w",
			r.author.Name, r.labelsOf(parent), err)
	}
	if o.strategy, err = r.strategyOf(parent); err != nil {
		return nil, err
	}
	if o.wanted, err = r.answers.ask(parent, source{}, func() ([]want, error) { return r.wantedOf(parent) }); err != nil {
		return nil, err
	}
	for _, ch := range r.children {
		claimed, err := ch.Claim(ctx, p, o.selector)
		if err != nil {
			return nil, err
		}
		o.children = append(o.children, claimed)
		o.families = append(o.families, ch.Claimed(p, o.selector, claimed))
	}
	stored, err := r.log.ClaimObjects(ctx, parent, o.selector)
	o.entries = r.log.Revisions(parent, stored)
	return o, err
}

// wantedOf asks the author what a parent wants.
func (r *reconciler[P]) wantedOf(parent P) ([]want, error) {
	objects, err := r.asked(parent)
	if err != nil {
		return nil, err
	}
	out := make([]want, 0, len(objects))
	seen := make(map[position]bool, len(objects))
	for i, object := range objects {
		rule, err := r.ruleOf(object)
		if err != nil {
			return nil, pass.Refusef("InvalidChild", "child %d: %w", i, err)
		}
		at := position{rule, object.GetName()}
		switch {
		case at.name == "":
			err = pass.Refusef("InvalidChild", "child %d, a %s, has no name; a name that follows from what the child is for is required",
				i, r.kinds[rule].gvk.Kind)
		case object.GetNamespace() != "" && object.GetNamespace() != parent.GetNamespace():
			err = pass.Refusef("InvalidChild", "%s is in namespace %s; children are in that of their parent",
				describe(r.kinds[rule], object), object.GetNamespace())
		case seen[at]:
			err = pass.Refusef("InvalidChild", "%s is wanted twice", describe(r.kinds[rule], object))
		}
		if err != nil {
			return nil, err
		}
		seen[at] = true
		out = append(out, want{rule, object})
	}
	return out, nil
}

// ruleOf returns the index of the rule that an object falls under.
func (r *reconciler[P]) ruleOf(object client.Object) (int, error) {
	if isNil(object) {
		return 0, errors.New("it is nil")
	}
	gvk, err := apiutil.GVKForObject(object, r.scheme)
	if err != nil {
		return 0, err
	}
	for i, k := range r.kinds {
		if k.gvk == gvk {
			return i, nil
		}
	}
	return 0, fmt.Errorf("it is a %s, which is not among the kinds that the controller %s owns", gvk.Kind, r.author.Name)
}

// judge says what a child is like now.
func (r *reconciler[P]) judge(rule int, child, parent client.Object, now time.Time) owned {
	k := r.kinds[rule]
	out := owned{object: child, rule: rule, revision: child.GetLabels()[HashLabel], terminating: child.GetDeletionTimestamp() != nil}
	if out.terminating {
		return out
	}
	if k.applied {
		return out
	}
	out.failed = failed(child)
	since, why := k.ready(child)
	if out.why = why; why != "" {
		return out
	}
	out.ready = true
	if k.minReady != nil {
		least := k.minReady(parent)
		out.left = min(max(0, since.Add(least).Sub(now)), least)
	}
	if out.available = out.left == 0; !out.available {
		out.why = fmt.Sprintf("it is ready, and has to be for %s more", out.left.Round(time.Second))
	}
	return out
}

// failed reports whether a child ended: a pod that was evicted, for instance, which nobody starts again.
func failed(child client.Object) bool {
	pod, ok := child.(*corev1.Pod)
	return ok && pod.Status.Phase == corev1.PodFailed
}

// made completes what the author wants: namespace, labels, owner.
func (r *reconciler[P]) made(parent P, w want, hash string) client.Object {
	out := w.object.DeepCopyObject().(client.Object)
	set := map[string]string{}
	maps.Copy(set, out.GetLabels())
	maps.Copy(set, r.labelsOf(parent))
	if hash != "" {
		set[HashLabel] = hash
	}
	out.SetLabels(set)
	r.kinds[w.rule].placed(out, hash)
	out.SetNamespace(parent.GetNamespace())
	out.SetOwnerReferences(append(out.GetOwnerReferences(), *metav1.NewControllerRef(parent, r.parent)))
	return out
}
