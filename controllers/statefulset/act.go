package statefulset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

// This file holds all writes to pods and claims.

// act carries a plan out: what pods and claims lack, then creates, slowly at first, then deletes, all at once. It returns
// all errors, joined; one that wraps [history.ErrStale], or is [ownership.Superseded], says that the plan rests on an old
// read.
func (r *Reconciler) act(ctx context.Context, set *appsv1.StatefulSet, p *plan) error {
	for _, name := range p.foreign {
		r.recorder.Eventf(set, nil, corev1.EventTypeWarning, "ConflictingController", "Update",
			"Claim %s has another controller, so its retention policy is ignored", name)
	}
	still := ownership.Unedited(ctx, r.client, set)
	made := errors.Join(
		ownership.Each(p.owners, func(c ownerChange) error { return r.setOwners(ctx, set, c) }),
		ownership.Each(p.identities, func(c identityChange) error { return r.identify(ctx, set, c) }),
		ownership.SlowStart(p.claims, still, func(claim *corev1.PersistentVolumeClaim) error { return r.createClaim(ctx, set, claim) }),
		ownership.SlowStart(p.creates, still, func(c creation) error { return r.create(ctx, set, c) }),
	)
	if ownership.Superseded(made) {
		return made
	}
	return errors.Join(made, ownership.Each(p.deletes, func(d deletion) error { return r.delete(ctx, set, d) }))
}

// create makes the claims of one ordinal, and then its pod: from the revision that it is to come from, or from the one that
// the plan names for the case that the API server refuses the first for good.
func (r *Reconciler) create(ctx context.Context, set *appsv1.StatefulSet, c creation) error {
	for _, claim := range c.claims {
		if err := r.createClaim(ctx, set, claim); err != nil {
			return err
		}
	}
	err := r.createPod(ctx, set, c.ordinal, c.from, c.reason)
	switch {
	case !refusesContent(err):
	case c.instead.template != nil:
		reason := fmt.Sprintf("revision %s, because a pod of revision %s is refused: %v", c.instead.name, c.from.name, err)
		if instead := r.createPod(ctx, set, c.ordinal, c.instead, reason); instead != nil {
			err = fmt.Errorf("%w; and from revision %s: %w", err, c.instead.name, instead)
			break
		}
		return nil
	case c.held:
		start, _ := ordinals(set)
		err = fmt.Errorf("%w; a pod below the partition comes from the current revision, %s, and from no other: "+
			"allow that one, or lower the partition to %d", err, c.from.name, c.ordinal-start)
	}
	if err != nil && !errors.Is(err, history.ErrStale) {
		name := podName(set, c.ordinal)
		r.recorder.Eventf(set, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "Error creating pod %s: %v", name, err)
		return fmt.Errorf("create pod %s: %w", name, err)
	}
	return err
}

// createPod makes the pod of one ordinal from one revision.
func (r *Reconciler) createPod(ctx context.Context, set *appsv1.StatefulSet, ordinal int64, from source, reason string) error {
	pod := podFor(set, from, ordinal)
	// A pod of ours that is there already is looked at in the next pass, whatever it was made from: this one rests on a
	// cache that does not show it.
	how, err := r.pods.Create(ctx, set, pod, func(client.Object) bool { return true })
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // nothing can be made here any more, and nobody wants to read so
	case err != nil:
		return err
	case how == ownership.Taken:
		return r.taken(ctx, set, pod)
	case how == ownership.Existed:
		return fmt.Errorf("%w: pod %s is there, and the cache does not show it", history.ErrStale, pod.Name)
	}
	r.recorder.Eventf(set, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created pod: %s (%s)", pod.Name, reason)
	return nil
}

// refusesContent reports whether the API server will not have a pod because of what is in it: validation says so with 422,
// policies, webhooks and admission plugins with 403 or 422. An exhausted quota answers 403 as well, but it speaks of a
// moment: it would be as wrong to spread a revision that nobody has seen working because of that, as because of a lost
// connection. The API has no code for it, so that the sentence has to be looked at; where it changes some day, the pod
// comes from the update revision if that fits into the quota.
func refusesContent(err error) bool {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return false
	}
	said := err.Error()
	return !strings.Contains(said, "exceeded quota") && !strings.Contains(said, "status unknown for quota")
}

// taken says who has the name of a pod. No other name will do, so there is nothing but to wait until it is free.
func (r *Reconciler) taken(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	found := &corev1.Pod{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(pod), found); err != nil {
		return client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(found, set) {
		return fmt.Errorf("%w: pod %s is there, and the cache does not show it", history.ErrStale, pod.Name)
	}
	return fmt.Errorf("another pod has the name, and belongs to %s; it is left alone", ownerName(found))
}

// ownerName says whose an object is.
func ownerName(o client.Object) string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.Kind + " " + ref.Name
	}
	return "nobody"
}

