package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to pods and claims except adoption, release and revision labels, which are package pass's.

// act carries a plan out: what pods and claims lack, then creates, then deletes, each by slow start. It returns all
// errors, joined; one that is [pass.IsStale] says that the plan rests on a stale read.
func (r *Reconciler) act(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, plan *plan) error {
	for _, name := range plan.foreign {
		p.Warn(nil, "ConflictingController", "Update", "Claim %s has another controller, so its retention policy is ignored", name)
	}
	still := p.Unedited(ctx)
	creates := pass.Writes[creation]{
		Items: plan.Creates,
		Do:    func(c creation) error { return r.create(ctx, p, set, c) },
		Still: still,
	}
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement { // else their order is a promise
		creates.Name = func(c creation) string { return podName(set, c.ordinal) }
	}
	made := errors.Join(
		pass.SlowStart(p, pass.Writes[ownerChange]{
			Items: plan.owners,
			Do:    func(c ownerChange) error { return r.setOwners(ctx, p, c) },
			Name:  func(c ownerChange) string { return c.claim.Name },
		}),
		pass.SlowStart(p, pass.Writes[identityChange]{
			Items: plan.identities,
			Do:    func(c identityChange) error { return r.identify(ctx, p, c) },
			Name:  func(c identityChange) string { return c.pod.Name },
		}),
		pass.SlowStart(p, pass.Writes[*corev1.PersistentVolumeClaim]{
			Items: plan.claims,
			Do:    func(claim *corev1.PersistentVolumeClaim) error { return r.createClaim(ctx, p, claim) },
			Name:  (*corev1.PersistentVolumeClaim).GetName,
			Still: still,
		}),
		pass.SlowStart(p, creates),
	)
	if pass.IsStale(made) {
		return made
	}
	return errors.Join(made, pass.SlowStart(p, pass.Writes[deletion]{
		Items: plan.Deletes,
		Do:    func(d deletion) error { return r.delete(ctx, p, d) },
		Name:  func(d deletion) string { return d.pod.Name },
	}))
}

// create makes the claims of one ordinal, and then its pod: from the planned revision, or from the one that the plan
// names as the alternative if the API server has refused the first for a minute.
func (r *Reconciler) create(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, c creation) error {
	for _, claim := range c.claims {
		if err := r.createClaim(ctx, p, claim); err != nil {
			return err
		}
	}
	err := r.createPod(ctx, p, set, c.ordinal, c.from, c.reason)
	switch {
	case err == nil:
		r.refusals.end(set.UID, c.ordinal)
		return nil
	case pass.IsStale(err):
		return err
	case !refusesContent(err):
	case c.instead.template != nil:
		if left := r.refusals.last(set.UID, refused{c.ordinal, c.from.name}, p.Now()); left > 0 {
			p.RequeueAfter(left)
			err = fmt.Errorf("%w; if that lasts for %s more, the pod comes from revision %s", err, left.Round(time.Second), c.instead.name)
			break
		}
		reason := fmt.Sprintf("revision %s, because a pod of revision %s is refused: %v", c.instead.name, c.from.name, err)
		if instead := r.createPod(ctx, p, set, c.ordinal, c.instead, reason); instead != nil {
			err = fmt.Errorf("%w; and from revision %s: %w", err, c.instead.name, instead)
			break
		}
		return nil
	case c.held:
		start, _ := ordinals(set)
		err = fmt.Errorf("%w; a pod below the partition comes from the current revision, %s, and from no other: "+
			"allow that one, or lower the partition to %d", err, c.from.name, c.ordinal-start)
	}
	if pass.IsStale(err) {
		return err
	}
	name := podName(set, c.ordinal)
	p.Warn(nil, "FailedCreate", "Create", "Error creating pod %s: %v", name, err)
	return fmt.Errorf("create pod %s: %w", name, err)
}

// createPod makes the pod of one ordinal from one revision.
func (r *Reconciler) createPod(
	ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, ordinal int64, from source, reason string,
) error {
	pod := podFor(set, from, ordinal)
	// A pod of ours that exists already is left to the next pass, whatever it was created from: this pass rests on a cache
	// that does not show it.
	how, err := r.pods.Make(ctx, p, pod.Name, pod, func(client.Object) bool { return true },
		func(made *corev1.Pod) error { return unaltered(p, set, made, from) })
	switch {
	case err != nil:
		return pass.AsNamespaceTerminating(err)
	case how == ownership.Taken:
		return r.taken(ctx, set, pod)
	case how == ownership.Existed:
		return fmt.Errorf("%w: pod %s is there, and the cache does not show it", ownership.ErrStale, pod.Name)
	}
	p.Normal(pod, "SuccessfulCreate", "Create", "Created pod: %s (%s)", pod.Name, reason)
	return nil
}

