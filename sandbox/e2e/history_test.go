package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/manager"
)

// This file runs the tests that the Controller History proposal lists at its end through the real API server, and the
// ownership of revisions and pods that only a real garbage collector can show.

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

func (e *env) cairnWithoutAsking() (stop func()) {
	e.Helper()
	return e.cairnWith(func(*rest.Config) {}, manager.Options{AskServer: false})
}

// log is the history package as a library user has it: over a plain client.
func (e *env) log() *history.Log {
	return history.New(history.DaemonSet(), history.Options{Client: e.WithWatch, AskServer: true})
}

// record takes a snapshot of ds as it is and stores it.
func (e *env) record(log *history.Log, ds *appsv1.DaemonSet) *history.Recorded {
	e.Helper()
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		e.Fatal(err)
	}
	entries, err := log.Claim(e.Context(), ds, selector)
	if err != nil {
		e.Fatal(err)
	}
	verdict, err := log.Resolve(e.Context(), ds, entries)
	if err != nil {
		e.Fatal(err)
	}
	recorded, err := log.Record(e.Context(), ds, verdict, nil, nil)
	if err != nil {
		e.Fatal(err)
	}
	return recorded
}

func TestCreateARevision(t *testing.T) {
	e := newEnv(t)
	ds := e.daemonSet("one", "app:1")
	e.create(ds)
	recorded := e.record(e.log(), ds)
	var stored appsv1.ControllerRevision
	if err := e.Get(t.Context(), types.NamespacedName{Namespace: ds.Namespace, Name: recorded.Update.Name}, &stored); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(&stored, ds) || stored.Revision != 1 || stored.Name != "one-"+stored.Labels["controller-revision-hash"] {
		t.Errorf("stored %+v", stored)
	}
	if again := e.record(e.log(), ds); again.Update.UID != recorded.Update.UID || again.Update.ResourceVersion != recorded.Update.ResourceVersion {
		t.Error("recording the same state again wrote something")
	}
}

func TestReconstructTheHistory(t *testing.T) {
	e := newEnv(t)
	ds := e.daemonSet("many", "app:1")
	e.create(ds)
	log := e.log()
	e.record(log, ds)
	for _, image := range []string{"app:2", "app:3"} {
		e.image(ds, image)
		e.record(log, ds)
	}
	entries, err := log.List(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range entries {
		var restored appsv1.DaemonSet
		if err := r.Snapshot.Into(&restored); err != nil {
			t.Fatal(err)
		}
		if got, want := restored.Spec.Template.Spec.Containers[0].Image, fmt.Sprintf("app:%d", i+1); got != want || r.Number != int64(i+1) {
			t.Errorf("revision %d holds %s, want revision %d with %s", r.Number, got, i+1, want)
		}
	}
	if len(entries) != 3 {
		t.Errorf("%d revisions, want 3", len(entries))
	}
}

func TestDataCannotBeUpdated(t *testing.T) {
	e := newEnv(t)
	ds := e.daemonSet("fixed", "app:1")
	e.create(ds)
	recorded := e.record(e.log(), ds)
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Name: recorded.Update.Name}}
	err := e.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"data":{"spec":{"template":{"spec":{"hostNetwork":true}}}}}`)))
	if !apierrors.IsInvalid(err) {
		t.Errorf("a change of data was answered with %v, want a refusal", err)
	}
}

func TestDeleteToHonourTheLimit(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("short", "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](2) })
	e.create(ds)
	e.rolledOut(ds)
	for i := 2; i <= 6; i++ {
		e.image(ds, fmt.Sprintf("app:%d", i))
		e.rolledOut(ds)
	}
	e.eventually("wait for the log to be truncated", func() error {
		var numbers []int64
		for _, r := range e.revisions(ds) {
			numbers = append(numbers, r.Revision)
		}
		if fmt.Sprint(numbers) != "[4 5 6]" {
			return errorf("revisions %v, want the update revision and the two before it", numbers)
		}
		return nil
	})
}

func TestOrphanDeleteAndRecreateRestartsNothing(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.threeRevisions("phoenix")
	pods, revisions := e.pods(ds), e.revisions(ds)
	if err := e.Delete(t.Context(), ds, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	e.eventually("wait for the DaemonSet to go", func() error {
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(ds), &appsv1.DaemonSet{}); !apierrors.IsNotFound(err) {
			return errorf("still there: %v", err)
		}
		return nil
	})
	for name, pod := range e.pods(ds) {
		if metav1.GetControllerOf(&pod) != nil {
			t.Errorf("pod %s was adopted back by a DaemonSet that was being deleted", name)
		}
	}

	again := e.daemonSet("phoenix", "app:3", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](10) })
	e.create(again)
	e.rolledOut(again)
	e.eventually("wait until everything is adopted", func() error {
		for name, pod := range e.pods(again) {
			if !metav1.IsControlledBy(&pod, again) {
				return errorf("pod %s is not", name)
			}
			if pods[name].UID != pod.UID {
				return errorf("pod %s is another one", name)
			}
		}
		for _, r := range e.revisions(again) {
			if !metav1.IsControlledBy(&r, again) {
				return errorf("revision %s is not", r.Name)
			}
		}
		return nil
	})
	if now := e.revisions(again); len(now) != len(revisions) || len(e.pods(again)) != len(pods) {
		t.Errorf("%d revisions and %d pods, want %d and %d", len(now), len(e.pods(again)), len(revisions), len(pods))
	}
	e.images(again, "app:3")
}

func TestTwoNamespacesWithOneSelector(t *testing.T) {
	a, b := newEnv(t), newEnv(t)
	a.cairn()
	first, second := a.daemonSet("same", "app:1"), b.daemonSet("same", "app:1")
	a.create(first)
	b.create(second)
	a.rolledOut(first)
	b.rolledOut(second)
	a.image(first, "app:2")
	a.rolledOut(first)
	for _, e := range []struct {
		*env
		ds   *appsv1.DaemonSet
		want int
	}{{a, first, 2}, {b, second, 1}} {
		revisions := e.revisions(e.ds)
		if len(revisions) != e.want {
			t.Errorf("%d revisions in %s, want %d", len(revisions), e.namespace, e.want)
		}
		for _, r := range revisions {
			if !metav1.IsControlledBy(&r, e.ds) {
				t.Errorf("revision %s/%s belongs to %v", r.Namespace, r.Name, metav1.GetControllerOf(&r))
			}
		}
	}
	b.images(second, "app:1")
}

func TestASnapshotThatCannotBeStoredStartsNoRollout(t *testing.T) {
	e := newEnv(t)
	e.cairn()
	ds := e.daemonSet("huge", "app:1")
	e.create(ds)
	e.rolledOut(ds)
	pods := e.pods(ds)
	e.edit(ds, func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", history.MaxData)}
	})
	e.eventually("wait for the condition", func() error {
		e.reload(ds)
		for _, c := range ds.Status.Conditions {
			if c.Type == "HistoryHealthy" && c.Reason == "SnapshotTooLarge" {
				return nil
			}
		}
		return errorf("conditions %+v", ds.Status.Conditions)
	})
	e.sameVersions("a rollout that cannot be recorded", pods, e.pods(ds))
	e.image(ds, "app:2")
	e.edit(ds, func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Args = nil })
	e.rolledOut(ds)
	e.images(ds, "app:2")
}
