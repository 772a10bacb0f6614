package daemonset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to pods except adoption, release and relabelling, which are package pass's.

// maxNameProbes bounds the search for a free pod name.
const maxNameProbes = 8

// act carries a plan out: creates, then deletes, both by slow start. It returns all errors, joined. One that is
// [pass.IsStale] says that a new plan has to be made.
func (r *Reconciler) act(ctx context.Context, p *pass.Pass, plan *plan) error {
	created := pass.SlowStart(p, pass.Writes[creation]{
		Items: plan.Creates,
		Do:    func(c creation) error { return r.create(ctx, p, plan.from, c) },
		Name:  func(c creation) string { return c.node },
		Still: p.Unedited(ctx),
	})
	if pass.IsStale(created) {
		return created
	}
	return errors.Join(created, pass.SlowStart(p, pass.Writes[deletion]{
		Items: plan.Deletes,
		Do:    func(d deletion) error { return r.delete(ctx, p, d) },
		Name:  func(d deletion) string { return d.pod.Name },
	}))
}

// create makes the pod of one node. If its name is taken, the next name follows from the UID of the holder, as if the
// pod replaced it: the holder may be the last pod of the node, released since, and known to clients under that name.
func (r *Reconciler) create(ctx context.Context, p *pass.Pass, f facts, c creation) error {
	_, taken := f.before()
	for range maxNameProbes {
		pod := podFor(f.ds, f.hash, c)
		if uid, seen := taken[pod.Name]; seen { // a relabelled pod had this name
			c.after = uid
			continue
		}
		how, err := r.pods.Make(ctx, p, c.node, pod, func(found client.Object) bool {
			node, _ := nodeOf(asPod(found)) // a pod that names no node is not ours
			return node == c.node && found.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] == f.hash
		}, func(made *corev1.Pod) error { return r.unaltered(p, f, c.node, made) })
		switch err = pass.AsNamespaceTerminating(err); {
		case pass.IsStale(err):
			return err
		case err != nil:
			p.Warn(nil, "FailedCreate", "Create", "Error creating a pod for node %s: %v", c.node, err)
			return fmt.Errorf("create a pod for node %s: %w", c.node, err)
		case how == ownership.Created:
			p.Normal(pod, "SuccessfulCreate", "Create", "Created pod: %s (%s)", pod.Name, c.reason)
			return nil
		case how == ownership.Existed:
			return nil
		}
		var holder corev1.Pod
		if err := client.IgnoreNotFound(r.Live.Get(ctx, client.ObjectKeyFromObject(pod), &holder)); err != nil {
			return fmt.Errorf("read pod %s past the cache: %w", pod.Name, err)
		}
		if holder.UID != "" { // it was not deleted meanwhile
			c.after = holder.UID
		}
	}
	return fmt.Errorf("create a pod for node %s: %d names in a row are taken", c.node, maxNameProbes)
}

// unaltered returns an error if admission has made something else of a pod for a node.
func (r *Reconciler) unaltered(p *pass.Pass, f facts, node string, made *corev1.Pod) error {
	switch at, _ := nodeOf(made); at {
	case node:
	case "":
		return &pass.AlteredError{What: fmt.Sprintf("it is not bound to node %s", node), Lost: true}
	default:
		return &pass.AlteredError{What: fmt.Sprintf("it is bound to node %s and not %s", at, node), Lost: true}
	}
	if f.conforms(made) { // by its template generation, if admission has changed the hash
		return p.Unaltered(made, f.selector, nil)
	}
	return p.Unaltered(made, f.selector, map[string]string{appsv1.DefaultDaemonSetUniqueLabelKey: f.hash})
}

// delete deletes the pod that the plan was made from, unless it changed since.
func (r *Reconciler) delete(ctx context.Context, p *pass.Pass, d deletion) error {
	if d.failed {
		p.Replaced(d.hash, d.node)
		p.Warn(d.pod, "FailedDaemonPod", "Delete",
			"Found failed daemon pod %s/%s on node %s, will try to kill it", d.pod.Namespace, d.pod.Name, d.node)
	}
	if d.succeeded {
		p.Normal(d.pod, "SucceededDaemonPod", "Delete",
			"Found succeeded daemon pod %s/%s on node %s, will try to delete it", d.pod.Namespace, d.pod.Name, d.node)
	}
	return r.pods.Remove(ctx, p, d.pod, d.reason)
}

func asPod(o client.Object) *corev1.Pod {
	return o.(*corev1.Pod)
}
