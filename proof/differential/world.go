package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file applies programs to both namespaces, waits until they are at rest, and compares.

const (
	// quiet is how long no object changes before a world counts as at rest. No event marks rest: a rollout that is stuck
	// does nothing. It is longer than slow pods need to get ready or to terminate.
	quiet = 5 * time.Second
	// atMost is how long a step may take until rest. A pod that fails again and again is never at rest.
	atMost = 45 * time.Second
	// patience is how long cairn may have less than upstream: some of its decisions wait a minute.
	patience = 100 * time.Second
	// phaseAnnotation makes the simulated kubelet end a pod.
	phaseAnnotation = "sandbox.cairn.dev/phase"
)

// world is both namespaces and the workloads in them.
type world struct {
	client.Client

	// cairn and upstream are the namespaces.
	cairn, upstream string
	workloads       []*workload
	// programs are the steps so far, by the name of the workload.
	programs map[string][]string
	// claims are the claims of a workload at the last rest, by namespace and name.
	claims map[string]map[types.UID]bool
	random *rand.Rand
	// reported are the workloads that were found to be worse. They are not compared again.
	reported map[string]bool
}

// start creates the known workloads and so many others in both namespaces.
func (w *world) start(ctx context.Context, n int) error {
	w.programs, w.claims, w.reported = map[string][]string{}, map[string]map[types.UID]bool{}, map[string]bool{}
	for i, name := range pools {
		if err := w.label(ctx, fmt.Sprintf("node-%d", i), name); err != nil {
			return err
		}
	}
	w.workloads = known()
	for i := range n {
		w.workloads = append(w.workloads, newWorkload(fmt.Sprintf("w%d", i), w.random))
	}
	for _, made := range w.workloads {
		w.programs[made.name] = []string{made.String()}
		if err := w.apply(ctx, made); err != nil {
			return err
		}
	}
	return w.rest(ctx)
}

// step changes the label of a node or takes the next steps of each program, and waits for rest.
func (w *world) step(ctx context.Context) error {
	if len(w.workloads[0].script) == 0 && w.random.IntN(4) == 0 {
		node, name := fmt.Sprintf("node-%d", w.random.IntN(len(pools))), []string{"", "a", "b"}[w.random.IntN(3)]
		for _, each := range w.workloads {
			w.programs[each.name] = append(w.programs[each.name], fmt.Sprintf("%s is in pool %q", node, name))
		}
		return errors.Join(w.label(ctx, node, name), w.rest(ctx))
	}
	var programs sync.WaitGroup
	errs := make([]error, len(w.workloads))
	for i, each := range w.workloads {
		next := each.next(w.random)
		programs.Go(func() { errs[i] = w.take(ctx, each, next) })
		for _, s := range next {
			w.programs[each.name] = append(w.programs[each.name], s.what)
		}
	}
	programs.Wait()
	return errors.Join(errors.Join(errs...), w.rest(ctx))
}

// take takes steps that belong together.
func (w *world) take(ctx context.Context, of *workload, steps []step) error {
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.after):
		}
		if s.edit != nil {
			s.edit(of)
			if err := w.apply(ctx, of); err != nil {
				return err
			}
		}
		if s.node != "" {
			if err := w.label(ctx, s.node, ""); err != nil {
				return err
			}
		}
		if s.victims > 0 {
			if err := errors.Join(w.disturb(ctx, of, s, w.cairn), w.disturb(ctx, of, s, w.upstream)); err != nil {
				return err
			}
		}
	}
	return nil
}

// label puts a node into a pool, or into none. Nodes are not deleted: which pods would be lost depends on the
// scheduler.
func (w *world) label(ctx context.Context, node, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var is corev1.Node
		if err := w.Get(ctx, types.NamespacedName{Name: node}, &is); err != nil {
			return err
		}
		if delete(is.Labels, poolLabel); name != "" {
			is.Labels[poolLabel] = name
		}
		return w.Update(ctx, &is)
	})
}

// apply brings the manifest of a workload to both namespaces.
func (w *world) apply(ctx context.Context, of *workload) error {
	for _, namespace := range []string{w.cairn, w.upstream} {
		want := w.object(of, namespace)
		err := w.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			err = w.update(ctx, of, namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// object is the manifest for one namespace, with a host port that no other workload has.
func (w *world) object(of *workload, namespace string) client.Object {
	port := 2 * slices.Index(w.workloads, of)
	if namespace == w.cairn {
		port++
	}
	return of.object(namespace, int32(20000+port))
}

func (w *world) update(ctx context.Context, of *workload, namespace string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		want := w.object(of, namespace)
		is := want.DeepCopyObject().(client.Object)
		if err := w.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
			return err
		}
		switch is := is.(type) {
		case *appsv1.DaemonSet:
			is.Spec = want.(*appsv1.DaemonSet).Spec
		case *appsv1.StatefulSet:
			is.Spec = want.(*appsv1.StatefulSet).Spec
		case *appsv1.ReplicaSet:
			is.Spec = want.(*appsv1.ReplicaSet).Spec
		}
		return w.Update(ctx, is)
	})
}

