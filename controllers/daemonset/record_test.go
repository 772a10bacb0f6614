package daemonset

// What a pass makes of the log: duplicates, taken names, and which revision the pods are built from.

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

// TestDuplicateOfALiveRevision: the pods of agent:1 carry the label of a revision that is stored twice. They are
// pointed at the one that stays, which from then on is live, at any limit (H3); and no other pod is
// (kubernetes#111280).
func TestDuplicateOfALiveRevision(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(fakeserver.Call) error
		err           bool
		want          []string
	}{
		"all goes well":         {nil, nil, false, []string{"agent-one", "agent-three"}},
		"a response is lost":    {nil, fakeserver.Refuse("patch", "Pod", apierrors.NewTimeoutError("lost", 0)), true, []string{"agent-one", "agent-three", "agent-twin", "agent-two"}},
		"the delete is refused": {fakeserver.Refuse("delete", "ControllerRevision", errors.New("boom")), nil, true, []string{"agent-one", "agent-three", "agent-twin", "agent-two"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(three(limit(0), onDelete, func(ds *appsv1.DaemonSet) { image("agent:3")(ds) }),
				stored(t, "agent:1", "twin", 1), stored(t, "agent:1", "one", 2), stored(t, "agent:2", "two", 3), stored(t, "agent:3", "three", 4),
				pod("n1", "twin"), pod("n2", "three"), pod("n3", "three"))...)
			w.Before, w.After = c.before, c.after
			if _, err := w.reconcile(); (err != nil) != c.err {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"patch n1-twin"}, w.WritesTo("Pod")); diff != "" {
				t.Errorf("pod writes (-want +got):\n%s", diff)
			}
			if got := w.pod("n1-twin").Labels["controller-revision-hash"]; got != "one" {
				t.Errorf("n1's pod is labelled %s", got)
			}
			if diff := cmp.Diff(c.want, w.revisionNames()); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			// The next pass needs nothing but the end of it.
			w.Before, w.After = nil, nil
			w.mustReconcile()
			if diff := cmp.Diff([]string{"agent-one", "agent-three"}, w.revisionNames()); diff != "" {
				t.Errorf("revisions in the end (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDuplicateAndAStaleCache: after a restart the cache does not show a pod of the duplicate. Neither is any pod
// pointed elsewhere, nor does the duplicate go, until it does (H3).
func TestDuplicateAndAStaleCache(t *testing.T) {
	objects := func(pods ...client.Object) []client.Object {
		return append(append(three(limit(0), onDelete, dsOption(image("agent:3"))),
			stored(t, "agent:1", "twin", 1), stored(t, "agent:1", "one", 2), stored(t, "agent:3", "three", 3),
			pod("n1", "twin"), pod("n3", "three")), pods...)
	}
	s := newServer(t, objects(pod("n2", "twin"))...)
	w := worldOf(s, newServer(t, objects()...).Raw, nil)
	if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.Writes()) != 0 {
		t.Errorf("result %+v, wrote %v", result, w.Writes())
	}
	w = worldOf(s, nil, nil)
	w.mustReconcile()
	if diff := cmp.Diff([]string{"patch n1-twin", "patch n2-twin"}, w.WritesTo("Pod")); diff != "" {
		t.Errorf("pod writes (-want +got):\n%s", diff)
	}
	// Nobody says what pods there are.
	s = newServer(t, objects(pod("n2", "twin"))...)
	w = worldOf(s, nil, nil)
	w.Before = fakeserver.Refuse("list", "PartialObjectMetadataList", apierrors.NewInternalError(errors.New("boom")))
	if _, err := w.reconcile(); !apierrors.IsInternalError(err) || len(w.WritesTo("Pod")) != 0 || len(w.Calls("delete")) != 0 {
		t.Errorf("%v, wrote %v", err, w.Writes())
	}
}

// TestDuplicateOfTheUpdateRevision: the pods that carry the duplicate's label conform, and are counted so in the pass
// that relabels them: they are not replaced.
func TestDuplicateOfTheUpdateRevision(t *testing.T) {
	w := newWorld(t, append(three(limit(0)), stored(t, "agent:1", "twin", 1), stored(t, "agent:1", "one", 2),
		pod("n1", "twin"), pod("n2", "one"), pod("n3", "twin"))...)
	w.mustReconcile()
	if diff := cmp.Diff([]string{"patch n1-twin", "patch n3-twin"}, w.WritesTo("Pod")); diff != "" {
		t.Errorf("pod writes (-want +got):\n%s", diff)
	}
	if s := w.ds().Status; s.UpdatedNumberScheduled != 3 {
		t.Errorf("status %+v", s)
	}
	if len(w.events.Events("SuccessfulDelete")) != 0 {
		t.Errorf("events %q", w.events.Events())
	}
}

// TestReturnToADuplicate: agent:1 is stored twice and asked for again. The pods of agent:2 keep their label until they
// are replaced by pods of what the spec asks for (P4).
func TestReturnToADuplicate(t *testing.T) {
	w := newWorld(t, append(three(), stored(t, "agent:1", "one", 1), stored(t, "agent:1", "twin", 2), stored(t, "agent:2", "two", 3))...)
	for _, n := range []string{"n1", "n2", "n3"} {
		p := pod(n, "two", func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: "agent", Image: "agent:2"}} })
		p.ResourceVersion = ""
		if err := w.Raw.Create(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		w.mustReconcile()
		w.settle()
	}
	if diff := cmp.Diff(map[string]string{"n1": "agent:1", "n2": "agent:1", "n3": "agent:1"}, w.images()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"agent-twin": 4, "agent-two": 3}, w.revisions()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if got := w.events.Events("RolledBack"); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

// TestALostLogIsFoundByName: all revisions are gone, by a restore without them or by somebody's hand. The one that is
// recorded anew has the name that kube-controller-manager gives, so that the pods of either controller are still what
// the spec asks for: none is touched. TestNamesAreUpstreams in proof/check is about any template; this hash is
// upstream's.
func TestALostLogIsFoundByName(t *testing.T) {
	const upstreams = "744c9486c6"
	w := newWorld(t, append(three(), pod("n1", upstreams), pod("n2", upstreams), pod("n3", upstreams))...)
	w.mustReconcile()
	if diff := cmp.Diff(map[string]int64{"agent-" + upstreams: 1}, w.revisions()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if writes := w.WritesTo("Pod"); len(writes) != 0 {
		t.Errorf("wrote %v", writes)
	}
}

// A name that a stranger has costs one count, once, and the status keeps it.
func TestCollisionCount(t *testing.T) {
	data := stored(t, "agent:1", "x", 1).Data.Raw
	_, hash := history.DaemonSet().Named(agent(), data, nil)
	stranger := stored(t, "agent:7", hash, 1)
	stranger.OwnerReferences, stranger.Labels = nil, nil
	w := newWorld(t, append(three(), stranger)...)
	for range 3 {
		w.mustReconcile()
		if got := w.ds().Status.CollisionCount; got == nil || *got != 1 || len(w.revisions()) != 2 {
			t.Errorf("collision count %v, revisions %v", got, w.revisions())
		}
		w.settle()
	}
	_, hash = history.DaemonSet().Named(agent(), data, new(int32(1)))
	for _, p := range w.pods() {
		if got := p.Labels["controller-revision-hash"]; got != hash {
			t.Errorf("%s is labelled %s", p.Name, got)
		}
	}
}

// TestPodsComeFromTheStoredRevision: the revision that the DaemonSet asks for was stored before dnsPolicy had a default
// (rules E0 and E4). A pod that is made now is like those that were made then.
func TestPodsComeFromTheStoredRevision(t *testing.T) {
	old := stored(t, "agent:1", "one", 1)
	old.Annotations = map[string]string{history.ParentUIDAnnotation: "agent-uid", history.ParentGenerationAnnotation: "1"}
	w := newWorld(t, append(three(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst }), old, pod("n1", "one"))...)
	w.mustReconcile()
	if len(w.pods()) != 3 || len(w.revisions()) != 1 {
		t.Fatalf("%d pods, revisions %v", len(w.pods()), w.revisions())
	}
	for _, p := range w.pods() {
		if p.Labels["controller-revision-hash"] != "one" || p.Spec.DNSPolicy != "" {
			t.Errorf("%s has labels %v and policy %q", p.Name, p.Labels, p.Spec.DNSPolicy)
		}
	}
}

// An update revision that nobody can read any more is no reason to touch anything (rule E6), and the status says so.
func TestUnreadableUpdateRevision(t *testing.T) {
	old := stored(t, "agent:1", "one", 1)
	old.Annotations = map[string]string{history.ParentUIDAnnotation: "agent-uid", history.ParentGenerationAnnotation: "1"}
	old.Data.Raw = []byte(`{"spec":{"template":"none"}}`)
	w := newWorld(t, append(three(), old, pod("n1", "one"), pod("n2", "one"))...)
	w.mustReconcile()
	if len(w.revisions()) != 1 || len(w.Calls("delete")) != 0 || len(w.WritesTo("Pod")) != 1 {
		t.Errorf("wrote %v", w.Writes())
	}
	for _, p := range w.pods() {
		if p.Labels["controller-revision-hash"] != "one" || bound(p) == "n3" && p.Spec.Containers[0].Image != "agent:1" {
			t.Errorf("%s has labels %v and containers %v", p.Name, p.Labels, p.Spec.Containers)
		}
	}
	if c := findCondition(w.ds().Status.Conditions, ConditionHistoryHealthy); c == nil || c.Reason != "RevisionUnreadable" {
		t.Errorf("condition %+v", c)
	}
	if got := strings.Join(w.events.Events(), "\n"); strings.Count(got, "Warning RevisionUnreadable ") != 1 {
		t.Errorf("events %s", got)
	}
}

// The generation that the status has seen never falls (S2).
func TestObservedGeneration(t *testing.T) {
	w := newWorld(t, three(func(ds *appsv1.DaemonSet) { ds.Generation, ds.Status.ObservedGeneration = 3, 7 })...)
	w.mustReconcile()
	if got := w.ds().Status.ObservedGeneration; got != 7 {
		t.Errorf("observed generation %d", got)
	}
}

// TestARevisionThatIsTerminating: a revision that a finalizer keeps stays the update revision. Its successor has its
// name, so that no pod is replaced.
func TestARevisionThatIsTerminating(t *testing.T) {
	w := newWorld(t, three()...)
	w.passes(3)
	names := func() (out []string) {
		for _, pod := range w.pods() {
			out = append(out, pod.Name)
		}
		return append(out, w.revisionNames()...)
	}
	before := names()
	var revision appsv1.ControllerRevision
	if err := w.Raw.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: w.revisionNames()[0]}, &revision); err != nil {
		t.Fatal(err)
	}
	revision.Finalizers = []string{"example.com/wait"}
	if err := w.Raw.Update(t.Context(), &revision); err != nil {
		t.Fatal(err)
	}
	if err := w.Raw.Delete(t.Context(), &revision); err != nil {
		t.Fatal(err)
	}
	w.passes(3)
	if diff := cmp.Diff(before, names()); diff != "" {
		t.Errorf("while it is terminating (-want +got):\n%s", diff)
	}
	if err := w.Raw.Get(t.Context(), client.ObjectKeyFromObject(&revision), &revision); err != nil {
		t.Fatal(err)
	}
	revision.Finalizers = nil
	if err := w.Raw.Update(t.Context(), &revision); err != nil {
		t.Fatal(err)
	}
	w.passes(3)
	if diff := cmp.Diff(before, names()); diff != "" {
		t.Errorf("after it is gone (-want +got):\n%s", diff)
	}
}
