package statefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	set      *appsv1.StatefulSet
	selector labels.Selector
	pods     []*corev1.Pod
	claims   map[string]*corev1.PersistentVolumeClaim
	entries  []revision.Revision
	// strangers are pods of others under names that the set asks for.
	strangers map[string]*corev1.Pod
	// relabelled holds the names that pods were pointed at in this pass.
	relabelled []string
}

// gather reads the StatefulSet's pods, claims and revisions, and claims what is its own.
func (r *Reconciler) gather(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) (*observed, error) {
	o := &observed{set: set, selector: selector}
	var err error
	if o.pods, err = r.claimPods(ctx, set, selector); err != nil {
		return nil, err
	}
	if o.strangers, err = r.readStrangers(ctx, set, o.pods); err != nil {
		return nil, err
	}
	if o.claims, err = r.readClaims(ctx, set, o.pods); err != nil {
		return nil, err
	}
	if o.entries, err = r.log.Claim(ctx, set, selector); err != nil {
		return nil, err
	}
	return o, nil
}

func (r *Reconciler) claimPods(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) ([]*corev1.Pod, error) {
	var candidates []*corev1.Pod
	err := ownership.Candidates(ctx, r.client, &corev1.PodList{}, set.Namespace, set.UID, selector, true, func(o client.Object) error {
		candidates = append(candidates, asPod(o))
		return nil
	})
	if err != nil {
		return nil, err
	}
	claimer := &ownership.Claimer{
		Parent:    set,
		Kind:      kind,
		Selector:  selector,
		Writer:    r.client,
		Live:      r.live,
		Adoptable: func(child client.Object) error { return adoptable(set, child.GetName()) },
		Wrote:     func(o client.Object) { r.ledger.Wrote(set.UID, podResource, o) },
	}
	pods, err := ownership.Claim(ctx, claimer, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the pods of StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	if claimer.Lost {
		// An orphan may be ours by now, if the response to an earlier adoption was lost; what matched no longer may match
		// again. What is decided without it is wrong.
		return nil, fmt.Errorf("%w: a pod changed while it was being adopted or released", history.ErrStale)
	}
	return pods, nil
}

// readStrangers reads who has the names of the pods that are missing.
func (r *Reconciler) readStrangers(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) (map[string]*corev1.Pod, error) {
	ours := map[string]bool{}
	for _, pod := range pods {
		ours[pod.Name] = true
	}
	out := map[string]*corev1.Pod{}
	start, count := ordinals(set)
	for ordinal := start; ordinal < start+count; ordinal++ {
		name := podName(set, ordinal)
		if ours[name] {
			continue
		}
		pod := &corev1.Pod{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read pod %s/%s: %w", set.Namespace, name, err)
		default:
			out[name] = pod
		}
	}
	return out, nil
}

// readClaims reads the claims of every ordinal that is asked for, and of every pod that there is, by their names.
func (r *Reconciler) readClaims(
	ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod,
) (map[string]*corev1.PersistentVolumeClaim, error) {
	out := map[string]*corev1.PersistentVolumeClaim{}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return out, nil
	}
	start, count := ordinals(set)
	wanted := map[int64]bool{}
	for i := range count {
		wanted[start+i] = true
	}
	for _, pod := range pods {
		if ordinal, ok := ordinalOf(set, pod.Name); ok {
			wanted[ordinal] = true
		}
	}
	for ordinal := range wanted {
		for _, name := range claimNames(set, ordinal) {
			claim := &corev1.PersistentVolumeClaim{}
			err := r.client.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: name}, claim)
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return nil, fmt.Errorf("read claim %s/%s: %w", set.Namespace, name, err)
			default:
				out[name] = claim
			}
		}
	}
	return out, nil
}

// live returns the revisions that something depends on: those that status names, those that pods name, terminating ones
// included, and those that pods were told to name. It is complete on every path (bug 16).
func (o *observed) live() revision.Live {
	refs := append(slices.Clone(o.relabelled), o.set.Status.CurrentRevision, o.set.Status.UpdateRevision)
	for _, pod := range o.pods {
		refs = append(refs, revisionOf(pod))
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

// confirm checks, before this process creates or deletes something for a StatefulSet for the first time, and after an answer was lost,
// that the cache is not behind the API server. It returns an error that wraps [history.ErrStale] if it is.
func (r *Reconciler) confirm(ctx context.Context, o *observed) error {
	why, err := r.fresh.Confirm(ctx, o.set, o.selector, o.children())
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", history.ErrStale, why)
	}
	return err
}

// facts are what the plan for o is made from. asked is the snapshot of the set itself, for an update revision that cannot
// be read, but whose stamp proves that the set has not changed since.
func (r *Reconciler) facts(o *observed, update revision.Revision, asked *revision.Snapshot) (facts, error) {
	f := facts{set: o.set, pods: o.pods, strangers: o.strangers, claims: o.claims, now: r.clock.Now()}
	snapshot := update.Snapshot
	if snapshot == nil {
		snapshot = asked
	}
	template, err := restore(snapshot)
	if err != nil {
		return facts{}, fmt.Errorf("restore StatefulSet %s/%s to its update revision %s: %w", o.set.Namespace, o.set.Name, update.Name, err)
	}
	f.update = source{name: update.Name, template: template}
	f.current = currentOf(o.set, o.entries, f.update)
	return f, nil
}

// currentOf finds the revision that status names as the current one. A set that has none yet starts with the update
// revision. One that cannot be had is no source, and nothing else takes its place (F15).
func currentOf(set *appsv1.StatefulSet, entries []revision.Revision, update source) source {
	name := set.Status.CurrentRevision
	if name == "" || name == update.name {
		return update
	}
	i := slices.IndexFunc(entries, func(r revision.Revision) bool { return r.Name == name })
	switch {
	case i < 0:
		return source{name: name, lost: "that revision is gone"}
	case entries[i].Snapshot == nil:
		return source{name: name, lost: "that revision cannot be read"}
	}
	template, err := restore(entries[i].Snapshot)
	if err != nil {
		return source{name: name, lost: fmt.Sprintf("that revision cannot be restored: %v", err)}
	}
	return source{name: name, template: template}
}

// restore decodes a snapshot into an empty object, so that nothing of the set as it is shows through (kubernetes#78853).
func restore(snapshot *revision.Snapshot) (*corev1.PodTemplateSpec, error) {
	var restored appsv1.StatefulSet
	if err := snapshot.Into(&restored); err != nil {
		return nil, err
	}
	return &restored.Spec.Template, nil
}