// unaltered returns an error if admission has made something else of a pod that comes from a revision.
func unaltered(p *pass.Pass, set *appsv1.StatefulSet, made *corev1.Pod, from source) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return err
	}
	return p.Unaltered(made, selector, map[string]string{appsv1.StatefulSetRevisionLabel: from.name})
}

// refusesContent reports whether the API server refuses a pod because of its content: validation answers 422, policies,
// webhooks and admission plugins 403 or 422. A quota may have room again later, so that it is not a reason to create
// pods from a revision that is not known to work.
func refusesContent(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && !pass.OverQuota(err)
}

// taken says who has the name of a pod. No other name will do, so the set waits until it is free.
func (r *Reconciler) taken(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	found := &corev1.Pod{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), found)
	if apierrors.IsNotFound(err) { // its deletion may have been told before this pass asked for the name
		return fmt.Errorf("%w: pod %s existed and was deleted meanwhile", ownership.ErrStale, pod.Name)
	}
	if err != nil {
		return fmt.Errorf("read pod %s past the cache: %w", pod.Name, err)
	}
	if r.Owner(set).Controls(found) {
		return fmt.Errorf("%w: pod %s is there, and the cache does not show it", ownership.ErrStale, pod.Name)
	}
	return fmt.Errorf("another pod has the name, and belongs to %s; it is left alone", ownerName(found))
}

// ownerName names the owner of an object.
func ownerName(o client.Object) string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.Kind + " " + ref.Name
	}
	return "no controller"
}

// createClaim creates a claim. One that exists is used, whoever created it, once the cache shows its state.
func (r *Reconciler) createClaim(ctx context.Context, p *pass.Pass, claim *corev1.PersistentVolumeClaim) error {
	err := r.Client.Create(ctx, claim)
	switch {
	case err == nil:
		r.Consistency.WroteAt(p.Parent.GetUID(), claimResource, claim)
		p.Normal(claim, "SuccessfulCreate", "Create", "Created claim: %s", claim.Name)
		return nil
	case pass.IsStale(pass.AsNamespaceTerminating(err)):
		return pass.AsNamespaceTerminating(err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w: claim %s is there, and the cache does not show it", ownership.ErrStale, claim.Name)
	}
	p.Warn(nil, "FailedCreate", "Create", "Error creating claim %s: %v", claim.Name, err)
	return fmt.Errorf("create claim %s: %w", claim.Name, err)
}

// delete deletes the pod that the plan was made from, unless it changed since. The claims that are to be deleted with
// it must have their owner references first.
func (r *Reconciler) delete(ctx context.Context, p *pass.Pass, d deletion) error {
	if err := pass.Each(d.owners, func(c ownerChange) error { return r.setOwners(ctx, p, c) }); err != nil {
		return err
	}
	if d.next != "" {
		p.Replaced(d.next, d.pod.Name)
	}
	deleted, err := r.pods.Removed(ctx, p, d.pod, d.reason)
	if deleted && d.bars != (refused{}) {
		r.refusals.bar(p.Parent.GetUID(), d.bars)
	}
	return err
}

// setOwners replaces the owner references of exactly the claim that was read.
func (r *Reconciler) setOwners(ctx context.Context, p *pass.Pass, c ownerChange) error {
	_, err := r.claims.Patch(ctx, p, c.claim, map[string]any{"ownerReferences": c.owners})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("%w: claim %s changed", ownership.ErrStale, c.claim.Name)
	}
	if err != nil {
		p.Warn(c.claim, "FailedUpdate", "Update", "Error changing the owners of claim %s: %v", c.claim.Name, err)
		return fmt.Errorf("change the owners of claim %s: %w", c.claim.Name, err)
	}
	return nil
}

// identify puts the labels of its ordinal on a pod.
func (r *Reconciler) identify(ctx context.Context, p *pass.Pass, c identityChange) error {
	labelled, err := r.pods.Patch(ctx, p, c.pod, map[string]any{"labels": c.labels})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		p.NoteConflict()
		return nil
	}
	if err != nil {
		return fmt.Errorf("label pod %s: %w", c.pod.Name, err)
	}
	if missing := misses(labelled, c.labels); missing != nil {
		return fmt.Errorf("label pod %s: admission takes the labels %v off again", c.pod.Name, missing)
	}
	return nil
}
