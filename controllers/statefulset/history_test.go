package statefulset

// Passes whose history is not as it should be: a revision that cannot be stored or read, a duplicate, a strange limit.
// No pod is touched without its revision, what is live stays, and the status says why.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

func limit(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = &n }
}

// TestUnrecorded: the template asks for what cannot be recorded. Status names a and b, one pod that goes comes from z,
// and of all other revisions none stays.
func TestUnrecorded(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		retried bool
		reason  string
	}{
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")), true, "False RecordFailed"},
		"too large": {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), false, "False SnapshotTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := between(t, []setOption{limit(0), partition(2)}, pod(0, "a"), pod(2, "z", terminating))
			objects = append(objects, stored(t, "z", "web:z", 3), stored(t, "y", "web:y", 4))
			w := newWorld(t, objects...)
			w.edit(image("web:9"))
			w.Before = fakeserver.Refuse("create", "ControllerRevision", c.err)
			if _, err := w.r.Reconcile(t.Context(), request); (err != nil) != c.retried {
				t.Error(err)
			}
			// The pod that is lost comes back from the revision that it had, and no other is touched.
			if diff := cmp.Diff([]string{"create web-1"}, w.WritesTo("Pod")); diff != "" || revisionOf(w.pod(1)) != "web-a" {
				t.Errorf("it comes from %s; writes (-want +got):\n%s", revisionOf(w.pod(1)), diff)
			}
			w.Forget()
			if diff := cmp.Diff(map[string]int64{"web:a": 1, "web:b": 2, "web:z": 3}, w.revisions()); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			s := w.set().Status
			if s.CurrentRevision != "web-a" || s.UpdateRevision != "web-b" || s.ObservedGeneration != 0 || s.Replicas != 2 || s.CurrentReplicas != 1 || s.UpdatedReplicas != 0 {
				t.Errorf("status %+v", s)
			}
			if got := w.condition(ConditionHistoryHealthy); !strings.HasPrefix(got, c.reason) {
				t.Error(got)
			}
			if got := w.condition(ConditionUpdated); !strings.HasPrefix(got, "False RevisionNotRecorded") {
				t.Error(got)
			}
			if got := w.events.Events("RecordFailed"); len(got) != 1 {
				t.Errorf("events %v", w.events.Events())
			}
			w.Before = nil
			w.mustReconcile()
			if got := w.condition(ConditionHistoryHealthy); !strings.HasPrefix(got, "True Recorded") || w.set().Status.ObservedGeneration != 2 {
				t.Error(got)
			}
		})
	}
}

// A negative limit keeps every revision, as the API server says when it takes one (kubernetes#129018).
func TestNegativeHistoryLimit(t *testing.T) {
	w := newWorld(t, append(between(t, []setOption{limit(-1)}, pod(0, "b"), pod(1, "b"), pod(2, "b")), stored(t, "y", "web:y", -4))...)
	w.rounds(3)
	if len(w.revisions()) != 3 {
		t.Errorf("revisions %v", w.revisions())
	}
	if got := w.condition(ConditionHistoryHealthy); !strings.HasPrefix(got, "False NegativeHistoryLimit") || len(w.events.Events("NegativeHistoryLimit")) != 1 {
		t.Errorf("%s, events %v", got, w.events.Events())
	}
	w.edit(limit(1))
	w.rounds(2)
	if got := w.condition(ConditionHistoryHealthy); !strings.HasPrefix(got, "True") {
		t.Error(got)
	}
}

// TestDuplicates: of two revisions with one content the older goes, after its pods, and status, name the other one;
// pods of other revisions keep their names (kubernetes#111280).
func TestDuplicates(t *testing.T) {
	objects := between(t, []setOption{partition(2), limit(0)}, pod(0, "z"), pod(1, "twin"), pod(2, "b"))
	objects = append(objects, stored(t, "z", "web:z", -1), stored(t, "twin", "web:a", 0))
	objects[0].(*appsv1.StatefulSet).Status.CurrentRevision = "web-twin"
	w := newWorld(t, objects...)
	var current []string
	w.After = func(c fakeserver.Call) error {
		if c.Verb == "delete" && c.Kind == "ControllerRevision" {
			current = append(current, c.Name)
			var set appsv1.StatefulSet
			if err := w.Raw.Get(t.Context(), request.NamespacedName, &set); err != nil || set.Status.CurrentRevision != "web-a" {
				t.Errorf("%s goes while status names %s (%v)", c.Name, set.Status.CurrentRevision, err)
			}
		}
		return nil
	}
	w.rounds(3)
	if !slices.Equal(current, []string{"web-twin"}) {
		t.Errorf("deleted %v", current)
	}
	var names []string
	for _, p := range w.pods() {
		names = append(names, revisionOf(p))
	}
	if diff := cmp.Diff([]string{"web-z", "web-a", "web-b"}, names); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if got := w.WritesTo("Pod"); !slices.Equal(got, []string{"patch web-1"}) || len(w.Calls("delete")) != 1 {
		t.Errorf("wrote %v", w.Writes())
	}
}

