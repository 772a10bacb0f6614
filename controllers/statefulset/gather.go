package statefulset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds all reads of a pass. Objects come from a cache without copies: nothing here or later may change them.

// observed is what one pass works on.
type observed struct {
	set      *appsv1.StatefulSet
	selector labels.Selector
	pods     []*corev1.Pod
	children []pass.Family // the pods
	claims   map[string]*corev1.PersistentVolumeClaim
	entries  []revision.Revision
	// conflicting are pods of other owners under names that the set asks for.
	conflicting map[string]*corev1.Pod
	// pause is that of pods which have ended: see [pass.Pass.Pause].
	pause func(revision, place string) pass.Wait
	// genuine says of a revision that somebody may have planted that nobody has.
	genuine func(revision.Revision) bool
}

// gather reads the StatefulSet's pods, claims and revisions, and adopts and releases pods and revisions.
func (r *Reconciler) gather(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, selector labels.Selector) (*observed, error) {
	pause := func(from, pod string) pass.Wait { return p.PauseAtMost(time.Minute, from, pod) }
	o := &observed{set: set, selector: selector, pause: pause}
	o.genuine = func(e revision.Revision) bool { return r.log.Genuine(ctx, set, e) }
	var err error
	if o.pods, err = r.pods.Claim(ctx, p, selector); err != nil {
		return nil, err
	}
	o.children = []pass.Family{r.pods.Claimed(p, selector, o.pods)}
	if o.conflicting, err = r.readConflicting(ctx, set, o.pods); err != nil {
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

// readConflicting reads which pods have the names of those that are missing.
func (r *Reconciler) readConflicting(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) (map[string]*corev1.Pod, error) {
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
		pod, err := read(ctx, r, podResource, set.Namespace, name, &corev1.Pod{})
		if err != nil {
			return nil, fmt.Errorf("read pod %s/%s: %w", set.Namespace, name, err)
		}
		if pod != nil {
			out[name] = pod
		}
	}
	return out, nil
}

// read returns what the cache has under a name, nil if it has nothing: its own object where it can hand it out. Of a
// set with claims each pass looks for a thousand of them.
func read[O interface {
	comparable
	client.Object
}](ctx context.Context, r *Reconciler, resource schema.GroupResource, namespace, name string, empty O) (found O, err error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if o, ok := r.Consistency.Object(resource, key); ok {
		found, _ = o.(O)
		return found, nil
	}
	if err := r.Client.Get(ctx, key, empty); err != nil {
		return found, client.IgnoreNotFound(err)
	}
	return empty, nil
}

// readClaims reads the claims of every ordinal that is asked for, and of every existing pod, by their names.
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
			claim, err := read(ctx, r, claimResource, set.Namespace, name, &corev1.PersistentVolumeClaim{})
			if err != nil {
				return nil, fmt.Errorf("read claim %s/%s: %w", set.Namespace, name, err)
			}
			if claim != nil {
				out[name] = claim
			}
		}
	}
	return out, nil
}

// lost returns the names of revisions that pods come from and that were deleted or cannot be read.
func (o *observed) lost(recorded *pass.Recorded) map[string]bool {
	out := map[string]bool{}
	for _, pod := range o.pods {
		name := revisionOf(pod)
		there := recorded.Update != nil && recorded.Update.Name == name ||
			slices.ContainsFunc(recorded.Entries, func(r revision.Revision) bool { return r.Name == name && r.Snapshot != nil })
		if name != "" && !there {
			out[name] = true
		}
	}
	return out
}

// facts are what the plan for o is made from. If the update revision could not be recorded, no pod is replaced, and a
// lost one is recreated from the revisions that status names.
func (r *Reconciler) facts(o *observed, recorded *pass.Recorded) (facts, error) {
	f := facts{set: o.set, pods: o.pods, conflicting: o.conflicting, claims: o.claims, now: r.Clock.Now(), lost: o.lost(recorded)}
	f.barred = r.refusals.barred(o.set.UID)
	if recorded.Update == nil {
		f.update = sourceIn(recorded.Entries, cmp.Or(o.set.Status.UpdateRevision, nameOf(recorded.Newest(o.children, o.genuine))))
		f.current = currentOf(o.set, recorded.Entries, f.update)
		return f, nil
	}
	snapshot := recorded.Update.Snapshot
	if snapshot == nil {
		snapshot = recorded.Snapshot // it cannot be read, but its stamp proves that the set has not changed since
	}
	template, err := restore(snapshot)
	if err != nil {
		return facts{}, fmt.Errorf("restore StatefulSet %s/%s to its update revision %s: %w",
			o.set.Namespace, o.set.Name, recorded.Update.Name, err)
	}
	f.update = source{name: recorded.Update.Name, template: template}
	f.pause = func(pod string) pass.Wait { return o.pause(f.update.name, pod) }
	f.current = currentOf(o.set, recorded.Entries, f.update)
	return f, nil
}

func nameOf(r *revision.Revision) string {
	if r == nil {
		return ""
	}
	return r.Name
}

// currentOf finds the revision that status names as the current one. A set that has none yet starts with the update
// revision.
func currentOf(set *appsv1.StatefulSet, entries []revision.Revision, update source) source {
	name := set.Status.CurrentRevision
	if name == "" || name == update.name {
		return update
	}
	return sourceIn(entries, name)
}

// sourceIn finds a revision by its name. One that is lost is no source, and no other takes its place.
func sourceIn(entries []revision.Revision, name string) source {
	i := slices.IndexFunc(entries, func(r revision.Revision) bool { return r.Name == name })
	switch {
	case i < 0:
		return source{name: name, lost: "that revision was deleted"}
	case entries[i].Snapshot == nil:
		return source{name: name, lost: "that revision cannot be read"}
	}
	template, err := restore(entries[i].Snapshot)
	if err != nil {
		return source{name: name, lost: fmt.Sprintf("that revision cannot be restored: %v", err)}
	}
	return source{name: name, template: template}
}

// restore decodes a snapshot into an empty object, so that no field of the set as it is remains (kubernetes#78853).
func restore(snapshot *revision.Snapshot) (*corev1.PodTemplateSpec, error) {
	var restored appsv1.StatefulSet
	if err := snapshot.Into(&restored); err != nil {
		return nil, err
	}
	return &restored.Spec.Template, nil
}
