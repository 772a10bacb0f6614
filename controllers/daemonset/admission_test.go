package daemonset

// What admission makes of pods: whatever it takes away, no pod that serves is replaced again and again.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

func TestAdmissionThatChangesPods(t *testing.T) {
	at := func(node string, change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if on, _ := nodeOf(p); on == node {
				change(p)
			}
		}
	}
	hash := func(p *corev1.Pod) { delete(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey) }
	selected := func(p *corev1.Pod) { delete(p.Labels, "app") }
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		// So many pods are there in the end. So many are created, deleted and tried, at most, in two processes.
		pods, creates, deletes, trials int
		says                           string
	}{
		"the hash label":              {hash, 3, 3, 0, 24, "label controller-revision-hash is"},
		"the hash label on one node":  {at("n1", hash), 3, 3, 0, 24, "label controller-revision-hash is"},
		"another hash":                {func(p *corev1.Pod) { p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = "x" }, 3, 3, 0, 24, `is "x" and not`},
		"the selector's label":        {selected, 0, 2, 2, 40, "the selector does not match"},
		"that of the pod on one node": {at("n1", selected), 2, 4, 2, 24, "the selector does not match"},
		"the node that it goes to":    {func(p *corev1.Pod) { p.Spec.Affinity = nil }, 0, 2, 2, 40, "it is not bound to node"},
		"its owner":                   {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }, 0, 2, 2, 40, "it has another owner"},
		"that it has one":             {func(p *corev1.Pod) { p.OwnerReferences = nil }, 3, 3, 0, 0, "latest ControllerRevision"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, three(rolling(2, 0))...)
			w.Before = func(call fakeserver.Call) error {
				if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
					c.change(pod)
				}
				return nil
			}
			w.passes(20)
			w = worldOf(w.server, nil, nil) // another process, which remembers nothing
			w.passes(20)
			creates, deletes, trials := w.Count("create", "Pod"), w.Count("delete", "Pod"), w.Count(fakeserver.TryCreate, "Pod")
			if creates > c.creates || deletes > c.deletes || len(w.pods()) != c.pods || trials > c.trials || (trials == 0) != (c.trials == 0) {
				t.Errorf("%d creates, %d deletes and %d dry runs, and %d pods", creates, deletes, trials, len(w.pods()))
			}
			if got := findCondition(w.ds().Status.Conditions, ConditionUpdated); got == nil || !strings.Contains(got.Message, c.says) {
				t.Errorf("the condition is %+v, want %q", got, c.says)
			}
			w.rollsOnce(c.pods)
			w.Before = nil
			w.passes(20)
			for _, pod := range w.pods() {
				if pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != w.current() {
					t.Errorf("in the end pod %s has labels %v", pod.Name, pod.Labels)
				}
			}
			if len(w.pods()) != 3 {
				t.Errorf("in the end there are %d pods", len(w.pods()))
			}
		})
	}
}

// rollsOnce edits the image while admission alters pods. Each pod is replaced once.
func (w *world) rollsOnce(pods int) {
	w.t.Helper()
	creates := w.Count("create", "Pod")
	w.edit(image("agent:2"))
	w.passes(20)
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "agent:2" {
			w.t.Errorf("pod %s has image %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	if made := w.Count("create", "Pod") - creates; made > pods+1 {
		w.t.Errorf("%d pods were created by an edit", made)
	}
}

// TestASurgeThatAdmissionAlters: admission strips the label on one node. The old pod there is replaced as well, and the
// surge is free for the other nodes.
func TestASurgeThatAdmissionAlters(t *testing.T) {
	w := newWorld(t, three(rolling(0, 1))...)
	w.passes(3)
	w.Before = func(call fakeserver.Call) error {
		if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
			if on, _ := nodeOf(pod); on == "n1" {
				delete(pod.Labels, appsv1.DefaultDaemonSetUniqueLabelKey)
			}
		}
		return nil
	}
	w.edit(image("agent:2"))
	w.passes(20)
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "agent:2" {
			t.Errorf("pod %s has the old image", pod.Name)
		}
	}
	if pods, creates := len(w.pods()), w.Count("create", "Pod"); pods != 3 || creates != 6 {
		t.Errorf("%d pods, after %d creates, want 3 and 6", pods, creates)
	}
}

// TestAnAlteredPodOfAnUnknownRevision: a process that has just started knows of no altered pod from which revision it
// is. If the pod is not ready, it comes from a broken earlier revision, and the rollout must not wait for it.
func TestAnAlteredPodOfAnUnknownRevision(t *testing.T) {
	w := newWorld(t, three(rolling(1, 0))...)
	w.Before = func(call fakeserver.Call) error {
		if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
			if on, _ := nodeOf(pod); on == "n1" {
				delete(pod.Labels, appsv1.DefaultDaemonSetUniqueLabelKey)
			}
		}
		return nil
	}
	w.passes(5)
	for _, pod := range w.pods() {
		if on, _ := nodeOf(pod); on == "n1" {
			notReady(pod)
			if err := w.Raw.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.edit(image("agent:2"))
	w = worldOf(w.server, nil, nil)
	w.passes(10)
	for _, pod := range w.pods() {
		if pod.Spec.Containers[0].Image != "agent:2" {
			t.Errorf("pod %s has the old image", pod.Name)
		}
	}
	if creates := w.Count("create", "Pod"); creates != 6 {
		t.Errorf("%d pods were created, want 6", creates)
	}
}

// TestAPodWithoutANodeIsNotTried: nothing would take its place, which says nothing about the altered pods.
func TestAPodWithoutANodeIsNotTried(t *testing.T) {
	lost := pod("n1", "", named("a"))
	lost.Spec.NodeName = ""
	w := newWorld(t, append(three(), lost)...)
	w.Before = func(call fakeserver.Call) error {
		if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
			delete(pod.Labels, appsv1.DefaultDaemonSetUniqueLabelKey)
		}
		return nil
	}
	w.passes(20)
	if creates := w.Count("create", "Pod"); creates != 3 {
		t.Errorf("%d pods were created on 3 nodes", creates)
	}
}

