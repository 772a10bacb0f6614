package daemonset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all writes to pods.

// burst bounds what one pass creates, and what it deletes: the rest waits for the caches to show the first part.
const burst = 250

// maxNameProbes bounds the search for a free pod name.
const maxNameProbes = 8

// act carries a plan out: creates in batches that start small and double while they succeed, so that a quota or a
// broken webhook costs few requests; then deletes, all at once. It returns all errors, joined.
func (r *Reconciler) act(ctx context.Context, f facts, p *plan) error {
	creates, deletes := p.creates, p.deletes
	creates, deletes = creates[:min(len(creates), burst)], deletes[:min(len(deletes), burst)]
	var errs []error
	for size := 1; len(creates) > 0; size *= 2 {
		batch := creates[:min(size, len(creates))]
		creates = creates[len(batch):]
		if err := each(batch, func(c creation) error { return r.create(ctx, f, c) }); err != nil {
			errs = append(errs, err)
			break // the rest would most likely fail the same way
		}
	}
	errs = append(errs, each(deletes, func(d deletion) error { return r.delete(ctx, f.ds, d) }))
	return errors.Join(errs...)
}

// each does f for all items at once and joins the errors.
func each[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { errs[i] = f(item) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// create makes the pod of one node. A name that is taken is read back: a pod that is ours, alive and of this revision
// was made by an earlier request whose response was lost, or by another manager, and is the one we want.
func (r *Reconciler) create(ctx context.Context, f facts, c creation) error {
	var err error
	for probe := range maxNameProbes {
		pod := podFor(f.ds, f.hash, c.node, probe)
		err = r.client.Create(ctx, pod)
		switch {
		case err == nil:
			r.ledger.Wrote(f.ds.UID, podResource, pod)
			r.recorder.Eventf(f.ds, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created pod: %s (%s)", pod.Name, c.reason)
			return nil
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // nothing can be made here any more, and nobody wants to read so
		case !apierrors.IsAlreadyExists(err):
			r.recorder.Eventf(f.ds, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "Error creating a pod for node %s: %v", c.node, err)
			return fmt.Errorf("create a pod for node %s: %w", c.node, err)
		}
		ours, err := r.readBack(ctx, f, c, pod)
		if ours || err != nil {
			return err
		}
	}
	return fmt.Errorf("create a pod for node %s: %d names in a row are taken: %w", c.node, maxNameProbes, err)
}

// readBack looks at the pod that has the name we want, and says whether it is the one we want.
func (r *Reconciler) readBack(ctx context.Context, f facts, c creation, want *corev1.Pod) (bool, error) {
	var pod corev1.Pod
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), &pod)
	if apierrors.IsNotFound(err) {
		return false, fmt.Errorf("create pod %s: it existed and is gone again: %w", want.Name, err)
	}
	if err != nil {
		return false, fmt.Errorf("read back pod %s: %w", want.Name, err)
	}
	node, _ := nodeOf(&pod) // a pod that is bound for no node is not ours
	if !metav1.IsControlledBy(&pod, f.ds) || pod.DeletionTimestamp != nil || node != c.node ||
		pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != f.hash {
		return false, nil
	}
	r.ledger.Wrote(f.ds.UID, podResource, &pod) // the cache has not shown it yet
	return true, nil
}

// delete removes exactly the pod that the plan was made from: if it changed since, it may be the one that serves by now,
// and the next pass decides anew.
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
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.pod.Namespace, Name: d.pod.Name}}
	err := r.client.Delete(ctx, target, client.Preconditions{UID: &d.pod.UID, ResourceVersion: &d.pod.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		r.recorder.Eventf(ds, d.pod, corev1.EventTypeWarning, "FailedDelete", "Delete", "Error deleting pod %s: %v", d.pod.Name, err)
		return fmt.Errorf("delete pod %s: %w", d.pod.Name, err)
	}
	r.ledger.Deleted(ds.UID, podResource, d.pod)
	r.recorder.Eventf(ds, d.pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted pod: %s (%s)", d.pod.Name, d.reason)
	return nil
}

// relabel returns what points the pods of a duplicate revision at the one that stays. Only pods that carry the
// duplicate's label are touched: relabelling the others was kubernetes#111280.
func (r *Reconciler) relabel(o *observed) history.Relabel {
	return func(ctx context.Context, from, to revision.Revision) error {
		// A pod that the cache does not show would keep the label of a revision that is about to go.
		if why, err := r.confirmFresh(ctx, o); err != nil {
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
		err := each(mine, func(i int) error { return r.point(ctx, o, i, to) })
		if unknown(err) {
			r.confirmed.Delete(o.ds.UID) // as after any other write whose answer was lost
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