// TestDuplicatesAreCounted: when status names the revision that stays instead of its duplicate, both counters are of
// that revision, although the pods do not name it yet (S1).
func TestDuplicatesAreCounted(t *testing.T) {
	objects := between(t, nil, pod(0, "twin"), pod(1, "twin"), pod(2, "b"))
	objects = append(objects, stored(t, "twin", "web:b", 0))
	set := objects[0].(*appsv1.StatefulSet)
	set.Status.CurrentRevision, set.Status.CurrentReplicas, set.Status.UpdatedReplicas = "web-twin", 2, 1
	w := newWorld(t, objects...)
	w.mustReconcile()
	if got := w.WritesTo("Pod"); len(got) != 0 {
		t.Errorf("wrote %v before status said so", got)
	}
	if s := w.set().Status; s.CurrentRevision != "web-b" || s.CurrentReplicas != 3 || s.UpdatedReplicas != 3 || s.Replicas != 3 {
		t.Errorf("status %+v", s)
	}
}

// TestRelabelledPods: a pod that was pointed at another revision is of that revision from then on, in the same pass
// too, and even if the answer was lost (H3).
func TestRelabelledPods(t *testing.T) {
	objects := func(options ...setOption) []client.Object {
		return append(between(t, options, pod(0, "a"), pod(1, "twin", stuck), pod(2, "b")), stored(t, "twin", "web:a", 0))
	}
	w := newWorld(t, objects(partition(2))...)
	w.mustReconcile()
	if got := w.WritesTo("Pod"); !slices.Equal(got, []string{"patch web-1"}) || w.set().Status.CurrentReplicas != 2 {
		t.Errorf("wrote %v, status %+v", got, w.set().Status)
	}

	lost := objects(partition(2), limit(0))
	lost[0].(*appsv1.StatefulSet).Status.CurrentRevision = "web-b"
	w = newWorld(t, append(lost[:3], lost[4:]...)...) // without web-0, which names revision a
	w.After = fakeserver.Refuse("patch", "Pod", errBoom)
	if _, err := w.r.Reconcile(t.Context(), request); err != nil && !errors.Is(err, errBoom) { // or the look past the cache finds it
		t.Error(err)
	}
	if name := revisionOf(w.pod(1)); name != "web-a" || len(w.Calls("delete")) != 0 {
		t.Errorf("web-1 names %s, and of the revisions %v are left", name, w.revisions())
	}
}

// TestRestored: what was removed from the template since does not show through in a pod of an older revision (18).
func TestRestored(t *testing.T) {
	objects := between(t, []setOption{partition(3)}, pod(1, "a"), pod(2, "a"))
	objects[0].(*appsv1.StatefulSet).Spec.Template.Spec.NodeSelector = map[string]string{"of": "the new template"}
	w := newWorld(t, objects...)
	w.mustReconcile()
	if p := w.pod(0); p.Spec.Containers[0].Image != "web:a" || p.Spec.NodeSelector != nil {
		t.Errorf("%+v", p.Spec)
	}
}

// TestLegacyRevision: a revision that the built-in controller wrote before an upgrade, with fields that are written in
// another way today, is the set's own: nothing is recorded and no pod is touched (1).
func TestLegacyRevision(t *testing.T) {
	legacy := stored(t, "b", "web:b", 2)
	legacy.Data.Raw = []byte(strings.Replace(string(legacy.Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
	set := web(image("web:b"), limit(10))
	set.Status.CurrentRevision, set.Status.UpdateRevision = "web-b", "web-b"
	objects := []client.Object{set, legacy}
	for i := range 3 {
		objects = append(objects, pod(int64(i), "b"))
	}
	w := newWorld(t, objects...)
	w.mustReconcile()
	for _, kind := range []string{"create", "delete"} {
		if got := w.Calls(kind); len(got) != 0 {
			t.Errorf("wrote %v", got)
		}
	}
	if got := w.WritesTo("Pod"); len(got) != 0 || w.set().Status.UpdateRevision != "web-b" {
		t.Errorf("wrote %v", got)
	}
	if !strings.Contains(string(legacy.Data.Raw), "creationTimestamp") {
		t.Error("the test does not test what it says")
	}
}
