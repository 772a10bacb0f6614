package statefulset

// What a pass does with a pod that the API server will not have as it is to be, and with one that it made to something
// else.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

var (
	banned  = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("the image is banned"))
	invalid = apierrors.NewInvalid(podKind.GroupKind(), "web", field.ErrorList{field.Forbidden(field.NewPath("spec"), "the image is banned")})
	quota   = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"))
	broken  = apierrors.NewInternalError(errors.New("a webhook does not answer"))
)

// reviewed lets admission look at pods before they are stored. It may change them.
func (w *world) reviewed(review func(*corev1.Pod) error) *world {
	w.Before = func(c fakeserver.Call) error {
		if p, ok := c.Object.(*corev1.Pod); ok && c.Verb == "create" {
			return review(p)
		}
		return nil
	}
	return w
}

// refusing refuses pods with an image.
func refusing(image string, err error) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Spec.Containers[0].Image == image {
			return err
		}
		return nil
	}
}

// TestRefusedCurrentRevision: a pod is lost in the middle of a rollout, and the API server will not have it back as it
// was. Where the rollout goes it comes from the update revision once that has lasted; below the partition nothing takes
// the place of the current one.
func TestRefusedCurrentRevision(t *testing.T) {
	for name, c := range map[string]struct {
		options []setOption
		err     error
		want    string // the images of all pods after the pass
		says    string
	}{
		"a policy":            {nil, banned, "web:b web:a web:b", ""},
		"validation":          {nil, invalid, "web:b web:a web:b", ""},
		"a quota":             {nil, quota, "web:a web:b", "create pod web-0: pods \"web\" is forbidden: exceeded quota"},
		"a webhook is down":   {nil, broken, "web:a web:b", "a webhook does not answer"},
		"below the partition": {[]setOption{partition(2)}, banned, "web:a web:b", "the image is banned; a pod below the partition comes from the current revision, web-a, and from no other: allow that one, or lower the partition to 0"},
		"a quota, below":      {[]setOption{partition(1)}, quota, "web:a web:b", "limited: pods=2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, between(t, c.options, pod(1, "a"), pod(2, "b"))...).reviewed(refusing("web:a", c.err))
			_, err := w.refusedForAMinute()
			if (err == nil) != (c.says == "") {
				t.Errorf("error %v", err)
			}
			if got := w.images(); got != c.want {
				t.Errorf("pods %s, want %s", got, c.want)
			}
			if c.says != "" {
				if got := w.condition(ConditionUpdated); !strings.HasPrefix(got, "False RolloutFailing") || !strings.HasSuffix(got, c.says) && !strings.Contains(got, c.says) {
					t.Error(got)
				}
				return
			}
			if got := w.events.Events(); len(got) != 1 || !strings.Contains(got[0], "revision web-b, because a pod of revision web-a is refused") ||
				!strings.Contains(got[0], "the image is banned") {
				t.Errorf("events %v", got)
			}
			w.settle()
			w.rounds(4)
			if got := w.images(); got != thrice("web:b") {
				t.Errorf("the rollout ends with %s", got)
			}
		})
	}
}

// refusedForAMinute is one pass, and another one a minute later.
func (w *world) refusedForAMinute() (reconcile.Result, error) {
	w.t.Helper()
	if _, err := w.r.Reconcile(w.t.Context(), request); err == nil {
		w.t.Error("the first refusal is no error")
	}
	w.clock.Step(lasting)
	*w.events = fakeserver.Recorder{}
	return w.r.Reconcile(w.t.Context(), request)
}

// TestRefusedOnce: a refusal that passes is no reason to take another revision. A refusal that lasts is, even if no pod
// of that revision is available: it may wait for its peers.
func TestRefusedOnce(t *testing.T) {
	refuse := true
	review := func(p *corev1.Pod) error {
		if refuse && p.Spec.Containers[0].Image == "web:a" {
			return banned
		}
		return nil
	}
	w := newWorld(t, between(t, nil, pod(1, "a"), pod(2, "b"))...).reviewed(review)
	_, err := w.r.Reconcile(t.Context(), request)
	if got := w.images(); got != "web:a web:b" || !strings.Contains(fmt.Sprint(err), "if that lasts for 1m0s more, the pod comes from revision web-b") {
		t.Errorf("%s, %v", got, err)
	}
	refuse = false
	w.clock.Step(2 * lasting)
	w.mustReconcile()
	if got := w.images(); got != "web:a web:a web:b" {
		t.Errorf("it is allowed by now: %s", got)
	}
	w.must(w.Raw.Delete(t.Context(), w.pod(0)))
	refuse = true
	if _, err := w.r.Reconcile(t.Context(), request); err == nil || w.images() != "web:a web:b" {
		t.Errorf("the next refusal counts from the first one: %s", w.images())
	}

	w = newWorld(t, between(t, nil, pod(1, "a"), pod(2, "b", unready))...).reviewed(review)
	if _, err := w.refusedForAMinute(); err != nil || w.images() != "web:b web:a web:b" {
		t.Errorf("db-0 cannot come from revision a, and revision b is not tried: %s, %v", w.images(), err)
	}
}