// disturb deletes pods or makes them fail, in one namespace.
func (w *world) disturb(ctx context.Context, of *workload, s step, namespace string) error {
	pods, err := w.pods(ctx, of, namespace)
	if err != nil || len(pods) == 0 {
		return err
	}
	for i := range min(s.victims, len(pods)) {
		pod := &pods[(s.at+i)%len(pods)]
		if s.how == "delete" {
			err = w.Delete(ctx, pod)
		} else {
			before := pod.DeepCopy()
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[phaseAnnotation] = s.how
			err = w.Patch(ctx, pod, client.MergeFrom(before))
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// pods are the pods of a workload, sorted by name. The pods of a DaemonSet are sorted by readiness and image. Its
// rollouts take the nodes in any order, and a step must hit equal pods in both namespaces.
func (w *world) pods(ctx context.Context, of *workload, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": of.name}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		if of.kind == daemonSet {
			return cmp.Or(
				-compare(podutil.IsPodReady(&a), podutil.IsPodReady(&b)), cmp.Compare(a.Spec.Containers[0].Image, b.Spec.Containers[0].Image),
				cmp.Compare(a.Spec.NodeName, b.Spec.NodeName),
			)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}

// compare compares booleans: false comes before true.
func compare(a, b bool) int {
	if a == b {
		return 0
	}
	if b {
		return -1
	}
	return 1
}

// rest waits until nothing has changed in both namespaces for a while.
func (w *world) rest(ctx context.Context) error {
	last, since := "", time.Now()
	for end := time.Now().Add(atMost); time.Now().Before(end); {
		now, err := w.versions(ctx)
		if err != nil {
			return err
		}
		switch {
		case now != last:
			last, since = now, time.Now()
		case time.Since(since) >= quiet:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// versions are the names and resource versions of all that the programs are about.
func (w *world) versions(ctx context.Context) (string, error) {
	var out strings.Builder
	for _, namespace := range []string{w.cairn, w.upstream} {
		for _, list := range []client.ObjectList{
			&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.DaemonSetList{}, &appsv1.StatefulSetList{}, &appsv1.ReplicaSetList{},
		} {
			if err := w.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return "", err
			}
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				item := o.(client.Object)
				_, err := fmt.Fprintln(&out, item.GetUID(), item.GetResourceVersion())
				return err
			})
		}
	}
	return out.String(), nil
}

// state is what counts about a workload at rest.
type state struct {
	// available are the places with a pod that has been ready for minReadySeconds: nodes of a DaemonSet, names of other
	// pods. updated are the places with such a pod of the image that the workload asks for. claims are the claims that are
	// not terminating. kept are the claims that were there at the last rest, too.
	available, updated, claims, kept int
	pods                             string
}

// less reports what one state has less of than another one, empty for nothing.
func (s state) less(than state) string {
	var out []string
	for _, c := range []struct {
		what      string
		has, want int
	}{
		{"available pods", s.available, than.available},
		{"updated pods", s.updated, than.updated},
		{"claims", s.claims, than.claims},
		{"claims of before", s.kept, than.kept},
	} {
		if c.has < c.want {
			out = append(out, fmt.Sprintf("%d and not %d %s", c.has, c.want, c.what))
		}
	}
	return strings.Join(out, ", ")
}

// look returns the state of a workload in a namespace.
func (w *world) look(ctx context.Context, of *workload, namespace string) (state, error) {
	pods, err := w.pods(ctx, of, namespace)
	if err != nil {
		return state{}, err
	}
	var out state
	var text []string
	places, updated := map[string]bool{}, map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		available := podutil.IsPodAvailable(pod, of.minReady, metav1.Now()) && pod.DeletionTimestamp == nil
		if available {
			place := pod.Name
			if of.kind == daemonSet {
				place = pod.Spec.NodeName
			}
			places[place] = true
			if pod.Spec.Containers[0].Image == of.image {
				updated[place] = true
			}
		}
		text = append(text, fmt.Sprintf("%s on %q %s available=%t", pod.Name, pod.Spec.NodeName, pod.Spec.Containers[0].Image, available))
	}
	out.available, out.updated, out.pods = len(places), len(updated), strings.Join(text, "; ")
	claims, err := w.liveClaims(ctx, of, namespace)
	if err != nil {
		return state{}, err
	}
	out.claims = len(claims)
	for uid := range claims {
		if w.claims[namespace+"/"+of.name][uid] {
			out.kept++
		}
	}
	return out, nil
}

// worse describes the workloads of which cairn has less than upstream. It waits as long as cairn may take.
func (w *world) worse(ctx context.Context) ([]string, error) {
	for end := time.Now().Add(patience); ; {
		found := map[string]string{}
		for _, each := range w.workloads {
			if w.reported[each.name] {
				continue
			}
			ours, err := w.look(ctx, each, w.cairn)
			if err != nil {
				return nil, err
			}
			theirs, err := w.look(ctx, each, w.upstream)
			if err != nil {
				return nil, err
			}
			if less := ours.less(theirs); less != "" {
				found[each.name] = fmt.Sprintf("%s: %s\n  program: %s\n  cairn: %s\n  upstream: %s",
					each.name, less, strings.Join(w.programs[each.name], "; "), ours.pods, theirs.pods)
			}
		}
		if len(found) == 0 || time.Now().After(end) {
			for name := range found {
				w.reported[name] = true
			}
			return slices.Sorted(maps.Values(found)), w.remember(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// remember keeps the claims of this rest.
func (w *world) remember(ctx context.Context) error {
	for _, namespace := range []string{w.cairn, w.upstream} {
		for _, each := range w.workloads {
			claims, err := w.liveClaims(ctx, each, namespace)
			if err != nil {
				return err
			}
			w.claims[namespace+"/"+each.name] = claims
		}
	}
	return nil
}

// liveClaims are the UIDs of the claims of a workload that are not terminating.
func (w *world) liveClaims(ctx context.Context, of *workload, namespace string) (map[types.UID]bool, error) {
	var list corev1.PersistentVolumeClaimList
	if err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": of.name}); err != nil {
		return nil, err
	}
	out := map[types.UID]bool{}
	for i := range list.Items {
		if claim := &list.Items[i]; claim.DeletionTimestamp == nil {
			out[claim.UID] = true
		}
	}
	return out, nil
}
