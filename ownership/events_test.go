package ownership_test

// The routing table (ControllerRef proposal, "Watches"), one test for each row, seen from the work queue.

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
)

// In namespace "ns", one and two select app=x, and three selects app=y.
var (
	one, two, three = parent("one"), parent("two"), parent("three")
	routed          = map[string]*appsv1.DaemonSet{"ns/one": one, "ns/two": two, "ns/three": three}
)

func router() ownership.Router {
	return ownership.Router{
		Parent: daemonSet.GroupKind(),
		UID: func(_ context.Context, key types.NamespacedName) (types.UID, bool) {
			ds, ok := routed[key.String()]
			if !ok {
				return "", false
			}
			return ds.UID, true
		},
		Matching: func(_ context.Context, orphan client.Object) []types.NamespacedName {
			return map[string][]types.NamespacedName{
				"x": {client.ObjectKeyFromObject(one), client.ObjectKeyFromObject(two)},
				"y": {client.ObjectKeyFromObject(three)},
			}[orphan.GetLabels()["app"]]
		},
	}
}

// wakes sends an event through the handler, and compares whom it wakes. A nil before is an add, a nil after a delete.
func wakes(t *testing.T, before, after *corev1.Pod, expected ...string) {
	t.Helper()
	var was, is client.Object // an interface that holds a nil pointer is not nil
	if before != nil {
		was = before
	}
	if after != nil {
		is = after
	}
	want(t, "woken", fakeserver.Woken(t.Context(), router().Handler(), was, is), expected...)
}

// loses sends the end of an object that a list has shown.
func loses(t *testing.T, last *corev1.Pod, expected ...string) {
	t.Helper()
	h := router().Handler()
	woken := fakeserver.Sent(func(q fakeserver.Queue) {
		h.Delete(t.Context(), event.DeleteEvent{Object: last, DeleteStateUnknown: true}, q)
	})
	want(t, "woken", woken, expected...)
}

func TestAnAddWithAControllerRefWakesOnlyThatParent(t *testing.T) {
	wakes(t, nil, child("c", ownedBy(one)), "ns/one")
	// It may be on its way out: what was started for it has to be settled.
	wakes(t, nil, child("c", ownedBy(one), deleting), "ns/one")
}

func TestAnUpdateWithAControllerRefWakesOnlyThatParent(t *testing.T) {
	wakes(t, child("c", ownedBy(one)), child("c", ownedBy(one), version("8")), "ns/one")
	wakes(t, child("c", ownedBy(one)), child("c", ownedBy(one), version("8"), labelled("y")), "ns/one")
}

func TestADeleteWithAControllerRefWakesOnlyThatParent(t *testing.T) {
	wakes(t, child("c", ownedBy(one)), nil, "ns/one")
}

func TestAnOrphanAddWakesEveryMatchingParent(t *testing.T) {
	wakes(t, nil, child("c"), "ns/one", "ns/two")
	wakes(t, nil, child("c", alsoOwnedBy("cm")), "ns/one", "ns/two")
	wakes(t, nil, child("c", labelled("z")))
}

func TestAnOrphanAddOfADeletingObjectWakesNobody(t *testing.T) {
	wakes(t, nil, child("c", deleting))
}

func TestAnOrphanDeleteWakesNobody(t *testing.T) {
	wakes(t, child("c"), nil)
}

func TestALabelChangeOfAnOrphanWakesThoseThatMatchNow(t *testing.T) {
	wakes(t, child("c"), child("c", version("8"), labelled("y")), "ns/three")
}

func TestAnyOtherChangeOfAnOrphanWakesNobody(t *testing.T) {
	wakes(t, child("c"), child("c", version("8"), func(o metav1.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }))
	wakes(t, child("c"), child("c", version("8"), alsoOwnedBy("cm")))
}

func TestAnUpdateThatChangesTheControllerRefWakesTheOldParentToo(t *testing.T) {
	wakes(t, child("c", ownedBy(one)), child("c", version("8"), ownedBy(three)), "ns/one", "ns/three")
}

func TestAnUpdateThatAddsAControllerRefWakesOnlyThatParent(t *testing.T) {
	wakes(t, child("c"), child("c", version("8"), ownedBy(one)), "ns/one")
}