// TestALostPodThatIsBound: the scheduler writes to a lost pod before its deletion.
func TestALostPodThatIsBound(t *testing.T) {
	w := newWorld(t, three()...)
	w.Before = func(call fakeserver.Call) error {
		if pod, ok := call.Object.(*corev1.Pod); ok && strings.Contains(call.Verb, "create") {
			delete(pod.Labels, "app")
		}
		return nil
	}
	writes := map[string]int{}
	w.After = func(call fakeserver.Call) error {
		pod, ok := call.Object.(*corev1.Pod)
		if !ok || call.Verb != "create" {
			return nil
		}
		writes[pod.Name]++
		pod = pod.DeepCopy()
		pod.Status.StartTime = &metav1.Time{Time: w.clock.Now()}
		return w.Raw.Status().Update(t.Context(), pod)
	}
	if _, err := w.reconcile(); err == nil || len(writes) == 0 || len(w.pods()) != 0 {
		t.Errorf("%v; pods with writes %v, of which %d are there", err, writes, len(w.pods()))
	}
}

// passes reconciles n times, 20 seconds apart.
func (w *world) passes(n int) {
	for range n {
		_, _ = w.reconcile()
		w.settle()
		w.clock.Step(20 * time.Second)
	}
}

// TestDryRunsThatAreRefused: only the pod that was seen to be altered stays, for five minutes. Other pods with the
// label of an unknown revision are replaced.
func TestDryRunsThatAreRefused(t *testing.T) {
	w := newWorld(t, three()...)
	w.passes(2)
	strip := true
	w.Before = func(call fakeserver.Call) error {
		pod, ok := call.Object.(*corev1.Pod)
		if !ok || !strings.Contains(call.Verb, "create") {
			return nil
		}
		if on, _ := nodeOf(pod); strip && on == "n1" {
			delete(pod.Labels, appsv1.DefaultDaemonSetUniqueLabelKey)
		}
		if call.Verb == fakeserver.TryCreate && !strip {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota"))
		}
		return nil
	}
	w.edit(image("agent:2"))
	w.passes(10)
	strip = false
	for _, pod := range w.pods() {
		if pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != "" {
			pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = "strange"
			if err := w.Raw.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	updated := func() (out int) {
		for _, pod := range w.pods() {
			if pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == w.current() {
				out++
			}
		}
		return out
	}
	if w.passes(10); updated() != 2 {
		t.Errorf("after 3 minutes %d of 3 are updated, want 2", updated())
	}
	if w.passes(10); updated() != 3 {
		t.Errorf("after 6 minutes %d of 3 are updated", updated())
	}
}

// A dry run that is refused, by a quota that is full for one, says nothing about what admission makes of pods: what
// nobody has seen to be altered is rolled. A pod that was seen stays for five minutes: then one is replaced to find
// out.
func TestAdmissionThatCannotBeTried(t *testing.T) {
	for name, strip := range map[string]bool{"pods are let be": false, "pods are changed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, three()...)
			w.passes(4)
			for _, pod := range w.pods() { // by whom, nobody knows
				pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = "strange"
				if err := w.Raw.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			w.Before = func(call fakeserver.Call) error {
				pod, ok := call.Object.(*corev1.Pod)
				switch {
				case ok && call.Verb == fakeserver.TryCreate:
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota"))
				case ok && call.Verb == "create" && strip:
					delete(pod.Labels, appsv1.DefaultDaemonSetUniqueLabelKey)
				}
				return nil
			}
			before := w.Count("create", "Pod")
			w.passes(30)
			made, current := w.Count("create", "Pod")-before, 0
			for _, pod := range w.pods() {
				if pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == w.current() {
					current++
				}
			}
			if strip && (made < 2 || made > 4) || // in ten minutes
				!strip && current != 3 || len(w.pods()) != 3 {
				t.Errorf("%d pods were made, %d of %d are updated", made, current, len(w.pods()))
			}
		})
	}
}

// current is the hash of the newest revision.
func (s *server) current() string {
	s.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := s.Raw.List(s.t.Context(), &list, client.InNamespace("default")); err != nil || len(list.Items) == 0 {
		s.t.Fatalf("%d revisions, %v", len(list.Items), err)
	}
	newest := slices.MaxFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	return newest.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
}

// TestAPlanThatFailsEndsThePass: admission alters new pods, and the plan that replaces none cannot be made. The first
// plan, which deletes a pod, is not carried out.
func TestAPlanThatFailsEndsThePass(t *testing.T) {
	w := newWorld(t, append(three(rolling(1, 0)), pod("n1", hashOld), pod("n2", hashOld), pod("n3", hashOld))...)
	p, failed := w.r.NewPass(w.ds()), errors.New("the cache cannot be read")
	o := w.gathered(p)
	row := w.r.row(p, o)
	usual := row.Plan
	row.Plan = func(recorded *pass.Recorded, altered pass.Altered) (*plan, error) {
		if altered(o.pods[0], recorded.Update.Hash) {
			return nil, failed
		}
		return usual(recorded, altered)
	}
	row.Try = func(context.Context, *plan, client.Object) (bool, error) {
		return true, &pass.AlteredError{What: "its label is gone"}
	}
	if err := row.Run(t.Context(), p); !errors.Is(err, failed) || len(w.WritesTo("Pod")) != 0 {
		t.Errorf("%v, and it wrote %v", err, w.WritesTo("Pod"))
	}
}
