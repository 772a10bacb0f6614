package statefulset

// Whole passes against the fake API server: what is read, what is recorded before any pod is touched, what is done, and
// when nothing is.

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

func TestFirstPass(t *testing.T) {
	w := newWorld(t, web(data(retain, retain)))
	w.mustReconcile()
	var got []string
	for _, c := range w.Writes() {
		got = append(got, c.Verb+" "+c.Kind)
	}
	want := []string{"create ControllerRevision", "create PersistentVolumeClaim", "create Pod", "patch status StatefulSet"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intent is durable first, and a claim before its pod (-want +got):\n%s", diff)
	}
	p := w.pod(0)
	if p.Spec.Hostname != "web-0" || p.Spec.Subdomain != "nginx" || p.Labels["apps.kubernetes.io/pod-index"] != "0" ||
		p.Labels["statefulset.kubernetes.io/pod-name"] != "web-0" || !metav1.IsControlledBy(p, w.set()) {
		t.Errorf("pod %+v", p)
	}
	s := w.set().Status
	if s.CurrentRevision != s.UpdateRevision || s.UpdateRevision != p.Labels["controller-revision-hash"] || s.ObservedGeneration != 1 ||
		s.CollisionCount != nil {
		t.Errorf("status %+v, pod %v", s, p.Labels)
	}
}

// TestAPodThatIsNoMember: a user's copy of a pod has the set's owner reference, and a name that the set never gives.
// The set releases it. Otherwise the garbage collector would delete it with the set.
func TestAPodThatIsNoMember(t *testing.T) {
	w := newWorld(t, web())
	w.rounds(5)
	canary := w.pod(0)
	canary.Name, canary.UID, canary.ResourceVersion = "web-canary", "canary", ""
	w.must(w.Create(t.Context(), canary))
	w.rounds(2)
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(canary), canary))
	if len(canary.OwnerReferences) > 0 || w.Count("delete", "Pod") > 0 {
		t.Errorf("owners %v, %d pods deleted", canary.OwnerReferences, w.Count("delete", "Pod"))
	}
	before := len(w.Writes())
	w.rounds(2)
	if n := len(w.Writes()) - before; n > 0 {
		t.Errorf("%d writes afterwards", n)
	}
}

// TestLostPods: what is lost on the way comes back as it was, restored from the stored revision and not from the set.
func TestLostPods(t *testing.T) {
	for name, c := range map[string]struct {
		options []setOption
		pods    []*corev1.Pod
		want    string
	}{
		"below the partition": {[]setOption{partition(2)}, []*corev1.Pod{pod(1, "a"), pod(2, "b")}, "web:a"},
		"not reached":         {nil, []*corev1.Pod{pod(1, "a"), pod(2, "b")}, "web:a"},
		"reached":             {nil, []*corev1.Pod{pod(1, "b"), pod(2, "b")}, "web:b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, between(t, c.options, c.pods...)...)
			w.mustReconcile()
			if got := w.pod(0); got.Spec.Containers[0].Image != c.want || got.Labels["controller-revision-hash"] != strings.Replace(c.want, ":", "-", 1) {
				t.Errorf("%s with %v, want %s", got.Spec.Containers[0].Image, got.Labels, c.want)
			}
		})
	}
}

