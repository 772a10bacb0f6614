package check_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file does the same for ReplicaSets, whose pods have no places and no revisions.

// replicated is a store with the ReplicaSet rs: three pods.
type replicated struct{ *world }

func newReplicated(t testing.TB) replicated {
	t.Helper()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rs", UID: "rs-uid", Generation: 1},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(3)), Template: template("app:1")},
		Status: appsv1.ReplicaSetStatus{
			ObservedGeneration: 1, Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, TerminatingReplicas: new(int32(0)),
		},
	}
	return replicated{worldOf(t, rs, replica("a"), replica("b"), replica("c"))}
}

func replica(name string) *corev1.Pod {
	p := pod("rs", "rs-uid", "n1", "", "app:1")
	delete(p.Labels, "controller-revision-hash")
	p.Name = "rs-" + name
	p.OwnerReferences[0].Kind = "ReplicaSet"
	return p
}

func (w replicated) set(change func(*appsv1.ReplicaSet)) {
	rs := get(w.world, &appsv1.ReplicaSet{}, "rs")
	change(rs)
	w.put(rs)
}

// edit is a user who edits; seen is a controller that says that it has seen it.
func (w replicated) edit(change func(*appsv1.ReplicaSetSpec)) {
	w.as("user", func() {
		w.set(func(rs *appsv1.ReplicaSet) {
			change(&rs.Spec)
			rs.Generation++
		})
	})
}

func (w replicated) scale(n int32) { w.edit(func(spec *appsv1.ReplicaSetSpec) { spec.Replicas = &n }) }

func (w replicated) seen() {
	w.set(func(rs *appsv1.ReplicaSet) { rs.Status.ObservedGeneration = rs.Generation })
}

