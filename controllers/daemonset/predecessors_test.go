package daemonset

// Whose name a pod never has: that of the one that it stands in for.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// only returns the pod that is there; there must be one.
func (s *server) only() *corev1.Pod {
	s.t.Helper()
	pods := s.pods()
	if len(pods) != 1 {
		s.t.Fatalf("%d pods", len(pods))
	}
	return pods[0]
}

// fails is what a kubelet does with a pod that it cannot run.
func (s *server) fails(p *corev1.Pod) {
	s.t.Helper()
	phase(corev1.PodFailed)(p)
	if err := s.Raw.Status().Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// TestAReplacementHasAnotherName replaces the pod of a node again and again: after it failed, and after somebody
// deleted it. The conformance test "should retry creating failed daemon pods" waits until the failed one is not found.
func TestAReplacementHasAnotherName(t *testing.T) {
	for name, lose := range map[string]func(w *world, p *corev1.Pod){
		"failed": func(w *world, p *corev1.Pod) {
			w.fails(p)
			w.mustReconcile() // deletes it
			w.clock.Step(15 * time.Minute)
		},
		"deleted": func(w *world, p *corev1.Pod) {
			if err := w.Raw.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, agent(), node("n1"))
			w.mustReconcile()
			if first, want := w.only().Name, podName(agent(), w.only().Labels["controller-revision-hash"], creation{node: "n1"}); first != want {
				t.Errorf("the first pod is %s, want %s", first, want)
			}
			seen := map[string]bool{}
			for range 5 {
				w.settle()
				w.mustReconcile()
				p := w.only()
				if seen[p.Name] {
					t.Fatalf("%s is back", p.Name)
				}
				seen[p.Name] = true
				lose(w, p)
				w.mustReconcile()
			}
		})
	}
}

// A pass that ended before it planned has seen its pods as well: here the revision that is asked for again, or an
// orphan that was to be adopted, has changed since it was read.
func TestAPassThatEndsEarlyHasSeenItsPods(t *testing.T) {
	for _, kind := range []string{"ControllerRevision", "Pod"} {
		t.Run(kind, func(t *testing.T) {
			orphan := pod("n2", "one", func(p *corev1.Pod) { p.OwnerReferences = nil })
			w := newWorld(t, agent(), node("n1"), stored(t, "agent:1", "one", 1), stored(t, "agent:2", "two", 2), pod("n1", "one"), orphan)
			w.Before = fakeserver.Refuse("patch", kind, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
			w.mustReconcile()
			w.Before = nil
			p := w.pod("n1-one")
			for _, gone := range []client.Object{w.pod("n2-one"), p} {
				if err := w.Raw.Delete(t.Context(), gone); err != nil {
					t.Fatal(err)
				}
			}
			w.mustReconcile()
			if got, want := w.only().Name, podName(agent(), "one", creation{node: "n1", after: p.UID}); got != want {
				t.Errorf("%s takes the place of %s, want %s", got, p.Name, want)
			}
		})
	}
}

// A pod that is about to be released was the DaemonSet's when it was read. Here it is deleted just before the release
// arrives.
func TestAReleasedPodHasBeenSeen(t *testing.T) {
	w := newWorld(t, agent(), node("n1"), stored(t, "agent:1", "one", 1), pod("n1", "one", func(p *corev1.Pod) { p.Labels["app"] = "none" }))
	p := w.only()
	w.Before = func(c fakeserver.Call) error {
		if c.Verb == "patch" && c.Kind == "Pod" {
			return errors.Join(w.Raw.Delete(t.Context(), p), apierrors.NewNotFound(schema.GroupResource{}, p.Name))
		}
		return nil
	}
	w.mustReconcile()
	if got, want := w.only().Name, podName(agent(), "one", creation{node: "n1", after: p.UID}); got != want {
		t.Errorf("%s takes the place of %s, want %s", got, p.Name, want)
	}
}

// A pod beside one that is terminating, or that ended and waits for somebody's finalizer, has another name than that at
// once, also in a process that just started.
func TestANameBesideOneThatGoes(t *testing.T) {
	for name, c := range map[string]struct {
		ds   dsOption
		gone podOption
	}{
		"terminating, with surge": {rolling(0, 1), func(*corev1.Pod) {}},
		"failed, and terminating": {rolling(1, 0), phase(corev1.PodFailed)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, agent(c.ds), node("n1"))
			w.mustReconcile()
			p := w.only()
			p.Finalizers = []string{"example.com/wait"}
			if err := w.Raw.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			c.gone(p)
			if err := w.Raw.Status().Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if err := w.Raw.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			two := []*world{worldOf(w.server, nil, nil), worldOf(w.server, nil, nil)}
			for _, manager := range two {
				manager.mustReconcile()
			}
			want := podName(agent(), p.Labels["controller-revision-hash"], creation{node: "n1", after: p.UID})
			if pods := w.pods(); len(pods) != 2 || pods[0].Name != want && pods[1].Name != want {
				t.Errorf("pods %v, want %s beside %s", names(pods), want, p.Name)
			}
			if taken := w.Calls("create"); len(taken) != 3 { // the revision, and a pod each time
				t.Errorf("it took %v", taken)
			}
		})
	}
}

// blind is a cache that does not show pods while it is shut.
type blind struct {
	client.Reader

	shut bool
}

