package ownership_test

// Races for a child: at most one wins, and nobody is stopped by losing.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

var pods = schema.GroupResource{Resource: "pods"}

func TestLosersOfAnAdoptionRaceCarryOn(t *testing.T) {
	for name, c := range map[string]struct {
		lost  error
		ours  []string
		again bool
	}{
		// What could not be released is still ours, and the revision that it came from is in use.
		"somebody changed it": {apierrors.NewConflict(pods, "first", errors.New("the object has been modified")), []string{"stray", "second"}, true},
		"it is gone":          {apierrors.NewNotFound(pods, "first"), []string{"second"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			us := parent("us")
			s := serve(t, us, child("first"), child("second"), child("stray", ownedBy(us), labelled("y")))
			s.hook = func(o client.Object, _ string) error {
				if o.GetName() == "second" {
					return nil
				}
				return c.lost
			}
			claimer := s.claimer(us)
			var wrote []string
			claimer.Wrote = func(o client.Object) { wrote = append(wrote, o.GetName()) }
			owned, err := ownership.Claim(t.Context(), claimer, s.cached("first", "stray", "second"))
			if err != nil {
				t.Errorf("a race lost is no error: %v", err)
			}
			// The kubelet's changes to an orphan wake nobody, so that only another pass finds out who won.
			if claimer.Lost != c.again {
				t.Errorf("whether to look again is %v, want %v", claimer.Lost, c.again)
			}
			want(t, "owned", podNames(owned), c.ours...)
			want(t, "told of the writes to", wrote, "second")
		})
	}
}

// What a cache shows may be old: then the server refuses, and the event of what changed wakes us.
func TestAnOldReadWritesNothing(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("orphan"), child("stray", ownedBy(us), labelled("y")))
	old := s.cached("orphan", "stray")
	for _, pod := range s.cached("orphan", "stray") {
		pod.Labels["touched"] = "yes"
		if err := s.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	owned, err := ownership.Claim(t.Context(), s.claimer(us), old)
	if err != nil {
		t.Error(err)
	}
	want(t, "owned", podNames(owned), "stray")
	want(t, "owners of the orphan", s.owners("orphan"))
	want(t, "owners of the stray", s.owners("stray"), "us*")
}

// Parents that read the same orphans at the same time: the server watches that nothing ever has two controllers (O1).
func TestAtMostOneControllerRefEver(t *testing.T) {
	const children = 20
	parents := []*appsv1.DaemonSet{parent("one"), parent("two"), parent("three")}
	objects := []client.Object{parents[0], parents[1], parents[2]}
	var names []string
	for i := range children {
		names = append(names, fmt.Sprintf("c%d", i))
		objects = append(objects, child(names[i]))
	}
	s := serve(t, objects...)
	cached := s.cached(names...)
	owned := make([][]*corev1.Pod, len(parents))
	var all sync.WaitGroup
	for i, p := range parents {
		all.Go(func() {
			order := slices.Clone(cached)
			if i == 1 {
				slices.Reverse(order)
			}
			var err error
			if owned[i], err = ownership.Claim(t.Context(), s.claimer(p), order); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		})
	}
	all.Wait()
	taken := map[string]string{}
	for i, pods := range owned {
		for _, pod := range pods {
			if other, twice := taken[pod.Name]; twice {
				t.Errorf("%s was returned to %s and %s", pod.Name, other, parents[i].Name)
			}
			taken[pod.Name] = parents[i].Name
		}
	}
	for _, name := range names {
		want(t, "owners of "+name, s.owners(name), taken[name]+"*")
	}
}

// A pass that failed in the middle is repeated, also on a cache that has not seen its writes.
func TestAnAdoptionThatHalfSucceededIsRepeated(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("a"), child("b"), child("c"))
	old := s.cached("a", "b", "c")
	s.hook = func(o client.Object, _ string) error {
		if o.GetName() == "b" {
			return apierrors.NewInternalError(errors.New("try again"))
		}
		return nil
	}
	owned, err := ownership.Claim(t.Context(), s.claimer(us), old)
	if !apierrors.IsInternalError(errorOf(err)) || !strings.Contains(err.Error(), "adopt Pod ns/b") {
		t.Errorf("error %v", err)
	}
	want(t, "owned", podNames(owned), "a", "c")

	s.hook = nil
	owned, err = ownership.Claim(t.Context(), s.claimer(us), old)
	if err != nil {
		t.Errorf("an object that is ours already must not block the others: %v", err)
	}
	want(t, "owned on the old cache", podNames(owned), "b")

	owned, err = ownership.Claim(t.Context(), s.claimer(us), s.cached("a", "b", "c"))
	if err != nil {
		t.Error(err)
	}
	want(t, "owned on a new cache", podNames(owned), "a", "b", "c")
	want(t, "owners", s.owners("a"), "us*")
}

// Every failure is told, and none stops the rest.
func TestErrorsAreJoinedAndTheRestIsReturned(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("a"), child("b"), child("stray", ownedBy(us), labelled("y")), child("mine", ownedBy(us)))
	s.hook = func(o client.Object, _ string) error {
		if o.GetName() == "b" {
			return nil
		}
		return apierrors.NewForbidden(pods, o.GetName(), errors.New("no rights"))
	}
	owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("a", "b", "stray", "mine"))
	for _, text := range []string{"adopt Pod ns/a: ", "release Pod ns/stray: "} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
	want(t, "owned", podNames(owned), "b", "mine")
}

// errorOf returns the API error that is joined in err.
func errorOf(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.(error)
	}
	return err
}