// TestRefusalsOfOneRevision: a pod that is refused while another pod of its revision is, or was a moment ago, does not
// wait for a minute of its own.
func TestRefusalsOfOneRevision(t *testing.T) {
	var r refusals
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		ordinal  int64
		revision string
		now      int
		left     int // seconds
	}{
		{0, "a", 0, 60},
		{0, "a", 50, 10},
		{0, "a", 65, -5},
		{1, "a", 70, -10},
		{1, "b", 70, 60},
		{2, "a", 300, 60}, // that was long ago
		{1, "b", 300, 60},
	} {
		if left := r.last("set", refused{c.ordinal, c.revision}, at(c.now)); left != time.Duration(c.left)*time.Second {
			t.Errorf("%+v: %s left", c, left)
		}
	}
}

// TestALostPodThatNoNodeTakes: the nodes that the current revision selects were deleted. A pod that was lost before its
// turn comes from the update revision, and the rollout ends.
func TestALostPodThatNoNodeTakes(t *testing.T) {
	for name, policy := range map[string]setOption{"in order": replicas(3), "parallel": parallel} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, between(t, []setOption{policy}, pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b"))...)
			w.mustReconcile()
			if got := w.images(); got != "web:a web:b" {
				t.Fatalf("the pod that cannot start is still there: %s", got)
			}
			w.mustReconcile()
			if got := w.images(); got != "web:b web:a web:b" {
				t.Fatalf("the new pod comes from the old template: %s", got)
			}
			w.settle()
			w.rounds(4)
			if got := w.images(); got != thrice("web:b") {
				t.Errorf("the rollout ends with %s", got)
			}
		})
	}
}

// TestARestartBeforeTheLostPodIsBack: the process ends between the deletion and the creation and loses its memory. It
// creates one more pod that cannot start.
func TestARestartBeforeTheLostPodIsBack(t *testing.T) {
	w := newWorld(t, between(t, nil, pod(0, "a", unschedulable), pod(1, "a"), pod(2, "b"))...)
	w.mustReconcile()
	w.r = newReconciler(w.r.Config, false)
	w.mustReconcile()
	if got := w.images(); got != "web:a web:a web:b" {
		t.Fatal(got)
	}
	again := w.pod(0)
	unschedulable(again)
	w.must(w.Raw.Status().Update(t.Context(), again))
	w.mustReconcile()
	w.mustReconcile()
	if got := w.images(); got != "web:b web:a web:b" {
		t.Error(got)
	}
}

// Where both revisions are refused, both refusals are said, and nothing is made.
func TestRefusedBothRevisions(t *testing.T) {
	w := newWorld(t, between(t, nil, pod(1, "a"), pod(2, "b"))...).reviewed(func(*corev1.Pod) error { return banned })
	if _, err := w.refusedForAMinute(); err == nil {
		t.Error("no error")
	}
	if got := w.condition(ConditionUpdated); strings.Count(got, "the image is banned") != 2 || !strings.Contains(got, "and from revision web-b: ") {
		t.Error(got)
	}
	if got := w.events.Events(); len(got) != 1 || !strings.Contains(got[0], "FailedCreate") {
		t.Errorf("events %v", got)
	}
}

// TestChangedByAdmission: what admission makes of our pods is not deleted and made again for ever, and a condition says
// in what it differs.
func TestChangedByAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		review func(*corev1.Pod)
		says   string
	}{
		"another claim": {
			func(p *corev1.Pod) {
				p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "restored-" + p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
			},
			"; pod web-0 stays as it was created: it mounts claim restored-data-web-0, not data-web-0, and volumes cannot change, and 2 more pods likewise",
		},
		"no claim": {
			func(p *corev1.Pod) { p.Spec.Volumes = nil },
			"; pod web-0 stays as it was created: it does not mount claim data-web-0, and volumes cannot change, and 2 more pods likewise",
		},
		"one volume more": {
			func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "sidecar"}) },
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web(data(retain, retain))).reviewed(func(p *corev1.Pod) error {
				c.review(p)
				return nil
			})
			w.rounds(12)
			for _, call := range w.WritesTo("Pod") {
				if strings.HasPrefix(call, "delete") {
					t.Error(call)
				}
			}
			if got := w.condition(ConditionUpdated); !strings.HasPrefix(got, "True OnLatestRevision") || !strings.HasSuffix(got, c.says) || c.says == "" && strings.Contains(got, ";") {
				t.Error(got)
			}
			// An edit goes through them all the same, each once.
			w.edit(image("web:2"))
			w.rounds(14)
			if got := w.images(); got != thrice("web:2") {
				t.Error(got)
			}
		})
	}
}

// TestAdoptedWithoutStorage: a set that was created again with a claim that its pods do not mount replaces none of
// them, because the new claims may never be bound. The condition names such a pod.
func TestAdoptedWithoutStorage(t *testing.T) {
	set := web(younger, data(retain, retain))
	orphans := []client.Object{set}
	first := newWorld(t, web())
	first.rounds(5)
	for _, p := range first.pods() {
		p.OwnerReferences, p.ResourceVersion = nil, ""
		p.CreationTimestamp = metav1.NewTime(set.CreationTimestamp.Add(-time.Hour))
		orphans = append(orphans, p)
	}
	w := newWorld(t, orphans...)
	w.rounds(20)
	if n := w.Count("delete", "Pod"); n != 0 {
		t.Errorf("%d pods were deleted", n)
	}
	if got := w.condition(ConditionUpdated); !strings.Contains(got, "web-0 stays as it was created: it does not mount claim data-web-0") {
		t.Error(got)
	}
}