// createClaim makes a claim. One that exists is used, whoever made it, once the cache shows in which state it is.
func (r *Reconciler) createClaim(ctx context.Context, set *appsv1.StatefulSet, claim *corev1.PersistentVolumeClaim) error {
	err := r.client.Create(ctx, claim)
	switch {
	case err == nil:
		r.ledger.Wrote(set.UID, claimResource, claim)
		r.recorder.Eventf(set, claim, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created claim: %s", claim.Name)
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w: claim %s is there, and the cache does not show it", history.ErrStale, claim.Name)
	}
	r.recorder.Eventf(set, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "Error creating claim %s: %v", claim.Name, err)
	return fmt.Errorf("create claim %s: %w", claim.Name, err)
}

// delete removes the pod that the plan was made from, unless it changed since. The claims that go with it must say so
// first.
func (r *Reconciler) delete(ctx context.Context, set *appsv1.StatefulSet, d deletion) error {
	if err := ownership.Each(d.owners, func(c ownerChange) error { return r.setOwners(ctx, set, c) }); err != nil {
		return err
	}
	deleted, err := r.pods.Delete(ctx, set, d.pod)
	if err != nil {
		r.recorder.Eventf(set, d.pod, corev1.EventTypeWarning, "FailedDelete", "Delete", "Error deleting pod %s: %v", d.pod.Name, err)
		return fmt.Errorf("delete pod %s: %w", d.pod.Name, err)
	}
	if deleted {
		r.recorder.Eventf(set, d.pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted pod: %s (%s)", d.pod.Name, d.reason)
	}
	return nil
}

// setOwners replaces the owner references of exactly the claim that was read.
func (r *Reconciler) setOwners(ctx context.Context, set *appsv1.StatefulSet, c ownerChange) error {
	out := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.claim.Namespace, Name: c.claim.Name}}
	err := r.patch(ctx, c.claim, out, map[string]any{"ownerReferences": c.owners})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("%w: claim %s changed", history.ErrStale, c.claim.Name)
	}
	if err != nil {
		r.recorder.Eventf(set, c.claim, corev1.EventTypeWarning, "FailedUpdate", "Update",
			"Error changing the owners of claim %s: %v", c.claim.Name, err)
		return fmt.Errorf("change the owners of claim %s: %w", c.claim.Name, err)
	}
	r.ledger.Wrote(set.UID, claimResource, out)
	return nil
}

// identify puts the labels of its ordinal on a pod.
func (r *Reconciler) identify(ctx context.Context, set *appsv1.StatefulSet, c identityChange) error {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.pod.Namespace, Name: c.pod.Name}}
	err := r.patch(ctx, c.pod, out, map[string]any{"labels": c.labels})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its event wakes us
	}
	if err != nil {
		return fmt.Errorf("label pod %s: %w", c.pod.Name, err)
	}
	r.ledger.Wrote(set.UID, podResource, out)
	return nil
}

// relabel returns what points the pods of a duplicate revision at the one that stays. Only pods that carry the duplicate's
// name are touched: relabelling the others was kubernetes#111280. If status names the duplicate, it is told first, and the
// duplicate goes in a later pass (H3).
func (r *Reconciler) relabel(o *observed) history.Relabel {
	return func(ctx context.Context, from, to revision.Revision) error {
		// A pod that the cache does not show would keep the label of a revision that is about to go.
		if err := r.confirm(ctx, o); err != nil {
			return err
		}
		if err := r.rename(ctx, o, from.Name, to.Name); err != nil {
			return err
		}
		o.relabelled = append(o.relabelled, to.Name) // even if a response is lost
		var mine []int
		for i, pod := range o.pods {
			if revisionOf(pod) == from.Name {
				mine = append(mine, i)
			}
		}
		err := ownership.Each(mine, func(i int) error { return r.point(ctx, o, i, to) })
		if ownership.OutcomeUnknown(err) {
			r.fresh.Forget(o.set.UID) // as after any other write whose answer was lost
		}
		return err
	}
}

// point writes the name of a revision into the label of the i-th pod.
func (r *Reconciler) point(ctx context.Context, o *observed, i int, to revision.Revision) error {
	pod := o.pods[i]
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := r.patch(ctx, pod, out, map[string]any{"labels": map[string]string{appsv1.StatefulSetRevisionLabel: to.Name}})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	r.ledger.Wrote(o.set.UID, podResource, out)
	o.pods[i] = out // what follows in this pass must not take it for one of the duplicate
	return nil
}

// patch changes the metadata of exactly the object that was read, and fails with a conflict if it changed since.
func (r *Reconciler) patch(ctx context.Context, read, out client.Object, metadata map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = read.GetUID(), read.GetResourceVersion()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
}

func asPod(o client.Object) *corev1.Pod {
	return o.(*corev1.Pod) //nolint:forcetypeassert // every caller asks for pods
}
