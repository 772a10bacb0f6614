package daemonset

// Creating pods: names that are taken, responses that are lost.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// creating is a plan of n creates.
func creating(n int) (facts, *plan) {
	p := &plan{}
	for i := range n {
		p.Creates = append(p.Creates, creation{node: fmt.Sprintf("n%03d", i), reason: "it has none"})
	}
	return given(agent(), nil), p
}

// TestEditedMeanwhile: pods take their time, the parent is edited, and no more of the old ones are made.
func TestEditedMeanwhile(t *testing.T) {
	w := newWorld(t, agent())
	f, p := creating(20)
	p.Deletes = []deletion{{pod: pod("gone", hashOld), node: "gone", reason: "test"}}
	w.Before = func(fakeserver.Call) error {
		if len(w.Calls("create")) == 3 {
			edited := agent()
			edited.Generation = f.ds.Generation + 1
			return w.Raw.Update(t.Context(), edited)
		}
		return nil
	}
	err := w.act(f, p)
	if got := len(w.Calls("create")); got != 3 || len(w.Calls("delete")) != 0 || !pass.IsStale(err) {
		t.Errorf("%d creates, %d deletes, %v", got, len(w.Calls("delete")), err)
	}
}

func bound(p *corev1.Pod) string {
	name, _ := nodeOf(p)
	return name
}

func TestCreate(t *testing.T) {
	w := newWorld(t)
	f, p := creating(1)
	if err := w.act(f, p); err != nil {
		t.Fatal(err)
	}
	want := podFor(f.ds, hashNew, creation{node: "n000"})
	var got corev1.Pod
	if err := w.Raw.Get(t.Context(), client.ObjectKeyFromObject(want), &got); err != nil {
		t.Fatal(err)
	}
	want.UID, want.ResourceVersion = "uid-1", "2"
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Normal SuccessfulCreate Created pod: " + want.Name + " (it has none)"}, w.events.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestTakenPodName puts something under the name of the pod that is to be made. Only a pod of this DaemonSet, of this
// revision, on this node, that stays, is the one that is wanted.
func TestTakenPodName(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		used   bool
	}{
		"ours":                  {func(*corev1.Pod) {}, true},
		"ours, scheduled":       {func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.Affinity = "n000", nil }, true},
		"ours, terminating":     {terminating, false},
		"ours, other revision":  {func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = hashOld }, false},
		"ours, other node":      {func(p *corev1.Pod) { p.Spec.NodeName = "n001" }, false},
		"ours, on no node":      {func(p *corev1.Pod) { p.Spec.Affinity = nil }, false},
		"of our namesake":       {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "old-uid" }, false},
		"nobody's":              {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"owned, not controlled": {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := creating(1)
			taken := podFor(f.ds, hashNew, creation{node: "n000"})
			taken.UID = "taken"
			c.change(taken)
			w := worldOf(newServer(t, taken), nil, map[schema.GroupResource]ownership.Store{podResource: &store{version: "1"}})
			before := w.pod(taken.Name)
			if err := w.act(f, p); err != nil {
				t.Fatal(err)
			}
			var want []string
			if !c.used {
				want = []string{podFor(f.ds, hashNew, creation{node: "n000", after: "taken"}).Name}
			}
			var made []string
			for _, pod := range w.pods() {
				if pod.UID != "taken" {
					made = append(made, pod.Name)
				}
			}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
			if w.r.Consistency.Unseen(f.ds.UID) == "" {
				t.Error("nothing waits for the cache to show the pod")
			}
			if diff := cmp.Diff(before, w.pod(taken.Name)); diff != "" || len(w.Calls("patch", "delete")) != 0 {
				t.Errorf("what was there changed:\n%s", diff)
			}
		})
	}
}

func TestCreateErrors(t *testing.T) {
	exists, boom := apierrors.NewAlreadyExists(schema.GroupResource{}, "x"), apierrors.NewInternalError(errors.New("boom"))
	quota := apierrors.NewForbidden(podResource, "x", errors.New("exceeded quota"))
	foreign := func(ctx context.Context, w *world) {
		next := creation{node: "n000"}
		for i := range maxNameProbes {
			stranger := podFor(agent(), hashNew, next)
			stranger.OwnerReferences, stranger.UID = nil, types.UID(fmt.Sprint("stranger-", i))
			if err := w.Raw.Create(ctx, stranger); err != nil {
				t.Fatal(err)
			}
			next.after = stranger.UID
		}
	}
	for name, c := range map[string]struct {
		prepare func(context.Context, *world)
		before  func(fakeserver.Call) error
		want    string
		creates int
		events  int
	}{
		"refused":           {nil, fakeserver.Refuse("create", "Pod", quota), "create a pod for node n000: ", 1, 1},
		"gone at read back": {nil, fakeserver.Refuse("create", "Pod", exists), "it existed and was deleted meanwhile", 1, 1},
		"no read back": {nil, func(c fakeserver.Call) error {
			return errors.Join(fakeserver.Refuse("create", "Pod", exists)(c), fakeserver.Refuse("get", "Pod", boom)(c))
		}, "read back Pod", 1, 1},
		"all names taken": {foreign, nil, "create a pod for node n000: 8 names in a row are taken", 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.prepare != nil {
				c.prepare(t.Context(), w)
			}
			w.Before = c.before
			f, p := creating(1)
			p.Deletes = []deletion{{pod: pod("gone", hashOld), node: "gone", reason: "test"}}
			err := w.act(f, p)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(w.Calls("create")) != c.creates {
				t.Errorf("%d creates, %v", len(w.Calls("create")), err)
			}
			if len(w.events.Events("FailedCreate")) != c.events || len(w.Calls("delete")) != 1 {
				t.Errorf("events %q, %d deletes", w.events.Events(), len(w.Calls("delete")))
			}
		})
	}
}

// pods returns the pods of namespace default, by name.
func (s *server) pods() []*corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	if err := s.Raw.List(context.Background(), &list, client.InNamespace("default")); err != nil {
		s.t.Fatal(err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

func (s *server) pod(name string) *corev1.Pod {
	s.t.Helper()
	var p corev1.Pod
	if err := s.Raw.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, &p); err != nil {
		s.t.Fatal(err)
	}
	return &p
}