// TestLostRevision: without the current revision, the pods that it is for are not made, and a condition says so.
func TestLostRevision(t *testing.T) {
	objects := between(t, []setOption{partition(1)}, pod(1, "b"), pod(2, "b"))
	unreadable := stored(t, "a", "web:a", 1)
	unreadable.Data.Raw = []byte(`{"spec":{"template":"no"}}`)
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"gone":       {append([]client.Object{objects[0]}, objects[2:]...), "that revision was deleted"},
		"unreadable": {append([]client.Object{objects[0], unreadable}, objects[2:]...), "that revision cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.mustReconcile()
			want := "False CurrentRevisionLost: 2 of 3 pods updated; web-0: it is to come from revision web-a, and " + c.want
			if diff := cmp.Diff(want, w.condition(ConditionUpdated)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if s := w.set().Status; s.CurrentRevision != "web-a" || len(w.WritesTo("Pod")) != 0 {
				t.Errorf("current revision %s, wrote %v", s.CurrentRevision, w.WritesTo("Pod"))
			}
			// Once there is nothing to guard, all goes on, and the name of the lost one is forgotten at the end.
			w.edit(partition(0))
			w.rounds(3)
			if s := w.set().Status; s.CurrentRevision != "web-b" || w.images() != thrice("web:b") {
				t.Errorf("current revision %s, pods %s", s.CurrentRevision, w.images())
			}
		})
	}
}

// TestAboveALostRevision: a pod that cannot be created because its revision is lost does not block those above it.
func TestAboveALostRevision(t *testing.T) {
	objects := between(t, []setOption{partition(1)}, pod(1, "b"))
	w := newWorld(t, append([]client.Object{objects[0]}, objects[2:]...)...)
	w.mustReconcile()
	if got := fmt.Sprint(w.Calls("create")); got != "[create Pod web-2]" {
		t.Errorf("%v, %s", got, w.condition(ConditionUpdated))
	}
}

// TestUpdateAboveALostRevision: nor does it use up the budget. An edit reaches the pods above it, broken ones included.
func TestUpdateAboveALostRevision(t *testing.T) {
	for name, top := range map[string]*corev1.Pod{"serving": pod(2, "a"), "broken": pod(2, "broken", crashing)} {
		for _, policy := range []setOption{func(*appsv1.StatefulSet) {}, parallel} {
			objects := between(t, []setOption{partition(1), policy}, pod(1, "b"), top.DeepCopy())
			w := newWorld(t, append([]client.Object{objects[0]}, objects[2:]...)...)
			w.mustReconcile()
			if got := fmt.Sprint(w.Calls("delete")); got != "[delete Pod web-2]" {
				t.Errorf("%s: %v, %s", name, got, w.condition(ConditionUpdated))
			}
		}
	}
}

// TestHeldUnderAnUnreadableRevision: a pod below the partition that was never ready stays what it is also where
// somebody put something unreadable in the place of its revision.
func TestHeldUnderAnUnreadableRevision(t *testing.T) {
	for content, deletes := range map[string]int{`{"spec":{"template":"no"}}`: 0, "": 1} {
		odd := stored(t, "odd", "web:odd", 9)
		if content != "" {
			odd.Data.Raw = []byte(content)
		}
		w := newWorld(t, append(between(t, []setOption{partition(1)}, pod(0, "odd", crashing), pod(1, "b"), pod(2, "b")), odd)...)
		w.mustReconcile()
		if got := w.Calls("delete"); len(got) != deletes {
			t.Errorf("with %q: deletes %v, want %d", content, got, deletes)
		}
	}
}

// The condition says why of the pod that the lost revision is for, whatever else is waited for.
func TestLostRevisionAndATakenName(t *testing.T) {
	stranger := pod(0, "a", func(p *corev1.Pod) { p.Labels = nil })
	stranger.OwnerReferences = nil
	objects := between(t, []setOption{partition(2), parallel}, stranger, pod(2, "b"))
	w := newWorld(t, append([]client.Object{objects[0]}, objects[2:]...)...)
	w.mustReconcile()
	want := "False CurrentRevisionLost: 1 of 3 pods updated; web-1: it is to come from revision web-a, and that revision was deleted"
	if diff := cmp.Diff(want, w.condition(ConditionUpdated)); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
}

