package daemonset

// Passes whose revision cannot be stored: no pod is touched, the status says why, and the log is still truncated,
// but never of what is live (kubernetes#85690).

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

// stored is a revision of agent with an image, under a hash that says which one it is.
func stored(t testing.TB, image, hash string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	ds := agent(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = image })
	snapshot, err := history.DaemonSet().Target().Snapshot(ds)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "agent-" + hash, UID: types.UID("uid-of-" + hash),
			Labels:          map[string]string{"app": "agent", "controller-revision-hash": hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, kind)},
		},
		Data:     runtime.RawExtension{Raw: snapshot.Data()},
		Revision: number,
	}
}

// errTooLarge is what the store says about an object that it has no room for.
var errTooLarge = apierrors.NewInternalError(errors.New("etcdserver: request is too large"))

func limit(n int32) dsOption {
	return func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = &n }
}

func (s *server) revisionNames() []string {
	var out []string
	for name := range s.revisions() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// changed is a DaemonSet on three nodes that asks for agent:9, which is not recorded yet. Its pods come from two
// revisions, and one of them is on its way out.
func changed(t testing.TB) []client.Object {
	t.Helper()
	return append(three(limit(0), dsOption(image("agent:9"))),
		stored(t, "agent:1", "one", 1), stored(t, "agent:2", "two", 2), stored(t, "agent:3", "three", 3),
		pod("n1", "one", terminating), pod("n2", "three"))
}

func TestUnrecorded(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(fakeserver.Call) error
		err     bool
		reason  string
		message string
	}{
		"forbidden": {fakeserver.Refuse("create", "ControllerRevision", apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota"))), true, "RecordFailed", "exceeded quota"},
		"no answer": {fakeserver.Refuse("create", "ControllerRevision", apierrors.NewTimeoutError("boom", 0)), true, "RecordFailed", "boom"},
		"too large": {fakeserver.Refuse("create", "ControllerRevision", errTooLarge), false, "SnapshotTooLarge", "cannot be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, changed(t)...)
			w.Before = c.before
			if _, err := w.reconcile(); (err != nil) != c.err {
				t.Error(err)
			}
			// The pod that is lost comes back from the newest revision that there is, and no other is touched.
			var made []string
			for _, call := range w.Calls("create") {
				if pod, ok := call.Object.(*corev1.Pod); ok {
					made = append(made, bound(pod)+" "+pod.Spec.Containers[0].Image)
				}
			}
			if diff := cmp.Diff([]string{"n3 agent:3"}, made); diff != "" || len(w.WritesTo("Pod")) != 1 {
				t.Errorf("wrote %v, pods (-want +got):\n%s", w.WritesTo("Pod"), diff)
			}
			w.Forget()
			// The log is truncated: of what no pod names, the one that goes included.
			if diff := cmp.Diff([]string{"agent-one", "agent-three"}, w.revisionNames()); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			status := w.ds().Status
			if status.DesiredNumberScheduled != 3 || status.CurrentNumberScheduled != 2 || status.UpdatedNumberScheduled != 0 || status.NumberAvailable != 2 {
				t.Errorf("status %+v", status)
			}
			healthy, updated := findCondition(status.Conditions, ConditionHistoryHealthy), findCondition(status.Conditions, ConditionUpdated)
			if healthy == nil || healthy.Status != corev1.ConditionFalse || healthy.Reason != c.reason || !strings.Contains(healthy.Message, c.message) {
				t.Errorf("condition %+v", healthy)
			}
			if updated == nil || updated.Status != corev1.ConditionFalse || updated.Reason != "RevisionNotRecorded" {
				t.Errorf("condition %+v", updated)
			}
			if got := w.events.Events("RecordFailed"); len(got) != 1 || !strings.Contains(got[0], c.message) {
				t.Errorf("events %q", w.events.Events())
			}

			// Once it can be stored, all goes on, and the status says so.
			w.Before = nil
			w.mustReconcile()
			healthy = findCondition(w.ds().Status.Conditions, ConditionHistoryHealthy)
			if healthy == nil || healthy.Status != corev1.ConditionTrue || len(w.WritesTo("Pod")) == 0 {
				t.Errorf("condition %+v, wrote %v", healthy, w.WritesTo("Pod"))
			}
		})
	}
}

// A spec that lets a pod stay where it is counts before it is recorded: the pod would come back as soon as that is
// done.
func TestUnrecordedPlaceIsNotTakenAway(t *testing.T) {
	tolerating := func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	for name, c := range map[string]struct {
		edit dsOption
		want []string
	}{
		"the spec lets it stay": {tolerating, []string{}},
		"neither lets it stay":  {image("agent:9"), []string{"delete n1-one"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, agent(c.edit), node("n1", taint(corev1.TaintEffectNoExecute)), stored(t, "agent:1", "one", 1), pod("n1", "one"))
			w.Before = fakeserver.Refuse("create", "ControllerRevision", errors.New("boom"))
			if _, err := w.reconcile(); err == nil {
				t.Error("it was recorded")
			}
			if diff := cmp.Diff(c.want, w.WritesTo("Pod")); diff != "" {
				t.Errorf("pod writes (-want +got):\n%s", diff)
			}
		})
	}
}