func TestReplicaSetPromises(t *testing.T) {
	for _, p := range []struct {
		want, name string
		bad, good  func(w replicated)
	}{
		{"P2", "as many as are asked for", func(w replicated) { w.put(replica("d")) }, func(w replicated) {
			w.as("user", func() { w.mark("rs-a") }) // one that goes does not count
			w.put(replica("d"))
		}},
		{"P2", "one that has ended does not count", func(w replicated) {
			w.as("kubelet", func() { w.pod("rs-a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }) })
			w.put(replica("d"))
		}, func(w replicated) {
			w.as("kubelet", func() { w.pod("rs-a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) })
			w.put(replica("d"))
		}},
		{"P2", "by an edit that it has seen", func(w replicated) {
			w.scale(4)
			w.scale(3)
			w.seen()
			w.put(replica("d"))
		}, func(w replicated) {
			w.scale(4)
			w.scale(3)
			w.put(replica("d"))
		}},
		{"P4", "as its parent asks", func(w replicated) {
			w.as("user", func() { w.mark("rs-a") })
			p := replica("d")
			p.Spec.Containers[0].Image = "app:2"
			w.put(p)
		}, func(w replicated) {
			w.edit(func(spec *appsv1.ReplicaSetSpec) { spec.Template.Spec.Containers[0].Image = "app:2" })
			w.as("user", func() { w.mark("rs-a") })
			p := replica("d")
			p.Spec.Containers[0].Image = "app:2"
			w.put(p)
		}},
		{"S1", "counters agree", func(w replicated) {
			w.set(func(rs *appsv1.ReplicaSet) { rs.Status.ReadyReplicas = 4 })
		}, func(w replicated) {
			w.set(func(rs *appsv1.ReplicaSet) { rs.Status.AvailableReplicas = 2 })
		}},
		{"S1", "nothing below zero", func(w replicated) {
			w.set(func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = new(int32(-1)) })
		}, func(w replicated) {
			w.set(func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = nil })
		}},
		{"S2", "generations rise", func(w replicated) {
			w.scale(3)
			w.seen()
			w.set(func(rs *appsv1.ReplicaSet) { rs.Status.ObservedGeneration = 1 })
		}, func(w replicated) {
			w.scale(3)
			w.seen()
		}},
		{"P6", "deletes carry the UID", func(w replicated) {
			w.scale(2)
			w.byName = true
			w.mark("rs-a")
		}, func(w replicated) {
			w.scale(2)
			w.mark("rs-a")
		}},
		{"P3", "only what is too much goes", func(w replicated) { w.mark("rs-a") }, func(w replicated) {
			w.scale(2)
			w.mark("rs-a")
		}},
		{"P3", "what is not ready goes first", func(w replicated) {
			w.scale(2)
			w.breaks("rs-b")
			w.in(seeing("1", w.rv), func() { w.mark("rs-a") })
		}, func(w replicated) {
			w.scale(1)
			w.breaks("rs-b")
			w.in(seeing("1", w.rv), func() { w.mark("rs-a") }) // rs-b is on its way to go as well
		}},
	} {
		t.Run(p.want+" "+p.name, func(t *testing.T) {
			broken := newReplicated(t)
			p.bad(broken)
			if got := check.Check(broken.history(), parents.ReplicaSet()); len(got) != 1 || got[0].Invariant != p.want {
				t.Errorf("want one violation of %s, got %d:\n%s", p.want, len(got), story(got))
			}
			kept := newReplicated(t)
			p.good(kept)
			if got := check.Check(kept.history(), parents.ReplicaSet()); len(got) != 0 {
				t.Errorf("want none, got %d:\n%s", len(got), story(got))
			}
		})
	}
}

// Of two managers, none need know what the other one does. That excuses the adoption of an orphan and a name that
// became free, and not a name that nobody ever had.
func TestReplicaSetOfTwoManagers(t *testing.T) {
	seen := func(instance string, rv uint64) *check.Pass {
		p := seeing(instance, rv)
		p.Instance = instance
		return p
	}
	adopt := func(w replicated) {
		orphan := replica("o")
		orphan.OwnerReferences = nil
		w.as("user", func() { w.put(orphan) })
		w.in(seen("b", w.rv), func() {
			w.read("rs-uid", w.rv)
			w.pod("rs-o", func(p *corev1.Pod) { p.OwnerReferences = replica("o").OwnerReferences })
		})
	}
	edited := func(p *check.Pass, rv uint64) *check.Pass { // its cache of parents is newer
		p.Views[resourceOf(&appsv1.ReplicaSet{})] = rv
		return p
	}
	end := func(w replicated, name string) {
		w.as("user", func() { w.mark(name) })
		w.as("kubelet", func() { w.remove(&corev1.Pod{}, name) })
	}
	// listed has a manager whose name is free again make a pod, after a list of what has these labels.
	listed := func(w replicated, selected labels.Set) {
		w.as("user", func() { w.mark("rs-a") })
		view := w.rv
		w.as("kubelet", func() { w.remove(&corev1.Pod{}, "rs-a") })
		w.in(seen("b", view), func() { w.put(replica("d")) })
		w.as("user", func() { w.pod("rs-d", func(p *corev1.Pod) { p.Labels = nil }) })
		w.in(seen("a", view), func() {
			w.log = append(w.log, &check.Entry{
				User: w.actor, Verb: "list", Resource: "pods", Namespace: namespace, Code: http.StatusOK, RV: w.rv, Pass: w.pass,
				Labels: selected.AsSelector(),
			})
			w.put(replica("a"))
		})
	}
	for _, test := range []struct {
		want, name string
		do         func(w replicated)
	}{
		{"", "a list did not show what was relabelled", func(w replicated) { listed(w, labels.Set{"app": "web"}) }},
		{"P2", "a list showed what was relabelled", func(w replicated) { listed(w, nil) }},
		{"", "the other one adopted", func(w replicated) {
			w.scale(4)
			view := w.rv
			adopt(w)
			w.in(seen("a", view), func() { w.put(replica("d")) })
		}},
		{"P2", "the other one adopted before the view", func(w replicated) {
			w.scale(4)
			adopt(w)
			w.in(seen("a", w.rv), func() { w.put(replica("d")) })
		}},
		{"P2", "the other one made one under another name", func(w replicated) {
			w.scale(4)
			view := w.rv
			w.in(seen("b", view), func() { w.put(replica("e")) })
			w.in(seen("a", view), func() { w.put(replica("d")) })
		}},
		{"", "the other one made one more when more were asked for", func(w replicated) {
			w.scale(5)
			view := w.rv
			w.in(seen("b", view), func() { w.put(replica("e")) })
			w.scale(4)
			w.in(edited(seen("a", view), w.rv), func() { w.put(replica("d")) })
		}},
		{"P2", "the other one made one more when more were asked for, before the view", func(w replicated) {
			w.scale(5)
			w.in(seen("b", w.rv), func() { w.put(replica("e")) })
			w.scale(4)
			w.in(edited(seen("a", w.rv), w.rv), func() { w.put(replica("d")) })
		}},
		{"", "a name became free, and was given again", func(w replicated) {
			w.as("user", func() { w.mark("rs-a") })
			view := w.rv
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "rs-a") })
			w.in(seen("b", w.rv), func() { w.put(replica("a")) })
			w.in(seen("a", view), func() { w.put(replica("d")) })
		}},
		{"", "its own name became free", func(w replicated) {
			w.as("user", func() { w.mark("rs-a") })
			view := w.rv
			w.as("kubelet", func() { w.remove(&corev1.Pod{}, "rs-a") })
			late := w.rv
			w.in(seen("b", view), func() { w.put(replica("d")) })
			w.in(seen("a", late), func() { w.put(replica("a")) })
		}},
		{"P2", "a manager alone gives a name again", func(w replicated) {
			end(w, "rs-a")
			view := w.rv
			w.in(seen("a", view), func() { w.put(replica("d")) })
			w.in(seen("a", view), func() { w.put(replica("a")) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newReplicated(t)
			test.do(w)
			var found []string
			for _, v := range check.Check(w.history(), parents.ReplicaSet()) {
				found = append(found, v.Invariant)
			}
			if got := strings.Join(found, " "); got != test.want {
				t.Errorf("got %q, want %q:\n%s", got, test.want, story(check.Check(w.history(), parents.ReplicaSet())))
			}
		})
	}
}

// Where passes are not known, two managers are told by their user agents: one need not know what the other one deleted.
func TestManagersAreToldByTheirUserAgents(t *testing.T) {
	for agent, want := range map[string]int{"": 1, "manager-2": 0} {
		w := newReplicated(t)
		w.scale(2)
		w.mark("rs-a")
		w.mark("rs-b")
		h := w.history()
		h.Events[len(h.Events)-1].By.UserAgent = agent
		if got := check.Check(h, parents.ReplicaSet()); len(got) != want || want > 0 && got[0].Invariant != "P3" {
			t.Errorf("the second one by %q: want %d violations of P3, got:\n%s", agent, want, story(got))
		}
	}
}

func TestReplicaSetAtRest(t *testing.T) {
	for want, do := range map[string]func(w replicated){
		"":      func(replicated) {},
		"C1":    func(w replicated) { w.scale(3) },
		"S1 C1": func(w replicated) { w.as("user", func() { w.remove(&corev1.Pod{}, "rs-a") }) },
		"P2":    func(w replicated) { w.scale(2); w.seen() },
		"S1 P2": func(w replicated) { w.as("user", func() { w.put(replica("d")) }) },
	} {
		t.Run(want, func(t *testing.T) {
			w := newReplicated(t)
			do(w)
			var found []string
			for _, v := range check.Rest(w.history(), w.rv, parents.ReplicaSet()) {
				found = append(found, v.Invariant)
			}
			got := strings.Join(slices.Compact(found), " ")
			if got != want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A ReplicationController is the same with other types.
func TestReplicationControllerPromises(t *testing.T) {
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rs", UID: "rs-uid", Generation: 1},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Template: new(template("app:1"))},
		Status:     corev1.ReplicationControllerStatus{ObservedGeneration: 1, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	pod := func(name, image string) *corev1.Pod {
		p := replica(name)
		p.OwnerReferences[0].Kind, p.OwnerReferences[0].APIVersion = "ReplicationController", "v1"
		p.Spec.Containers[0].Image = image
		return p
	}
	w := worldOf(t, rc, pod("a", "app:1"), pod("b", "app:1"))
	if got := check.Rest(w.history(), w.rv, parents.ReplicationController()); len(got) != 0 {
		t.Errorf("at rest, want none, got:\n%s", story(got))
	}
	w.as("user", func() { w.remove(&corev1.Pod{}, "rs-a") })
	w.put(pod("a", "app:1"))
	if got := check.Check(w.history(), parents.ReplicationController()); len(got) != 0 {
		t.Errorf("want none, got:\n%s", story(got))
	}
	w.put(pod("c", "app:2"))
	rc.Status.Replicas = -1
	w.put(rc)
	var found []string
	for _, v := range check.Check(w.history(), parents.ReplicationController()) {
		found = append(found, v.Invariant)
	}
	if want := []string{"P2", "P4", "S1", "S1", "S1"}; !slices.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}

// What the server refused is judged as well, of the controllers under test and no others.
func TestARefusedStatusIsReported(t *testing.T) {
	entry := check.Entry{
		User: manager, Verb: "update", Group: "apps", Resource: "replicasets", Namespace: namespace, Name: "rs", Subresource: "status",
		Code: 422, Negative: "readyReplicas is -1",
	}
	for name, test := range map[string]struct {
		change func(*check.Entry)
		want   int
	}{
		"below zero":       {func(*check.Entry) {}, 1},
		"a conflict":       {func(e *check.Entry) { e.Code, e.Negative = 409, "" }, 0},
		"of another kind":  {func(e *check.Entry) { e.Resource = "deployments" }, 0},
		"of somebody else": {func(e *check.Entry) { e.User = "user" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newReplicated(t)
			w.scale(3)
			h := w.history()
			e := entry
			test.change(&e)
			h.Attach([]check.Entry{e}, func(e *check.Entry) bool { return e.User == manager })
			got := check.Check(h, parents.ReplicaSet())
			if len(got) != test.want {
				t.Errorf("want %d violations, got:\n%s", test.want, story(got))
			}
			for _, v := range got {
				if v.Invariant != "S1" || v.Object.Name != "rs" || !strings.Contains(v.String(), "readyReplicas is -1") {
					t.Error(v)
				}
			}
		})
	}
}
