package daemonset

// Whole passes against the fake API server: what is read, what is recorded before any pod is touched, what is done, and
// when nothing is.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "agent"}}

func (w *world) reconcile() (reconcile.Result, error) {
	return w.r.Reconcile(context.Background(), request)
}

func (w *world) mustReconcile() reconcile.Result {
	w.t.Helper()
	result, err := w.reconcile()
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (s *server) ds() *appsv1.DaemonSet {
	s.t.Helper()
	var ds appsv1.DaemonSet
	if err := s.Raw.Get(context.Background(), request.NamespacedName, &ds); err != nil {
		s.t.Fatal(err)
	}
	return &ds
}

// TestANamespaceThatIsTerminating: pods that go there do not come back, and the status reports it. Parents may stay in
// such a namespace for days.
func TestANamespaceThatIsTerminating(t *testing.T) {
	w := newWorld(t, agent(), node("n1"), node("n2"))
	w.mustReconcile()
	w.settle()
	w.mustReconcile()
	if err := w.Raw.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	refused := apierrors.NewForbidden(podResource, "", errors.New("the namespace is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.Before = fakeserver.Refuse("create", "Pod", refused)
	w.clock.Step(time.Minute)
	w.mustReconcile() // no error, which would be retried
	if events := w.events.Events("FailedCreate"); len(events) > 0 {
		t.Errorf("events %q", events)
	}
	status := w.ds().Status
	if status.CurrentNumberScheduled != 0 || status.NumberAvailable != 0 {
		t.Errorf("%+v", status)
	}
	if !slices.ContainsFunc(status.Conditions, func(c appsv1.DaemonSetCondition) bool {
		return c.Type == ConditionUpdated && strings.Contains(c.Message, "its namespace is being deleted")
	}) {
		t.Errorf("%+v", status.Conditions)
	}
}

// edit changes the DaemonSet's spec as a person would.
func (s *server) edit(change func(*appsv1.DaemonSet)) {
	s.t.Helper()
	ds := s.ds()
	change(ds)
	ds.Generation++
	if err := s.Raw.Update(context.Background(), ds); err != nil {
		s.t.Fatal(err)
	}
}

func image(image string) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = image }
}

// settle is what scheduler and kubelets do with the pods that are there.
func (s *server) settle() {
	s.t.Helper()
	for _, p := range s.pods() {
		p.Spec.NodeName = bound(p)
		if err := s.Raw.Update(context.Background(), p); err != nil {
			s.t.Fatal(err)
		}
		phase(corev1.PodRunning)(p)
		ready(time.Hour)(p)
		if err := s.Raw.Status().Update(context.Background(), p); err != nil {
			s.t.Fatal(err)
		}
	}
}

// images returns the image of the pod on each node.
func (s *server) images() map[string]string {
	out := map[string]string{}
	for _, p := range s.pods() {
		out[bound(p)] += p.Spec.Containers[0].Image
	}
	return out
}

// revisions returns the number of each stored revision by its name.
func (s *server) revisions() map[string]int64 {
	s.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := s.Raw.List(context.Background(), &list, client.InNamespace("default")); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, r := range list.Items {
		out[r.Name] = r.Revision
	}
	return out
}

// three is a DaemonSet on three nodes, as API objects.
func three(options ...dsOption) []client.Object {
	out := []client.Object{agent(options...)}
	return append(out, asObjects(nodes("n1", "n2", "n3"))...)
}

func TestFirstPass(t *testing.T) {
	w := newWorld(t, three()...)
	w.mustReconcile()
	writes := w.Writes()
	if len(writes) != 5 || writes[0].String()[:len("create ControllerRevision")] != "create ControllerRevision" {
		t.Fatalf("intent is durable first, but the writes are %v", writes)
	}
	if last := writes[4]; last.Verb != "patch status" || last.Version == "" {
		t.Errorf("the last write is %s without a version", last)
	}
	if diff := cmp.Diff(map[string]string{"n1": "agent:1", "n2": "agent:1", "n3": "agent:1"}, w.images()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	for _, p := range w.pods() {
		if hash := p.Labels["controller-revision-hash"]; !metav1.IsControlledBy(p, w.ds()) || w.revisions()["agent-"+hash] != 1 {
			t.Errorf("%s has labels %v and owners %v", p.Name, p.Labels, p.OwnerReferences)
		}
	}
	if s := w.ds().Status; s.DesiredNumberScheduled != 3 || s.CurrentNumberScheduled != 0 || s.NumberUnavailable != 3 || s.ObservedGeneration != 1 || s.CollisionCount != nil {
		t.Errorf("status %+v", s)
	}
}

func TestNothingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		event   string
	}{
		"it is gone": {nil, ""},
		"it is being deleted": {three(func(ds *appsv1.DaemonSet) {
			at := metav1.NewTime(now)
			ds.DeletionTimestamp, ds.Finalizers = &at, []string{"orphan"}
		}), ""},
		"it selects everything": {three(func(ds *appsv1.DaemonSet) { ds.Spec.Selector = &metav1.LabelSelector{} }), "Warning SelectingAll spec.selector is empty and selects all pods, or is not valid; a valid selector that is not empty is required"},
		"its selector is no such": {three(func(ds *appsv1.DaemonSet) {
			ds.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
		}), "Warning SelectingAll spec.selector is empty and selects all pods, or is not valid; a valid selector that is not empty is required"},
	} {
		t.Run(name, func(t *testing.T) {
			// An orphan that an adopter would take, and a pod that would be released.
			orphan, stranger := pod("n1", hashOld), pod("n2", hashOld, func(p *corev1.Pod) { p.Labels["app"] = "other" })
			orphan.OwnerReferences = nil
			w := newWorld(t, append(c.objects, orphan, stranger)...)
			if result := w.mustReconcile(); result != (reconcile.Result{}) {
				t.Errorf("result %+v", result)
			}
			want := "get DaemonSet agent"
			if c.objects != nil {
				want += " get DaemonSet agent" // from the cache, once the consistency store was asked
			}
			if c.event != "" {
				want += " get DaemonSet agent"          // from the cache, once the pass has begun
				want += " patch status DaemonSet agent" // the condition that says the same
			}
			if got := strings.Trim(fmt.Sprint(w.Calls()), "[]"); got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
			if diff := cmp.Diff(c.event, strings.Join(w.events.Events(), "")); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARefusedClaim: a policy refuses the adoption of a pod. The condition and an Event say so, and the pass is
// retried.
func TestARefusedClaim(t *testing.T) {
	orphan := pod("n1", hashOld)
	orphan.OwnerReferences = nil
	w := newWorld(t, append(three(), orphan)...)
	w.Before = fakeserver.Refuse("patch", "Pod", apierrors.NewForbidden(podResource, orphan.Name, errors.New("a policy")))
	if _, err := w.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
	c := findCondition(w.ds().Status.Conditions, ConditionUpdated)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != "FailedClaim" || len(w.events.Events("FailedClaim")) != 1 {
		t.Errorf("%+v, %q", c, w.events.Events())
	}
	w.Before = nil
	w.mustReconcile()
	if c := findCondition(w.ds().Status.Conditions, ConditionUpdated); c.Reason == "FailedClaim" {
		t.Errorf("%+v", c)
	}
}

// TestRefusedNodesStopNoOther: admission refuses the deletion of some pods, or the creation of pods for some nodes. The
// rollout goes on with the other nodes, as upstream's does, whose order is random.
func TestRefusedNodesStopNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		strategy dsOption
		refused  []string
	}{
		"a deletion":                             {rolling(1, 0), []string{"n1"}},
		"two deletions":                          {rolling(1, 0), []string{"n1", "n2"}},
		"two deletions of two":                   {rolling(2, 0), []string{"n1", "n2"}},
		"three deletions of two":                 {rolling(2, 0), []string{"n1", "n2", "n3"}},
		"a creation beside the old pod":          {rolling(0, 1), []string{"n1"}},
		"three creations beside the old pods":    {rolling(0, 1), []string{"n1", "n2", "n3"}},
		"three creations of two beside the olds": {rolling(0, 2), []string{"n1", "n2", "n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append([]client.Object{agent(c.strategy)}, asObjects(nodes("n1", "n2", "n3", "n4", "n5"))...)...)
			w.mustReconcile()
			w.settle()
			w.mustReconcile()
			denied := apierrors.NewForbidden(podResource, "", errors.New("it is protected"))
			protected := map[string]bool{}
			for _, pod := range w.pods() {
				at, _ := nodeOf(pod)
				protected[pod.Name] = slices.Contains(c.refused, at)
			}
			w.Before = func(call fakeserver.Call) error {
				if pod, ok := call.Object.(*corev1.Pod); ok && call.Verb == "create" {
					if at, _ := nodeOf(pod); slices.Contains(c.refused, at) {
						return denied
					}
				}
				if call.Verb == "delete" && protected[call.Name] {
					return denied
				}
				return nil
			}
			w.edit(image("agent:2"))
			for range 40 {
				_, _ = w.reconcile()
				w.settle()
			}
			want := map[string]int{"agent:1": len(c.refused), "agent:2": 5 - len(c.refused)}
			got := map[string]int{}
			for _, pod := range w.pods() {
				got[pod.Spec.Containers[0].Image]++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func asObjects(nodes []*corev1.Node) []client.Object {
	out := make([]client.Object, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, n)
	}
	return out
}