// What could not be reported has to be tried again, whatever else there is no point in trying again.
func TestUnrecordedAndUnreported(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	both := func(verb, kind string) func(fakeserver.Call) error {
		return func(c fakeserver.Call) error {
			return errors.Join(fakeserver.Refuse("create", "ControllerRevision", errTooLarge)(c), fakeserver.Refuse(verb, kind, boom)(c))
		}
	}
	w := newWorld(t, changed(t)...)
	w.Before = both("patch status", "DaemonSet")
	if _, err := w.reconcile(); !errors.Is(err, boom) || errors.Is(err, errTooLarge) {
		t.Errorf("the status was not written, and the error is %v", err)
	}
	w = newWorld(t, changed(t)...)
	w.Before = both("delete", "ControllerRevision")
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "delete revision agent-two") {
		t.Errorf("the log was not truncated, and the error is %v", err)
	}
}

// A race that was lost is nothing to tell anybody about: the history is as healthy as before.
func TestRecordLosesARace(t *testing.T) {
	w := newWorld(t, append(three(), stored(t, "agent:1", "one", 1), stored(t, "agent:2", "two", 2), pod("n1", "two"))...)
	w.Before = fakeserver.Refuse("patch", "ControllerRevision", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
	if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry {
		t.Errorf("again in %s", result.RequeueAfter)
	}
	if c := findCondition(w.ds().Status.Conditions, ConditionHistoryHealthy); c != nil || len(w.events.Events()) != 0 || len(w.WritesTo("Pod")) != 0 {
		t.Errorf("condition %+v, events %q, wrote %v", c, w.events.Events(), w.WritesTo("Pod"))
	}
}

// In a namespace that is being deleted nothing can be recorded; no event and no condition says so.
func TestRecordInATerminatingNamespace(t *testing.T) {
	w := newWorld(t, agent(), node("n1"))
	going := apierrors.NewForbidden(history.AppsResource, "agent", errors.New("the namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.Before = fakeserver.Refuse("create", "ControllerRevision", going)
	if _, err := w.reconcile(); err != nil {
		t.Error(err)
	}
	if len(w.events.Events()) > 0 || len(w.WritesTo("Pod")) > 0 {
		t.Errorf("events %q, wrote %v", w.events.Events(), w.WritesTo("Pod"))
	}
}

// Of two revisions that hold what is asked for one may go, but only after a look past the cache at the other one. A
// pass that cannot look truncates neither: the one that the cache shows may be gone already (H3).
func TestADuplicateIsNotTruncatedUnseen(t *testing.T) {
	w := newWorld(t, append(three(limit(0), dsOption(image("agent:9"))),
		stored(t, "agent:9", "nine", 2), stored(t, "agent:9", "copy", 1), stored(t, "agent:1", "one", 3))...)
	w.Before = fakeserver.Refuse("get", "ControllerRevision", apierrors.NewInternalError(errors.New("boom")))
	if _, err := w.reconcile(); err == nil {
		t.Error("the pass succeeded")
	}
	if diff := cmp.Diff([]string{"agent-copy", "agent-nine", "agent-one"}, w.revisionNames()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	w.Before = nil
	w.mustReconcile()
	w.mustReconcile()
	if diff := cmp.Diff([]string{"agent-nine"}, w.revisionNames()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}
