package ownership_test

// A process that just started, and a cache that an API server filled which lags behind.

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

func TestConfirm(t *testing.T) {
	web := parent("web")
	mine := func(name, rv string) *corev1.Pod { return child(name, ownedBy(web), version(rv)) }
	for name, c := range map[string]struct {
		cached []client.Object
		want   string
	}{
		"the same":                      {[]client.Object{mine("a", "7"), mine("b", "7")}, ""},
		"the cache is newer":            {[]client.Object{mine("a", "9"), mine("b", "7")}, ""},
		"one is older":                  {[]client.Object{mine("a", "6"), mine("b", "7")}, "does not show Pod a as it is"},
		"one is missing":                {[]client.Object{mine("b", "7")}, "does not show Pod a as it is"},
		"one is gone":                   {[]client.Object{mine("a", "7"), mine("b", "7"), mine("c", "7")}, "shows 1 children that were deleted"},
		"one was replaced by its twin":  {[]client.Object{child("a", ownedBy(web), withUID("before")), mine("b", "7")}, "does not show Pod a"},
		"those of others do not matter": {[]client.Object{mine("a", "7"), mine("b", "7")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, mine("a", "7"), mine("b", "7"), child("theirs", ownedBy(parent("other"))), child("nobodys"))
			confirmer := &ownership.Confirmer{Live: s, Owner: ownerOf, Children: corev1.SchemeGroupVersion.WithKind("Pod")}
			why, err := confirmer.Confirm(t.Context(), web, appX, c.cached)
			if err != nil || c.want == "" && why != "" || !strings.Contains(why, c.want) {
				t.Errorf("got %q, %v; want %q", why, err, c.want)
			}
		})
	}
}

// One list a parent and process: after a yes the consistency store is enough, after a no it asks again, and another
// parent, or one of the same name later, starts afresh (X1).
func TestConfirmAsksOnce(t *testing.T) {
	web := parent("web")
	lists := 0
	live := lister(func() error { lists++; return nil })
	confirmer := &ownership.Confirmer{Live: live, Owner: ownerOf, Children: corev1.SchemeGroupVersion.WithKind("Pod")}
	ask := func(p client.Object, cached ...client.Object) string {
		why, err := confirmer.Confirm(t.Context(), p, appX, cached)
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	steps := []struct {
		why   bool
		lists int
		do    func() string
	}{
		{true, 1, func() string { return ask(web, child("gone", ownedBy(web))) }},
		{false, 2, func() string { return ask(web) }},
		{false, 2, func() string { return ask(web, child("gone", ownedBy(web))) }},
		{true, 3, func() string { return ask(parent("other"), child("gone")) }},
		{true, 4, func() string { confirmer.Forget(web.UID); return ask(web, child("gone")) }},
	}
	for i, step := range steps {
		if why := step.do(); (why != "") != step.why || lists != step.lists {
			t.Errorf("step %d: %q after %d lists", i, why, lists)
		}
	}
}

// What the cache does not show, or still shows, the consistency store waits for, so that nobody lists again until it is
// seen. What seems to be gone may only have been let go of since: then the cache will show it at another version.
func TestConfirmTellsTheConsistency(t *testing.T) {
	web := parent("web")
	mine := func(name, at string) client.Object { return child(name, ownedBy(web), version(at)) }
	for name, c := range map[string]struct {
		cached, then []client.Object
		waits        bool
	}{
		"the same":          {[]client.Object{mine("a", "7")}, []client.Object{mine("a", "7")}, false},
		"one is older":      {[]client.Object{mine("a", "6")}, []client.Object{mine("a", "7")}, true},
		"one is missing":    {nil, []client.Object{mine("a", "7")}, true},
		"one is gone":       {[]client.Object{mine("a", "7"), mine("b", "5")}, []client.Object{mine("a", "7")}, true},
		"one was let go of": {[]client.Object{mine("a", "7"), mine("b", "5")}, []client.Object{mine("a", "7"), child("b", version("6"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			consistency, store, _ := consistency()
			store.show("6", c.cached...)
			confirmer := &ownership.Confirmer{
				Live: serve(t, mine("a", "7")), Owner: ownerOf, Children: corev1.SchemeGroupVersion.WithKind("Pod"), Consistency: consistency, Resource: pods,
			}
			if _, err := confirmer.Confirm(t.Context(), web, appX, c.cached); err != nil {
				t.Fatal(err)
			}
			if why := consistency.Unseen(web.UID); (why != "") != c.waits {
				t.Errorf("it waits: %q", why)
			}
			store.show("7", c.then...)
			if why := consistency.Unseen(web.UID); why != "" {
				t.Errorf("it still waits: %q", why)
			}
		})
	}
}

func TestConfirmThatFails(t *testing.T) {
	boom := errors.New("boom")
	confirmer := &ownership.Confirmer{Live: lister(func() error { return boom }), Owner: ownerOf, Children: corev1.SchemeGroupVersion.WithKind("Pod")}
	if _, err := confirmer.Confirm(t.Context(), parent("web"), appX, nil); !errors.Is(err, boom) {
		t.Error(err)
	}
}

// lister is an API server without objects.
type lister func() error

func (lister) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("nothing is read by name")
}

func (l lister) List(context.Context, client.ObjectList, ...client.ListOption) error { return l() }

// Parents without a selector share a list of their namespace: 300 CronJobs are not 300 lists of all Jobs.
// What differs from it is listed anew, and so is everything after a request without a response.
func TestConfirmSharesAList(t *testing.T) {
	one, two, three := parent("one"), parent("two"), parent("three")
	stored := []client.Object{child("a", ownedBy(one), version("7")), child("b", ownedBy(two), version("7"))}
	s := serve(t, stored...)
	lists := func() int { return int(s.lists.Load()) }
	confirmer := &ownership.Confirmer{Live: s, Owner: ownerOf, Children: corev1.SchemeGroupVersion.WithKind("Pod")}
	for _, step := range []struct {
		what   string
		parent client.Object
		cached []client.Object
		why    string
		lists  int
	}{
		{"the first", one, stored[:1], "", 1},
		{"another one", two, []client.Object{child("b", ownedBy(two), version("8"))}, "", 1},
		{"one without children", three, nil, "", 1},
		{"the first again", one, stored[:1], "", 1},
	} {
		why, err := confirmer.Confirm(t.Context(), step.parent, labels.Everything(), step.cached)
		if err != nil || why != step.why || lists() != step.lists {
			t.Errorf("%s: %q, %v after %d lists", step.what, why, err, lists())
		}
	}
	confirmer.Forget(two.UID)
	for what, cached := range map[string][]client.Object{"after a request without a response": stored[1:], "that is older": {child("b", ownedBy(two), version("6"))}, "with one less": nil} {
		before := lists()
		why, err := confirmer.Confirm(t.Context(), two, labels.Everything(), cached)
		if err != nil || (why == "") != (what == "after a request without a response") || lists() != before+1 {
			t.Errorf("%s: %q, %v after %d lists", what, why, err, lists()-before)
		}
		confirmer.Forget(two.UID)
	}
	if _, err := confirmer.Confirm(t.Context(), one, labels.Everything(), stored[:1]); err != nil {
		t.Fatal(err)
	}
	before := lists()
	for what, cached := range map[string][]client.Object{"one less": nil, "an older one": {child("b", ownedBy(two), version("6"))}} {
		if why, err := confirmer.Confirm(t.Context(), two, labels.Everything(), cached); err != nil || why == "" || lists() != before+1 {
			t.Errorf("the list that is shared shows more than the cache, %s: %q, %v after %d lists", what, why, err, lists()-before)
		}
		before = lists()
	}
}
