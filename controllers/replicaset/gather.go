package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	set      *appsv1.ReplicaSet // the parent, as a ReplicaSet
	owner    ownership.Owner    // the ControllerRef of its pods
	selector labels.Selector
	pods     []*corev1.Pod
	// late is the name of a pod of the parent that the cache shows by now, but did not when pods were listed.
	late string
}

// gather reads the pods of a parent, and adopts and releases.
func (r *Reconciler) gather(ctx context.Context, p *pass.Pass, set *appsv1.ReplicaSet, selector labels.Selector) (*observed, error) {
	pods, err := r.pods.Claim(ctx, p, selector)
	return &observed{set: set, owner: r.Owner(set), selector: selector, pods: pods}, err
}

// adoptable refuses pods that have ended: they would not count.
func adoptable(_ client.Object, pod *corev1.Pod) error {
	if ended(pod) {
		return errors.New("it has ended")
	}
	return nil
}

// facts are what the plan for o is made from.
func (r *Reconciler) facts(ctx context.Context, o *observed) (facts, error) {
	f := facts{set: o.set, pods: o.pods, now: r.Clock.Now(), had: r.gone.see(o.set.UID, o.pods)}
	listed := sync.OnceValue(o.listed)
	// A name that cannot be looked up counts as free: the response to the create tells.
	f.taken = func(name string) bool {
		pod := &corev1.Pod{}
		if r.Client.Get(ctx, types.NamespacedName{Namespace: o.set.Namespace, Name: name}, pod) != nil {
			return false
		}
		if o.counts(pod) && !listed().Has(pod.UID) { // another manager created it
			o.late = name
		}
		return true
	}
	for _, name := range r.unanswered.of(o.set.UID) {
		if f.taken(name) {
			r.unanswered.drop(o.set.UID, name) // this pod answers the request
		} else {
			f.asked = append(f.asked, name)
		}
	}
	alive := 0
	for _, pod := range o.pods {
		if active(pod) {
			alive++
		}
	}
	if alive <= replicas(o.set) || replicas(o.set) == 0 {
		return f, nil // nothing is ranked
	}
	var err error
	f.neighbours, err = r.neighbours(ctx, o)
	return f, err
}

// counts reports whether a pod is one of those that the parent asks for.
func (o *observed) counts(pod *corev1.Pod) bool {
	return o.owner.Controls(pod) && active(pod) && o.selector.Matches(labels.Set(pod.Labels))
}

// listed returns the UIDs of the pods that were listed.
func (o *observed) listed() sets.Set[types.UID] {
	out := sets.New[types.UID]()
	for _, pod := range o.pods {
		out.Insert(pod.UID)
	}
	return out
}

// neighbours counts the active pods on each node: those of o, and those of its siblings, which have the same
// controller. If a node has two pods of a Deployment, one is deleted first, also in the middle of a rollout.
func (r *Reconciler) neighbours(ctx context.Context, o *observed) (map[string]int, error) {
	out := map[string]int{}
	for _, pod := range o.pods {
		if active(pod) {
			out[pod.Spec.NodeName]++
		}
	}
	above := ownership.ControllerOf(o.set)
	if above == (ownership.Owner{}) {
		return out, nil
	}
	siblings := r.kind.NewList()
	if err := r.Client.List(ctx, siblings, controlledBy(o.set.Namespace, above)...); err != nil {
		return nil, fmt.Errorf("list what else the controller of %s controls: %w", r.describe(o.set), err)
	}
	err := meta.EachListItem(siblings, func(item runtime.Object) error {
		sibling, ok := item.(client.Object)
		if !ok || sibling.GetUID() == o.set.UID {
			return nil
		}
		var pods corev1.PodList
		if err := r.Client.List(ctx, &pods, controlledBy(o.set.Namespace, r.Owner(sibling))...); err != nil {
			return fmt.Errorf("list the pods of %s: %w", sibling.GetName(), err)
		}
		for i := range pods.Items {
			if active(&pods.Items[i]) {
				out[pods.Items[i].Spec.NodeName]++
			}
		}
		return nil
	})
	return out, err
}

// controlledBy asks the index for what an object controls.
func controlledBy(namespace string, owner ownership.Owner) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{ownership.ControllerIndex: owner.Value()}}
}

// confirm compares the caches with the API server before pods are created or deleted: that of pods before the first
// write of this process for a parent, and after a response was lost; that of the parent each time. It returns an error
// that wraps ownership.ErrStale if a cache is stale.
func (r *Reconciler) confirm(ctx context.Context, p *pass.Pass, o *observed) error {
	if err := r.fence(ctx, p); err != nil {
		return err
	}
	return r.pods.Confirm(ctx, p, o.selector, o.pods)
}

// fence checks that there is no later generation of the parent than the cached one. It costs a request unless the cache
// has just shown an edit of a confirmed one: after a restart the cache may be stale, and another manager that knows of
// a later edit may have undone what this process did. Without the check the two would undo each other's work for as
// long as one of the caches is stale.
func (r *Reconciler) fence(ctx context.Context, p *pass.Pass) error {
	known, ok := r.generations.Load(p.Parent.GetUID())
	if ok && known.(int64) < p.Parent.GetGeneration() {
		return nil
	}
	return p.Current(ctx)
}

func asPod(o client.Object) *corev1.Pod {
	return o.(*corev1.Pod)
}