func TestAnUpdateThatRemovesTheControllerRefWakesMatchingParentsAndTheOldOne(t *testing.T) {
	wakes(t, child("c", ownedBy(three)), child("c", version("8")), "ns/one", "ns/three", "ns/two")
	// Giving up control while staying an owner is the same.
	wakes(t, child("c", ownedBy(three)), child("c", version("8"), ownedBy(three), func(o metav1.Object) {
		o.GetOwnerReferences()[0].Controller = new(false)
	}), "ns/one", "ns/three", "ns/two")
}

// The old owner that still matches is both the owner that was and one that may adopt. One event is one pass.
func TestAnEventNamesNoParentTwice(t *testing.T) {
	requests := router().Requests(t.Context(), child("c", ownedBy(one)), child("c", version("8")))
	got := make([]string, 0, len(requests))
	for _, request := range requests {
		got = append(got, request.String())
	}
	slices.Sort(got)
	want(t, "named", got, "ns/one", "ns/two")
}

// Whoever has the name now is not whose child this is (X1).
func TestAnEventWithAForeignUIDWakesNobody(t *testing.T) {
	old := parent("one", withUID("uid-old"))
	wakes(t, nil, child("c", ownedBy(old)))
	wakes(t, child("c", ownedBy(old)), child("c", version("8"), ownedBy(old)))
	wakes(t, child("c", ownedBy(old)), nil)
	wakes(t, child("c", ownedBy(old)), child("c", version("8"), ownedBy(two)), "ns/two")
}

func TestAReferenceToAParentThatDoesNotExistWakesNobody(t *testing.T) {
	wakes(t, nil, child("c", ownedBy(parent("nobody"))))
}

// A parent of another namespace is another parent.
func TestAReferenceFromAnotherNamespaceWakesNobody(t *testing.T) {
	wakes(t, nil, child("c", inNamespace("other"), ownedBy(one)))
}

func TestAnotherKindsReferenceWakesNobody(t *testing.T) {
	wakes(t, nil, child("c", controlledBy(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "one", "uid-one")))
	otherGroup := daemonSet
	otherGroup.Group = "example.com"
	wakes(t, nil, child("c", controlledBy(otherGroup, "one", "uid-one")))
	// Another version is the same kind.
	otherVersion := daemonSet
	otherVersion.Version = "v1beta2"
	wakes(t, nil, child("c", controlledBy(otherVersion, "one", "uid-one")), "ns/one")
}

func TestAResyncWakesNobody(t *testing.T) {
	wakes(t, child("c", ownedBy(one)), child("c", ownedBy(one)))
	wakes(t, child("c"), child("c"))
}

// A watch that broke off shows a delete and an add under one name as one update.
func TestAnUpdateToAnotherUIDIsADeleteAndAnAdd(t *testing.T) {
	wakes(t, child("c", labelled("z")), child("c", version("8"), withUID("uid-new")), "ns/one", "ns/two")
	wakes(t, child("c", labelled("z")), child("c", version("8"), withUID("uid-new"), deleting))
	wakes(t, child("c", ownedBy(three)), child("c", version("8"), withUID("uid-new")), "ns/one", "ns/three", "ns/two")
	wakes(t, child("c", ownedBy(three), labelled("z")), child("c", version("8"), withUID("uid-new"), ownedBy(one)), "ns/one", "ns/three")
	wakes(t, child("c", labelled("z")), child("c", version("8"), withUID("uid-new"), ownedBy(one)), "ns/one")
}

// What a broken watch has missed the end of may have been adopted in between, by a parent that has deleted it since and
// waits for it to go.
func TestWhatABrokenWatchHasLostWakesThoseThatMayHaveAdoptedIt(t *testing.T) {
	loses(t, child("c"), "ns/one", "ns/two")
	loses(t, child("c", labelled("y")), "ns/three")
	loses(t, child("c", ownedBy(three)), "ns/one", "ns/three", "ns/two")
	loses(t, child("c", ownedBy(one)), "ns/one", "ns/two")
	loses(t, child("c", labelled("z")))
	// The same, seen as an update.
	wakes(t, child("c"), child("c", version("8"), withUID("uid-new"), deleting), "ns/one", "ns/two")
	wakes(t, child("c", labelled("y")), child("c", version("8"), withUID("uid-new"), ownedBy(one)), "ns/one", "ns/three")
}

func TestAnEventAboutNothingWakesNobody(t *testing.T) {
	if route := ownership.RouteEvent(nil, nil); len(route.Owners) > 0 || route.Orphan {
		t.Errorf("%+v", route)
	}
}
