package daemonset

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	ds       *appsv1.DaemonSet
	selector labels.Selector
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	children []pass.Family // the pods
	entries  []revision.Revision
	// pause is that of pods which have ended: see [pass.Pass.Pause].
	pause func(revision, place string) pass.Wait
	// genuine says of a revision that somebody may have planted that nobody has.
	genuine func(revision.Revision) bool
}

// gather reads the DaemonSet's nodes, pods and revisions, and claims the pods and revisions.
func (r *Reconciler) gather(ctx context.Context, p *pass.Pass, ds *appsv1.DaemonSet, selector labels.Selector) (*observed, error) {
	o := &observed{ds: ds, selector: selector, pause: p.Pause}
	if surges(ds) {
		// Whoever asks for a surge wants a pod on the node all the time; Kubernetes makes no pause at all there.
		o.pause = func(revision, node string) pass.Wait { return p.PauseAtMost(time.Minute, revision, node) }
	}
	o.genuine = func(e revision.Revision) bool { return r.log.Genuine(ctx, ds, e) }
	var err error
	if o.nodes, err = r.nodes(ctx); err != nil {
		return nil, err
	}
	r.predecessors.trim(ds.UID, o.nodes)
	if o.pods, err = r.pods.Claim(ctx, p, selector); err != nil {
		return nil, err
	}
	o.children = []pass.Family{r.pods.Claimed(p, selector, o.pods)}
	if o.entries, err = r.log.Claim(ctx, ds, selector); err != nil {
		return nil, err
	}
	return o, nil
}

// nodes returns all nodes, the cache's own where it can hand them out.
func (r *Reconciler) nodes(ctx context.Context) ([]*corev1.Node, error) {
	if shown, ok := r.Consistency.Shown(nodeResource); ok {
		out := make([]*corev1.Node, 0, len(shown))
		for _, o := range shown {
			if node, ok := o.(*corev1.Node); ok {
				out = append(out, node)
			}
		}
		return out, nil
	}
	var list corev1.NodeList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	out := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// facts are what the plan for o is made from: the DaemonSet with the template of its update revision. If that could not
// be recorded, no pod is replaced, and a lost one is recreated from the newest revision that the others come from.
func (r *Reconciler) facts(o *observed, recorded *pass.Recorded) (facts, error) {
	ds := *o.ds
	f := facts{ds: &ds, selector: o.selector, nodes: o.nodes, pods: byNode(o.pods), now: r.Clock.Now()}
	from := recorded.Update
	if from == nil {
		from, f.asked = recorded.Newest(o.children, o.genuine), o.ds
		ds.Annotations = maps.Clone(ds.Annotations)
		delete(ds.Annotations, appsv1.DeprecatedTemplateGeneration)
	}
	if from != nil {
		snapshot := from.Snapshot
		if snapshot == nil {
			snapshot = recorded.Snapshot // it cannot be read, but its stamp proves that the parent has not changed since
		}
		var restored appsv1.DaemonSet
		if err := snapshot.Into(&restored); err != nil {
			return facts{}, fmt.Errorf("restore the revision %s: %w", from.Name, err)
		}
		ds.Spec.Template, f.hash = restored.Spec.Template, from.Hash
	}
	f.past = sync.OnceValues(func() (last, seen map[string]types.UID) {
		last, seen = r.predecessors.of(o.ds.UID, f.hash)
		for _, pod := range o.pods {
			seen[pod.Name] = pod.UID
		}
		return last, seen
	})
	f.backoff = func(node string) pass.Wait { return o.pause(f.hash, node) }
	return f, nil
}