func (b *blind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1.PodList); ok && b.shut {
		return nil
	}
	return b.Reader.List(ctx, list, opts...)
}

// Two managers that have seen the same make one pod (P1), however often it was replaced. A process that just started
// knows nothing of pods that are gone; it is content with what is there.
func TestReplacementsOfTwoManagers(t *testing.T) {
	s := newServer(t, agent(), node("n1"))
	cache := &blind{Reader: s}
	one, other := worldOf(s, cache, nil), worldOf(s, cache, nil)
	one.mustReconcile()
	for range 3 {
		s.settle()
		one.mustReconcile()
		other.mustReconcile()
		if err := s.Raw.Delete(t.Context(), s.only()); err != nil {
			t.Fatal(err)
		}
		cache.shut = true // neither sees what the other one makes
		one.mustReconcile()
		other.mustReconcile()
		cache.shut = false
		s.only()
	}
	before := s.only().Name
	worldOf(s, nil, nil).mustReconcile()
	if after := s.only().Name; after != before {
		t.Errorf("%s was replaced by %s", before, after)
	}
}

func TestPredecessors(t *testing.T) {
	var p predecessors
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: "ds"}}
	of := func(ds types.UID, hash string, nodes []*corev1.Node, pods []*corev1.Pod) map[string]types.UID {
		p.trim(ds, nodes)
		p.note(set, pods)
		last, _ := p.of(ds, hash)
		return last
	}
	one, two := nodes("n1"), nodes("n1", "n2")
	want := func(got map[string]types.UID, want map[string]types.UID) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("predecessors (-want +got):\n%s", diff)
		}
	}
	first := pod("n1", hashNew, age(2*time.Minute))
	want(of("ds", hashNew, two, []*corev1.Pod{first, pod("n2", hashOld)}), map[string]types.UID{"n1": first.UID})
	want(of("ds", hashNew, two, nil), map[string]types.UID{"n1": first.UID})
	want(of("other", hashNew, two, nil), map[string]types.UID{})
	// The latest of several, in any order.
	b, c := pod("n1", hashNew, named("b"), age(time.Minute)), pod("n1", hashNew, named("c"), age(time.Minute), unscheduled)
	want(of("ds", hashNew, two, []*corev1.Pod{b, c, first}), map[string]types.UID{"n1": c.UID})
	want(of("ds", hashNew, two, []*corev1.Pod{first, c, b}), map[string]types.UID{"n1": c.UID})
	// One that was made after it, and is gone already, counts more.
	want(of("ds", hashNew, two, []*corev1.Pod{first}), map[string]types.UID{"n1": c.UID})
	// A pod of another revision has another name in any case. A spec may go back and forth while pods of others are there.
	want(of("ds", hashOld, two, nil), map[string]types.UID{"n2": "uid-of-n2-old"})
	want(of("ds", hashOld, two, []*corev1.Pod{pod("n1", hashOld)}), map[string]types.UID{"n1": "uid-of-n1-old", "n2": "uid-of-n2-old"})
	want(of("ds", hashNew, two, nil), map[string]types.UID{"n1": c.UID})
	for i := range mostRevisions + 1 {
		p.note(set, []*corev1.Pod{pod("n1", fmt.Sprint(i), age(30*time.Second))})
	}
	want(of("ds", hashNew, two, nil), map[string]types.UID{}) // that was too far back
	want(of("ds", hashNew, two, []*corev1.Pod{pod("n2", hashNew)}), map[string]types.UID{"n2": "uid-of-n2-new"})
	// A node that is gone may come back; not all of them do.
	want(of("ds", hashNew, one, nil), map[string]types.UID{"n2": "uid-of-n2-new"})
	want(of("ds", hashNew, one, []*corev1.Pod{first}), map[string]types.UID{"n1": first.UID, "n2": "uid-of-n2-new"})
	for i := range mostGone {
		p.note(set, []*corev1.Pod{pod(fmt.Sprint("gone-", i), hashNew)})
	}
	want(of("ds", hashNew, one, nil), map[string]types.UID{"n1": first.UID})
	p.note(set, []*corev1.Pod{first})
	p.forget("ds")
	want(of("ds", hashNew, two, nil), map[string]types.UID{})
	p.forget("ds")
	p.forget("other")
	if len(p.all) != 0 {
		t.Errorf("left over: %v", p.all)
	}
}

// Of two pods that were created in one second, the one that stands in for the other is the last one, whatever their
// names.
func TestPredecessorsOfOneSecond(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", UID: "ds"}}
	failed := pod("n1", hashNew)
	next := failed.DeepCopy()
	next.UID = "next"
	for _, name := range []string{"a", "z"} {
		failed.Name, next.Name = name, podName(set, hashNew, creation{node: "n1", after: failed.UID})
		for _, pods := range [][]*corev1.Pod{{failed, next}, {next, failed}} {
			var p predecessors
			p.note(set, pods)
			p.note(set, []*corev1.Pod{failed}) // the other one went first
			if last, _ := p.of("ds", hashNew); last["n1"] != next.UID {
				t.Errorf("after %s the last one is %s", name, last["n1"])
			}
		}
	}
}

func names(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, fmt.Sprintf("%s(%s)", p.Name, p.Status.Phase))
	}
	return out
}