// TestPromotionKeepsWhatStatusNames: until status names the new revision, the old one stays, also with limit 0 (H3).
func TestPromotionKeepsWhatStatusNames(t *testing.T) {
	limit := func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32) }
	w := newWorld(t, between(t, []setOption{limit}, pod(0, "b"), pod(1, "b"), pod(2, "b"))...)
	w.Before = fakeserver.Refuse("patch status", "StatefulSet", errBoom)
	if _, err := w.r.Reconcile(t.Context(), request); err == nil || len(w.revisions()) != 2 {
		t.Errorf("%v, revisions %v", err, w.revisions())
	}
	w.Before = nil
	w.mustReconcile()
	if s := w.set().Status; s.CurrentRevision != "web-b" || s.CurrentReplicas != 3 {
		t.Errorf("status %+v", s)
	}
	if diff := cmp.Diff(map[string]int64{"web:b": 2}, w.revisions()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestNothingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		event   string
		reason  string
	}{
		"it is gone": {nil, "", ""},
		"it is being deleted": {[]client.Object{web(func(set *appsv1.StatefulSet) {
			at := metav1.NewTime(now)
			set.DeletionTimestamp, set.Finalizers = &at, []string{"orphan"}
		})}, "", ""},
		"it selects everything": {[]client.Object{web(func(set *appsv1.StatefulSet) { set.Spec.Selector = &metav1.LabelSelector{} })}, "Warning SelectingAll", "False SelectingAll"},
		"its selector is no such": {[]client.Object{web(func(set *appsv1.StatefulSet) {
			set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
		})}, "Warning SelectingAll", "False SelectingAll"},
		"its strategy is no such": {[]client.Object{web(atOnce("many"))}, "Warning InvalidStrategy", "False InvalidStrategy"},
	} {
		t.Run(name, func(t *testing.T) {
			// An orphan that an adopter would take, and a pod that would be released.
			orphan, stranger := pod(0, "a"), pod(1, "a", func(p *corev1.Pod) { p.Labels["app"] = "other" })
			orphan.OwnerReferences = nil
			w := newWorld(t, append(c.objects, orphan, stranger)...)
			for range 2 {
				if result := w.mustReconcile(); result != (reconcile.Result{}) {
					t.Errorf("result %+v", result)
				}
			}
			if got := w.WritesTo("Pod"); len(got) != 0 || len(w.Calls("list")) != 0 {
				t.Errorf("requests %v", w.Calls())
			}
			if got := strings.Join(w.events.Events(), "\n"); !strings.HasPrefix(got, c.event) || (got == "") != (c.event == "") {
				t.Errorf("events %q", got)
			}
			if c.reason == "" {
				return
			}
			if got := w.condition(ConditionUpdated); !strings.HasPrefix(got, c.reason) || len(w.Calls("patch status")) != 1 {
				t.Errorf("condition %s, %v", got, w.Writes())
			}
		})
	}
}

// TestRefusedPods: a template that the API server refuses has an event and a condition, and counters all the same (43).
func TestRefusedPods(t *testing.T) {
	w := newWorld(t, between(t, nil, pod(0, "b"), pod(1, "b"))...)
	invalid := apierrors.NewInvalid(podKind.GroupKind(), "web-2", nil)
	w.Before = fakeserver.Refuse("create", "Pod", invalid)
	if _, err := w.r.Reconcile(t.Context(), request); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	if got := w.condition(ConditionUpdated); !strings.HasPrefix(got, "False RolloutFailing: 2 of 3 pods updated; create pod web-2: ") {
		t.Error(got)
	}
	if got := w.events.Events("FailedCreate"); len(got) != 1 || !strings.Contains(got[0], "web-2") {
		t.Errorf("events %v", got)
	}
	if s := w.set().Status; s.Replicas != 2 || s.ReadyReplicas != 2 || s.UpdatedReplicas != 2 || s.ObservedGeneration != 1 {
		t.Errorf("status %+v", s)
	}
	w.Before = nil
	w.mustReconcile()
	if got := w.condition(ConditionUpdated); strings.Contains(got, "RolloutFailing") {
		t.Error(got)
	}
}

