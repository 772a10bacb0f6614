package replicaset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to pods except adoption and release, which are package pass's.

// act carries a plan out: creates or deletes, by slow start. One of the errors it returns may be [pass.IsStale]: then
// the plan rests on a stale read.
func (r *Reconciler) act(ctx context.Context, p *pass.Pass, o *observed, plan *plan) error {
	return errors.Join(
		pass.SlowStart(p, pass.Writes[creation]{
			Items: plan.Creates,
			Do:    func(c creation) error { return r.create(ctx, p, o, c) },
			Still: p.Unedited(ctx),
		}),
		pass.SlowStart(p, pass.Writes[deletion]{
			Items: plan.Deletes,
			Do:    func(d deletion) error { return r.pods.Remove(ctx, p, d.pod, d.reason) },
			Name:  func(d deletion) string { return d.pod.Name },
		}),
	)
}

// create makes one pod. If one of ours under that name exists and is not terminating, an earlier request whose response
// was lost, or another manager, created it; it is the one we want, whatever template it was created from.
func (r *Reconciler) create(ctx context.Context, p *pass.Pass, o *observed, c creation) error {
	pod := podFor(o.set, r.kind.GVK, c.name)
	how, err := r.pods.Make(ctx, p, "", pod, func(found client.Object) bool { return !ended(asPod(found)) },
		func(made *corev1.Pod) error { return p.Unaltered(made, o.selector, nil) })
	if pass.OutcomeUnknown(err) {
		r.unanswered.add(o.set.UID, c.name)
	} else if err == nil {
		r.unanswered.drop(o.set.UID, c.name)
		r.gone.made(o.set.UID, c.name)
	}
	switch err = pass.AsNamespaceTerminating(err); {
	case pass.IsStale(err):
		return err
	case err != nil:
		p.Warn(nil, "FailedCreate", "Create", "Error creating: %v", err)
		return fmt.Errorf("create pod %s: %w", c.name, err)
	case how == ownership.Taken:
		return fmt.Errorf("%w: the name %s is taken, and the cache does not show by whom", ownership.ErrStale, c.name)
	case how == ownership.Created:
		p.Normal(pod, "SuccessfulCreate", "Create", "Created pod: %s (%s)", c.name, c.reason)
	}
	return nil
}
