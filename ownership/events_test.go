package ownership_test

// The routing table (ControllerRef proposal, "Watches"), one case for each row, seen from the work queue.

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// TestWhomAnEventWakes has a nil before for an add and a nil after for a delete.
func TestWhomAnEventWakes(t *testing.T) {
	notController := func(o metav1.Object) { o.GetOwnerReferences()[0].Controller = new(false) }
	annotated := func(o metav1.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }
	foreign := ownedBy(parent("one", withUID("uid-old"))) // another object has the name now (X1)
	of := func(group, version, kind string) option {
		return controlledBy(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, "one", "uid-one")
	}
	newer, again := version("8"), withUID("uid-new")
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          []string
	}{
		"an add with a ControllerRef":               {nil, child("c", ownedBy(one)), []string{"ns/one"}},
		"an add that terminates":                    {nil, child("c", ownedBy(one), deleting), []string{"ns/one"}}, // an expectation ends
		"an update with a ControllerRef":            {child("c", ownedBy(one)), child("c", ownedBy(one), newer), []string{"ns/one"}},
		"an update of its labels":                   {child("c", ownedBy(one)), child("c", ownedBy(one), newer, labelled("y")), []string{"ns/one"}},
		"a delete with a ControllerRef":             {child("c", ownedBy(one)), nil, []string{"ns/one"}},
		"an orphan":                                 {nil, child("c"), []string{"ns/one", "ns/two"}},
		"an orphan with another owner":              {nil, child("c", alsoOwnedBy("cm")), []string{"ns/one", "ns/two"}},
		"an orphan that matches nothing":            {nil, child("c", labelled("z")), nil},
		"an orphan that terminates":                 {nil, child("c", deleting), nil},
		"the delete of an orphan":                   {child("c"), nil, nil},
		"a label change of an orphan":               {child("c"), child("c", newer, labelled("y")), []string{"ns/three"}},
		"an annotation of an orphan":                {child("c"), child("c", newer, annotated), nil},
		"another owner of an orphan":                {child("c"), child("c", newer, alsoOwnedBy("cm")), nil},
		"the ControllerRef changes":                 {child("c", ownedBy(one)), child("c", newer, ownedBy(three)), []string{"ns/one", "ns/three"}},
		"the ControllerRef is added":                {child("c"), child("c", newer, ownedBy(one)), []string{"ns/one"}},
		"the ControllerRef is removed":              {child("c", ownedBy(three)), child("c", newer), []string{"ns/one", "ns/three", "ns/two"}},
		"the controller stays an owner":             {child("c", ownedBy(three)), child("c", newer, ownedBy(three), notController), []string{"ns/one", "ns/three", "ns/two"}},
		"an add with a foreign UID":                 {nil, child("c", foreign), nil},
		"an update with a foreign UID":              {child("c", foreign), child("c", newer, foreign), nil},
		"a delete with a foreign UID":               {child("c", foreign), nil, nil},
		"a foreign UID that another owner replaces": {child("c", foreign), child("c", newer, ownedBy(two)), []string{"ns/two"}},
		"a parent that does not exist":              {nil, child("c", ownedBy(parent("nobody"))), nil},
		"a parent of another namespace":             {nil, child("c", inNamespace("other"), ownedBy(one)), nil},
		"another kind":                              {nil, child("c", of("apps", "v1", "StatefulSet")), nil},
		"another group":                             {nil, child("c", of("example.com", "v1", "DaemonSet")), nil},
		"another version is the same kind":          {nil, child("c", of("apps", "v1beta2", "DaemonSet")), []string{"ns/one"}},
		"a resync":                                  {child("c", ownedBy(one)), child("c", ownedBy(one)), nil},
		"a resync of an orphan":                     {child("c"), child("c"), nil},
		// A watch that broke off shows a delete and an add under one name as one update.
		"another orphan":                        {child("c", labelled("z")), child("c", newer, again), []string{"ns/one", "ns/two"}},
		"another orphan that terminates":        {child("c", labelled("z")), child("c", newer, again, deleting), nil},
		"an orphan instead of a child":          {child("c", ownedBy(three)), child("c", newer, again), []string{"ns/one", "ns/three", "ns/two"}},
		"a child of another parent":             {child("c", ownedBy(three), labelled("z")), child("c", newer, again, ownedBy(one)), []string{"ns/one", "ns/three"}},
		"a child instead of an orphan":          {child("c", labelled("z")), child("c", newer, again, ownedBy(one)), []string{"ns/one"}},
		"an orphan that may have been adopted":  {child("c"), child("c", newer, again, deleting), []string{"ns/one", "ns/two"}},
		"an orphan that three may have adopted": {child("c", labelled("y")), child("c", newer, again, ownedBy(one)), []string{"ns/one", "ns/three"}},
	} {
		t.Run(name, func(t *testing.T) { wakes(t, c.before, c.after, c.want...) })
	}
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

// What a broken watch has missed the end of may have been adopted in between, by a parent that has deleted it since and
// waits for it to go.
func TestWhatABrokenWatchHasLostWakesThoseThatMayHaveAdoptedIt(t *testing.T) {
	loses(t, child("c"), "ns/one", "ns/two")
	loses(t, child("c", labelled("y")), "ns/three")
	loses(t, child("c", ownedBy(three)), "ns/one", "ns/three", "ns/two")
	loses(t, child("c", ownedBy(one)), "ns/one", "ns/two")
	loses(t, child("c", labelled("z")))
}

func TestAnEventAboutNothingWakesNobody(t *testing.T) {
	if route := ownership.RouteEvent(nil, nil); len(route.Owners) > 0 || route.Orphan {
		t.Errorf("%+v", route)
	}
}