// TestTakenNames: a pod that is somebody else's keeps its name. Ours waits and says so (O4), and looks again whether
// the name is free; it asks the API server for nothing that it knows to be impossible.
func TestTakenNames(t *testing.T) {
	stranger := pod(0, "a", func(p *corev1.Pod) { p.Labels = nil })
	stranger.OwnerReferences = nil
	w := newWorld(t, web(), stranger)
	if result := w.mustReconcile(); result.RequeueAfter != pass.TakenRetry {
		t.Errorf("it looks again after %v", result.RequeueAfter)
	}
	c := findCondition(w.set().Status.Conditions, ConditionUpdated)
	if c == nil || c.Reason != "RolloutWaiting" || !strings.Contains(c.Message, "web-0: another pod has the name, and belongs to no controller") {
		t.Errorf("the condition is %+v", c)
	}
	if got := w.WritesTo("Pod"); len(got) != 0 || w.pod(0).Labels != nil {
		t.Errorf("wrote %v", got)
	}
	w.must(w.Raw.Delete(t.Context(), stranger))
	w.mustReconcile()
	if got := w.WritesTo("Pod"); len(got) != 1 || got[0] != "create web-0" {
		t.Errorf("wrote %v", got)
	}
}

// TestTakenAndFreeAgain: who had the name is gone when we look who it is. His end wakes nobody, so that the pass is
// made again.
func TestTakenAndFreeAgain(t *testing.T) {
	stranger := pod(0, "a", func(p *corev1.Pod) { p.Labels = nil })
	stranger.OwnerReferences = nil
	w := worldOf(t, fakeserver.New(t, web(), stranger), fakeserver.New(t, web()), nil)
	looks := 0
	w.Before = func(c fakeserver.Call) error {
		if c.Verb == "get" && c.Kind == "Pod" {
			if looks++; looks == 2 { // the first look is whether it is ours
				return w.Raw.Delete(t.Context(), stranger)
			}
		}
		return nil
	}
	if result := w.mustReconcile(); looks != 2 || result.RequeueAfter != pass.StaleRetry {
		t.Errorf("it looked %d times, and again in %v", looks, result.RequeueAfter)
	}
}

// TestTakenUnseen: the same where the cache does not show who has the name.
func TestTakenUnseen(t *testing.T) {
	stranger := pod(0, "a", func(p *corev1.Pod) { p.Labels = nil })
	stranger.OwnerReferences = nil
	w := worldOf(t, fakeserver.New(t, web(), stranger), fakeserver.New(t, web()), nil)
	if _, err := w.r.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "belongs to no controller") {
		t.Error(err)
	}
	if got := w.events.Events("FailedCreate"); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

// TestEditedMeanwhile: pods take their time, the parent is edited, and no more of the old ones are made. That is no
// failure.
func TestEditedMeanwhile(t *testing.T) {
	w := newWorld(t, web(replicas(7), parallel))
	var once sync.Once
	w.Before = func(c fakeserver.Call) error {
		if c.Verb == "create" && c.Kind == "Pod" {
			once.Do(func() { w.edit(replicas(1)) })
		}
		return nil
	}
	w.mustReconcile()
	if got := len(w.pods()); got != 1 || len(w.events.Events("FailedCreate")) != 0 {
		t.Errorf("%d pods, events %v", got, w.events.Events())
	}
}

// A pass that waits for minReadySeconds is repeated when they are over.
func TestLooksAgain(t *testing.T) {
	w := newWorld(t, between(t, []setOption{minReadyFor(60)}, pod(0, "b"), pod(1, "b"), pod(2, "b", ready(20*time.Second)))...)
	if result := w.mustReconcile(); result.RequeueAfter != 40*time.Second || w.set().Status.AvailableReplicas != 2 {
		t.Errorf("result %+v, status %+v", result, w.set().Status)
	}
}

var errBoom = apierrors.NewInternalError(errors.New("boom"))
