package daemonset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	ds       *appsv1.DaemonSet
	selector labels.Selector
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	entries  []revision.Revision
	// relabelled holds the hashes that pods were pointed at in this pass.
	relabelled []string
}

// gather reads the DaemonSet's nodes, pods and revisions, and claims what is its own.
func (r *Reconciler) gather(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) (*observed, error) {
	o := &observed{ds: ds, selector: selector}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		o.nodes = append(o.nodes, &nodes.Items[i])
	}
	var err error
	if o.pods, err = r.claimPods(ctx, ds, selector); err != nil {
		return nil, err
	}
	if o.entries, err = r.log.Claim(ctx, ds, selector); err != nil {
		return nil, err
	}
	return o, nil
}

func (r *Reconciler) claimPods(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector) ([]*corev1.Pod, error) {
	var candidates []*corev1.Pod
	err := ownership.Candidates(ctx, r.client, &corev1.PodList{}, ds.Namespace, ds.UID, selector, true, func(o client.Object) error {
		candidates = append(candidates, o.(*corev1.Pod)) //nolint:forcetypeassert // the items of that list
		return nil
	})
	if err != nil {
		return nil, err
	}
	claimer := &ownership.Claimer{
		Parent:   ds,
		Kind:     kind,
		Selector: selector,
		Writer:   r.client,
		Live:     r.live,
		Wrote:    func(o client.Object) { r.ledger.Wrote(ds.UID, podResource, o) },
	}
	pods, err := ownership.Claim(ctx, claimer, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the pods of DaemonSet %s/%s: %w", ds.Namespace, ds.Name, err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost; what matched no longer may match
		// again. A pod beside it would be one too many.
		return nil, fmt.Errorf("%w: a pod changed while it was being adopted or released", history.ErrStale)
	}
	return pods, nil
}

// live returns the revisions that something depends on: those that pods name, terminating ones included, and those that
// pods were told to name.
func (o *observed) live() revision.Live {
	refs := slices.Clone(o.relabelled)
	for _, pod := range o.pods {
		refs = append(refs, pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey])
	}
	return revision.NewLive(refs...)
}

// children returns the claimed pods as what they are to the laws.
func (o *observed) children() []client.Object {
	out := make([]client.Object, len(o.pods))
	for i, pod := range o.pods {
		out[i] = pod
	}
	return out
}

// facts are what the plan for o is made from, with the template of the revision that snapshot holds.
func (r *Reconciler) facts(o *observed, snapshot *revision.Snapshot, hash string) (facts, error) {
	var restored appsv1.DaemonSet
	if err := snapshot.Into(&restored); err != nil {
		return facts{}, fmt.Errorf("restore DaemonSet %s/%s to its update revision: %w", o.ds.Namespace, o.ds.Name, err)
	}
	ds := *o.ds
	ds.Spec.Template = restored.Spec.Template
	now := r.clock.Now()
	return facts{
		ds:    &ds,
		hash:  hash,
		nodes: o.nodes,
		pods:  byNode(o.pods),
		now:   now,

		predecessors: r.predecessors.of(o.ds.UID, hash, o.nodes, o.pods),
		backoff: func(node string) time.Duration {
			key := backoffKey(o.ds, node)
			if !r.backoff.IsInBackOffSinceUpdate(key, now) {
				return 0
			}
			return r.backoff.Get(key)
		},
	}, nil
}
