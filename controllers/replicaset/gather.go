package replicaset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	parent   client.Object
	set      *appsv1.ReplicaSet // parent, as a ReplicaSet
	selector labels.Selector
	pods     []*corev1.Pod
}

// gather reads the pods of a parent, and claims what is its own.
func (r *Reconciler) gather(ctx context.Context, parent client.Object, selector labels.Selector) (*observed, error) {
	o := &observed{parent: parent, set: r.flavor.read(parent), selector: selector}
	var candidates []*corev1.Pod
	err := ownership.Candidates(ctx, r.client, &corev1.PodList{}, o.set.Namespace, o.set.UID, selector, true, func(o client.Object) error {
		candidates = append(candidates, asPod(o))
		return nil
	})
	if err != nil {
		return nil, err
	}
	claimer := &ownership.Claimer{
		Parent:    parent,
		Kind:      r.flavor.kind,
		Selector:  selector,
		Writer:    r.client,
		Live:      r.live,
		Adoptable: adoptable,
		Wrote:     func(child client.Object) { r.ledger.Wrote(o.set.UID, podResource, child) },
	}
	if o.pods, err = ownership.Claim(ctx, claimer, candidates); err != nil {
		return nil, fmt.Errorf("claim the pods of %s: %w", r.describe(o.set), err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost; what matched no longer may match
		// again. A pod beside it would be one too many.
		return nil, fmt.Errorf("%w: a pod changed while it was being adopted or released", errStale)
	}
	return o, nil
}

// adoptable keeps pods that have ended as they are: they would not count.
func adoptable(child client.Object) error {
	if ended(asPod(child)) {
		return errors.New("it has ended")
	}
	return nil
}

// facts are what the plan for o is made from.
func (r *Reconciler) facts(ctx context.Context, o *observed) (facts, error) {
	f := facts{set: o.set, pods: o.pods, now: r.clock.Now()}
	// A name that cannot be looked up is one to be asked for: the answer to that tells.
	f.taken = func(name string) bool {
		return r.client.Get(ctx, types.NamespacedName{Namespace: o.set.Namespace, Name: name}, &corev1.Pod{}) == nil
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

// neighbours counts the active pods on each node: those of o, and those of its siblings, which have the same controller. Of
// two pods of a Deployment on one node one goes first, also in the middle of a rollout.
func (r *Reconciler) neighbours(ctx context.Context, o *observed) (map[string]int, error) {
	out := map[string]int{}
	for _, pod := range o.pods {
		if active(pod) {
			out[pod.Spec.NodeName]++
		}
	}
	ref := metav1.GetControllerOfNoCopy(o.set)
	if ref == nil {
		return out, nil
	}
	siblings := r.flavor.newList()
	if err := r.client.List(ctx, siblings, controlledBy(o.set.Namespace, ref.UID)...); err != nil {
		return nil, fmt.Errorf("list what else the controller of %s controls: %w", r.describe(o.set), err)
	}
	err := meta.EachListItem(siblings, func(item runtime.Object) error {
		sibling, ok := item.(client.Object)
		if !ok || sibling.GetUID() == o.set.UID {
			return nil
		}
		var pods corev1.PodList
		if err := r.client.List(ctx, &pods, controlledBy(o.set.Namespace, sibling.GetUID())...); err != nil {
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
func controlledBy(namespace string, uid types.UID) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingFields{ownership.ControllerIndex: string(uid)}}
}

// confirm checks, before pods are created or deleted, that the cache is not behind the API server: of pods before the
// first write of this process for a parent, and after an answer was lost, of the parent whenever that may be. It returns an
// error that wraps errStale if it is.
func (r *Reconciler) confirm(ctx context.Context, o *observed) error {
	if err := r.fence(ctx, o); err != nil {
		return err
	}
	children := make([]client.Object, len(o.pods))
	for i, pod := range o.pods {
		children[i] = pod
	}
	why, err := r.fresh.Confirm(ctx, o.parent, o.selector, children)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", errStale, why)
	}
	return err
}

// fence checks that there is no later generation of the parent than the cached one. It asks unless the cache has just
// shown an edit of one that was confirmed: after a restart the cache may be old, and what this process found done before
// and finds undone now another manager may have done that knows of a later edit. Without the question the two would undo
// each other's work for as long as one of the caches is behind.
func (r *Reconciler) fence(ctx context.Context, o *observed) error {
	if known, ok := r.generations.Load(o.set.UID); ok && known.(int64) < o.set.Generation { //nolint:forcetypeassert // pass stores it
		return nil
	}
	fresh, err := ownership.Reread(ctx, r.live, o.parent)
	if err == nil && fresh.GetGeneration() != o.set.Generation {
		err = fmt.Errorf("%w: it shows generation %d of %s, and there is %d",
			errStale, o.set.Generation, r.describe(o.set), fresh.GetGeneration())
	}
	return err
}

func asPod(o client.Object) *corev1.Pod {
	return o.(*corev1.Pod) //nolint:forcetypeassert // every caller asks for pods
}
