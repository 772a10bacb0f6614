package daemonset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all writes to pods.

// burst bounds what one pass creates, and what it deletes: the rest waits for the caches to show the first part.
const burst = 250

// maxNameProbes bounds the search for a free pod name.
const maxNameProbes = 8

// act carries a plan out: creates, slowly at first, then deletes, all at once. It returns all errors, joined. One that
// is [ownership.Superseded] says that another plan is to be made.
func (r *Reconciler) act(ctx context.Context, f facts, p *plan) error {
	creates, deletes := p.creates[:min(len(p.creates), burst)], p.deletes[:min(len(p.deletes), burst)]
	still := ownership.Unedited(ctx, r.client, f.ds)
	created := ownership.SlowStart(creates, still, func(c creation) error { return r.create(ctx, f, c) })
	if ownership.Superseded(created) {
		return created
	}
	return errors.Join(created, ownership.Each(deletes, func(d deletion) error { return r.delete(ctx, f.ds, d) }))
}

// create makes the pod of one node. Where something else has its name, the next name follows from that one's UID, as if the
// pod stood in for it: it may be the last pod of the node, which is not ours any more, and which others have seen there.
func (r *Reconciler) create(ctx context.Context, f facts, c creation) error {
	for range maxNameProbes {
		pod := podFor(f.ds, f.hash, c)
		how, err := r.pods.Create(ctx, f.ds, pod, func(found client.Object) bool {
			node, _ := nodeOf(asPod(found)) // a pod that is bound for no node is not ours
			return node == c.node && found.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] == f.hash
		})
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // nothing can be made here any more, and nobody wants to read so
		case err != nil:
			r.recorder.Eventf(f.ds, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "Error creating a pod for node %s: %v", c.node, err)
			return fmt.Errorf("create a pod for node %s: %w", c.node, err)
		case how == ownership.Created:
			r.recorder.Eventf(f.ds, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created pod: %s (%s)", pod.Name, c.reason)
			return nil
		case how == ownership.Existed:
			return nil
		}
		var holder corev1.Pod
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(pod), &holder); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read pod %s past the cache: %w", pod.Name, err)
		}
		if holder.UID != "" { // it is not gone again
			c.after = holder.UID
		}
	}
	return fmt.Errorf("create a pod for node %s: %d names in a row are taken", c.node, maxNameProbes)
}

// delete removes the pod that the plan was made from, unless it changed since.
func (r *Reconciler) delete(ctx context.Context, ds *appsv1.DaemonSet, d deletion) error {
	if d.failed {
		r.backoff.Next(backoffKey(ds, d.node), r.clock.Now())
		r.recorder.Eventf(ds, d.pod, corev1.EventTypeWarning, "FailedDaemonPod", "Delete",
			"Found failed daemon pod %s/%s on node %s, will try to kill it", d.pod.Namespace, d.pod.Name, d.node)
	}
	if d.succeeded {
		r.recorder.Eventf(ds, d.pod, corev1.EventTypeNormal, "SucceededDaemonPod", "Delete",
			"Found succeeded daemon pod %s/%s on node %s, will try to delete it", d.pod.Namespace, d.pod.Name, d.node)
	}
	deleted, err := r.pods.Delete(ctx, ds, d.pod)
	if err != nil {
		r.recorder.Eventf(ds, d.pod, corev1.EventTypeWarning, "FailedDelete", "Delete", "Error deleting pod %s: %v", d.pod.Name, err)
		return fmt.Errorf("delete pod %s: %w", d.pod.Name, err)
	}
	if deleted {
		r.recorder.Eventf(ds, d.pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted pod: %s (%s)", d.pod.Name, d.reason)
	}
	return nil
}

// relabel returns what points the pods of a duplicate revision at the one that stays. Only pods that carry the
// duplicate's label are touched: relabelling the others was kubernetes#111280.
func (r *Reconciler) relabel(o *observed) history.Relabel {
	return func(ctx context.Context, from, to revision.Revision) error {
		// A pod that the cache does not show would keep the label of a revision that is about to go.
		if why, err := r.fresh.Confirm(ctx, o.ds, o.selector, o.children()); err != nil {
			return err
		} else if why != "" {
			return fmt.Errorf("%w: %s", history.ErrStale, why)
		}
		var mine []int
		for i, pod := range o.pods {
			if hash := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]; hash != "" && hash == from.Hash && hash != to.Hash {
				mine = append(mine, i)
			}
		}
		o.relabelled = append(o.relabelled, to.Hash) // even if a response is lost
		err := ownership.Each(mine, func(i int) error { return r.point(ctx, o, i, to) })
		if ownership.OutcomeUnknown(err) {
			r.fresh.Forget(o.ds.UID) // as after any other write whose answer was lost
		}
		return err
	}
}

// point writes the hash of a revision into the label of the i-th pod.
func (r *Reconciler) point(ctx context.Context, o *observed, i int, to revision.Revision) error {
	pod := o.pods[i]
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion,
		"labels": map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: to.Hash},
	}})
	if err != nil {
		return err
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := r.client.Patch(ctx, out, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.ledger.Wrote(o.ds.UID, podResource, out)
	o.pods[i] = out // what follows in this pass must not take it for one of the duplicate
	return nil
}

// backoffKey names a node of one DaemonSet, by UID: a recreated one starts afresh.
func backoffKey(ds *appsv1.DaemonSet, node string) string { return string(ds.UID) + "/" + node }

func asPod(o client.Object) *corev1.Pod {
	return o.(*corev1.Pod) //nolint:forcetypeassert // every caller asks for pods
}
