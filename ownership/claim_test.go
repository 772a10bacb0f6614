package ownership_test

// Claiming against an API server: what is adopted, what is released, and what is asked before.

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

func TestAnOrphanThatMatchesIsAdopted(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("c"))
	cached := s.cached("c")
	c := s.claimer(us)
	var wrote []client.Object
	c.Wrote = func(o client.Object) { wrote = append(wrote, o) }
	owned, err := ownership.Claim(t.Context(), c, cached)
	if err != nil || len(owned) != 1 {
		t.Fatal(owned, err)
	}
	stored := s.pod("c")
	refs := []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "DaemonSet", Name: "us", UID: "uid-us", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	if diff := cmp.Diff(refs, stored.OwnerReferences); diff != "" {
		t.Errorf("the reference\n%s", diff)
	}
	if diff := cmp.Diff(stored, owned[0]); diff != "" {
		t.Errorf("what is returned is not what the server has\n%s", diff)
	}
	if owned[0].ResourceVersion == cached[0].ResourceVersion || len(wrote) != 1 || wrote[0].GetResourceVersion() != stored.ResourceVersion {
		t.Errorf("the write was told as %v, stored is %s", wrote, stored.ResourceVersion)
	}
	// What is ours already needs no write and no read, and comes back as it was given.
	s.reads.Store(0)
	s.writes.Store(0)
	again, err := ownership.Claim(t.Context(), s.claimer(us), owned)
	if err != nil || len(again) != 1 || again[0] != owned[0] || s.reads.Load()+s.writes.Load() > 0 {
		t.Errorf("the second claim: %v, %v, %d reads, %d writes", again, err, s.reads.Load(), s.writes.Load())
	}
}

func TestAdoptionNeedsAnUncachedReadOfTheParent(t *testing.T) {
	us := parent("us")
	t.Run("once a pass, before the first write", func(t *testing.T) {
		s := serve(t, us, child("a"), child("b"), child("mine", ownedBy(us)))
		s.hook = func(client.Object, string) error {
			if s.reads.Load() != 1 {
				t.Errorf("%d reads of the parent before a write", s.reads.Load())
			}
			return nil
		}
		owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("a", "b", "mine"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "owned", podNames(owned), "a", "b", "mine")
		if s.reads.Load() != 1 || s.writes.Load() != 2 {
			t.Errorf("%d reads, %d writes", s.reads.Load(), s.writes.Load())
		}
	})
	t.Run("none where nothing is to be adopted", func(t *testing.T) {
		s := serve(t, us, child("mine", ownedBy(us)), child("stray", ownedBy(us), labelled("y")), child("other", labelled("y")))
		if _, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("mine", "stray", "other")); err != nil {
			t.Fatal(err)
		}
		if s.reads.Load() != 0 {
			t.Errorf("%d reads", s.reads.Load())
		}
	})
	t.Run("no answer, no adoption, and an error that asks for another pass", func(t *testing.T) {
		s := serve(t, us, child("a"), child("mine", ownedBy(us)))
		s.readErr = errors.New("the server is on fire")
		owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("a", "mine"))
		if !errors.Is(err, s.readErr) || !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("error %v", err)
		}
		want(t, "owned", podNames(owned), "mine")
		want(t, "owners of a", s.owners("a"))
	})
}

// The parent that a pass works with comes from a cache. What the server says counts (kubernetes#42639).
func TestADeletingParentAdoptsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		cached *appsv1.DaemonSet
		reads  int32
	}{
		"not even if the cache does not know yet":     {parent("us"), 1},
		"and need not be asked if the cache knows it": {parent("us", deleting), 0},
	} {
		t.Run(name, func(t *testing.T) { adoptsNothing(t, c.cached, c.reads, parent("us", deleting)) })
	}
}

// After delete --cascade=orphan and a new object of the same name, the old pass must not take the children back (X1).
func TestARecreatedParentAdoptsNothingForTheOldUID(t *testing.T) {
	adoptsNothing(t, parent("us", withUID("uid-old")), 1, parent("us"))
}

func TestADeletedParentAdoptsNothing(t *testing.T) {
	adoptsNothing(t, parent("us"), 1)
}

// adoptsNothing lets a cached parent claim, while the server has live.
func adoptsNothing(t *testing.T, cached *appsv1.DaemonSet, reads int32, live ...client.Object) {
	t.Helper()
	s := serve(t, append(live, child("a"), child("b"))...)
	owned, err := ownership.Claim(t.Context(), s.claimer(cached), s.cached("a", "b"))
	if told := errors.Is(err, ownership.ErrGone); told != (reads > 0) || len(owned) > 0 || s.writes.Load() > 0 || s.reads.Load() != reads {
		t.Errorf("owned %q, error %v, %d writes, %d reads", podNames(owned), err, s.writes.Load(), s.reads.Load())
	}
}

func TestOwnedButNoLongerMatchingIsReleased(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("stray", ownedBy(us), labelled("y")), child("mine", ownedBy(us)))
	var body map[string]any
	s.hook = func(_ client.Object, patch string) error { return json.Unmarshal([]byte(patch), &body) }
	cached := s.cached("stray", "mine")
	c := s.claimer(us)
	var wrote []string
	c.Wrote = func(o client.Object) { wrote = append(wrote, o.GetName()) }
	owned, err := ownership.Claim(t.Context(), c, cached)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "owned", podNames(owned), "mine")
	want(t, "owners", s.owners("stray"))
	want(t, "told of the writes to", wrote, "stray")
	// The object that was read, and no other of its name, in no other state.
	precondition := map[string]any{"metadata": map[string]any{
		"uid": "uid-stray", "resourceVersion": cached[0].ResourceVersion, "ownerReferences": []any{},
	}}
	if diff := cmp.Diff(precondition, body); diff != "" {
		t.Errorf("the patch\n%s", diff)
	}
}

func TestADeletingParentReleasesNothing(t *testing.T) {
	us := parent("us", deleting)
	s := serve(t, us, child("stray", ownedBy(us), labelled("y")))
	owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("stray"))
	if err != nil || len(owned) > 0 || s.writes.Load() > 0 {
		t.Errorf("owned %q, error %v, %d writes", podNames(owned), err, s.writes.Load())
	}
	want(t, "owners", s.owners("stray"), "us*")
}

func TestOtherOwnersAreKept(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("orphan", alsoOwnedBy("cm")), child("stray", alsoOwnedBy("cm"), ownedBy(us), alsoOwnedBy("cm2"), labelled("y")))
	owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("orphan", "stray"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "owned", podNames(owned), "orphan")
	want(t, "owners after adoption", s.owners("orphan"), "us*", "cm")
	want(t, "owners after release", s.owners("stray"), "cm", "cm2")
}

// References are keyed by UID: a second one to the same owner would break every later server-side apply.
func TestAnOwnerThatBecomesTheControllerHasOneReference(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("c", func(o metav1.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "us", UID: "uid-us"}})
	}))
	if _, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("c")); err != nil {
		t.Fatal(err)
	}
	want(t, "owners", s.owners("c"), "us*")
}

func TestEmptySelectorClaimsNothing(t *testing.T) {
	us := parent("us")
	for name, selector := range map[string]labels.Selector{"nil": nil, "empty": labels.Everything()} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, us, child("orphan"), child("mine", ownedBy(us)))
			c := s.claimer(us)
			c.Selector = selector
			owned, err := ownership.Claim(t.Context(), c, s.cached("orphan", "mine"))
			if err == nil || !strings.Contains(err.Error(), "DaemonSet ns/us has an empty selector") {
				t.Errorf("error %v", err)
			}
			if len(owned) > 0 || s.reads.Load()+s.writes.Load() > 0 {
				t.Errorf("owned %q, %d reads, %d writes", podNames(owned), s.reads.Load(), s.writes.Load())
			}
		})
	}
}

// Two namespaces with the same selector have nothing to do with each other.
func TestNothingOutsideTheNamespace(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("orphan", inNamespace("other")), child("liar", inNamespace("other"), ownedBy(us)),
		child("stray", inNamespace("other"), ownedBy(us), labelled("y")))
	owned, err := ownership.Claim(t.Context(), s.claimer(us), s.cached("orphan", "liar", "stray"))
	if err != nil || len(owned) > 0 || s.reads.Load()+s.writes.Load() > 0 {
		t.Errorf("owned %q, error %v, %d reads, %d writes", podNames(owned), err, s.reads.Load(), s.writes.Load())
	}
}

// StatefulSets take only names of their pattern.
func TestAnOrphanThatIsNotAdoptableIsLeftAlone(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("us-0"), child("else"))
	c := s.claimer(us)
	c.Adoptable = func(o client.Object) error {
		if !strings.HasPrefix(o.GetName(), "us-") {
			return errors.New("its name is not one of ours")
		}
		return nil
	}
	owned, err := ownership.Claim(t.Context(), c, s.cached("else", "us-0"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "owned", podNames(owned), "us-0")
	want(t, "owners", s.owners("else"))
}

// Everybody else reads the same cache.
func TestCachedObjectsAreNeverChanged(t *testing.T) {
	us := parent("us")
	s := serve(t, us, child("orphan", alsoOwnedBy("cm")), child("stray", ownedBy(us), alsoOwnedBy("cm"), labelled("y")), child("mine", ownedBy(us)))
	cached := s.cached("orphan", "stray", "mine")
	for _, pod := range cached {
		// Room behind the references is where an append would write.
		pod.OwnerReferences = slices.Grow(pod.OwnerReferences, 4)
	}
	before := []*corev1.Pod{cached[0].DeepCopy(), cached[1].DeepCopy(), cached[2].DeepCopy()}
	beforeUs := us.DeepCopy()
	if _, err := ownership.Claim(t.Context(), s.claimer(us), cached); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("children were changed\n%s", diff)
	}
	if diff := cmp.Diff(beforeUs, us); diff != "" {
		t.Errorf("the parent was changed\n%s", diff)
	}
}

// A composite's children are of kinds that nobody has compiled in.
func TestAnyTypeOfChildCanBeClaimed(t *testing.T) {
	us := parent("us")
	t.Run("unstructured", func(t *testing.T) {
		s := serve(t, us, child("c"))
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := s.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		owned, err := ownership.Claim(t.Context(), s.claimer(us), []*unstructured.Unstructured{&list.Items[0]})
		if err != nil || len(owned) != 1 || owned[0].GetKind() != "Pod" || !metav1.IsControlledBy(owned[0], us) {
			t.Fatal(owned, err)
		}
		want(t, "owners", s.owners("c"), "us*")
	})
	t.Run("any object", func(t *testing.T) {
		s := serve(t, us, child("c"))
		owned, err := ownership.Claim(t.Context(), s.claimer(us), []client.Object{s.pod("c")})
		if err != nil || len(owned) != 1 {
			t.Fatal(owned, err)
		}
		if _, ok := owned[0].(*corev1.Pod); !ok {
			t.Errorf("a pod came back as %T", owned[0])
		}
	})
}
