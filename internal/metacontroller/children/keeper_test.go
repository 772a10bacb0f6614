package children_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

var (
	catKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cat"}
	configKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	configs    = corev1.SchemeGroupVersion.WithResource("configmaps").GroupResource()
	denied     = apierrors.NewForbidden(configs, "x", errors.New("a policy"))
)

// world is a parent with ConfigMaps on a fake API server.
type world struct {
	*fakeserver.Server

	t      *testing.T
	parent *unstructured.Unstructured
	clock  *clocktesting.FakePassiveClock
	keeper *children.Keeper
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	parent := fakeserver.Of(catKind)
	parent.SetNamespace("default")
	parent.SetName("tom")
	parent.SetUID("tom-uid")
	w := &world{t: t, parent: parent, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))}
	w.Server = fakeserver.NewWith(t, fakeserver.Kinds{Indexed: []client.Object{fakeserver.Of(configKind)}}, parent)
	w.restart()
	var work children.Work
	for _, name := range names {
		work.Creates = append(work.Creates, children.Creation{Desired: config(name, "a")})
	}
	w.must(w.pass().Act(t.Context(), work))
	w.Forget()
	return w
}

// restart makes a new process: nothing is remembered.
func (w *world) restart() {
	consistency := ownership.NewConsistencyStore(nil)
	c := pass.New(pass.Config{Client: w.Server, Live: w.Server, Cache: w.Raw, Consistency: consistency, Clock: w.clock})
	resource := watching.Resource{Kind: configKind, Resource: configs.WithVersion(configKind.Version), Namespaced: true}
	w.keeper = children.New(children.Config{
		Client: w.Server, Live: w.Server, Cache: w.Raw, Consistency: consistency, Clock: w.clock,
		Kinds: children.NewKinds(c, []watching.Resource{resource}, nil), Size: 100,
	})
}

func (w *world) pass() *children.Pass {
	return w.keeper.Of(children.Names{
		Parent: w.parent, Ours: func(client.Object) bool { return true },
		Describe: func(o *unstructured.Unstructured) string { return anyobject.Describe(o) },
	}, catKind)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func config(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": name},
		"data": map[string]any{"k": value},
	}}
}

func (w *world) get(name string) *unstructured.Unstructured {
	w.t.Helper()
	o := fakeserver.Of(configKind)
	w.must(w.Raw.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: name}, o))
	return o
}

// drift edits a child as a person would.
func (w *world) drift(name, value string) {
	w.t.Helper()
	o := w.get(name)
	o.Object["data"] = map[string]any{"k": value}
	w.must(w.Raw.Update(context.Background(), o))
}

// requests are those since the last time, with their verbs, sorted.
func (w *world) requests() string {
	var out []string
	for _, c := range w.Calls() {
		out = append(out, c.Verb+" "+c.Name)
	}
	w.Forget()
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *world) wish(name, value string) children.Pair {
	w.t.Helper()
	return children.Pair{Observed: w.get(name), Desired: config(name, value)}
}

func (w *world) replace(value string, names ...string) error {
	w.t.Helper()
	var work children.Work
	for _, name := range names {
		work.Deletes = append(work.Deletes, children.Deletion{Observed: w.get(name), Instead: config(name, value)})
	}
	return w.pass().Act(w.t.Context(), work)
}

// TestReplaced: children that differ in nothing but their name cost one dry run, and another one when it is old.
func TestReplaced(t *testing.T) {
	w := newWorld(t, "x-0", "x-1", "x-2")
	w.must(w.replace("b", "x-0", "x-1", "x-2"))
	const each = "create x-0, create x-1, create x-2, delete x-0, delete x-1, delete x-2"
	if got := w.requests(); got != each+", try create x-0" {
		t.Errorf("requests: %s", got)
	}
	w.must(w.replace("b", "x-1"))
	if got := w.requests(); got != "create x-1, delete x-1" {
		t.Errorf("at once again: %s", got)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.must(w.replace("b", "x-1"))
	if got := w.requests(); got != "create x-1, delete x-1, try create x-1" {
		t.Errorf("a minute later: %s", got)
	}
}

// TestHeld: a child that could not be made again stays, others go on, and it is asked about again after a while.
func TestHeld(t *testing.T) {
	w := newWorld(t, "x-0", "x-1")
	for why, refused := range map[string]error{
		"a policy": denied, "a kind's rule": apierrors.NewInvalid(configKind.GroupKind(), "x-0", field.ErrorList{field.Forbidden(field.NewPath("data"), "a kind's rule")}),
		"dry run": apierrors.NewBadRequest("the webhook does not support dry run"),
	} {
		t.Run(why, func(t *testing.T) {
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			uid, other := w.get("x-0").GetUID(), w.get("x-1").GetUID()
			w.Before = func(c fakeserver.Call) error {
				if c.Verb == fakeserver.TryCreate && c.Name == "x-0" {
					return refused
				}
				return nil
			}
			err := w.replace(why, "x-0", "x-1")
			held, ok := errors.AsType[*children.HeldError](err)
			if !ok || held.Reason != children.ReplacementRefused || !strings.Contains(held.Error(), why) || !strings.Contains(held.Error(), "ConfigMap default/x-0") {
				t.Errorf("error %v", err)
			}
			if w.get("x-0").GetUID() != uid || w.get("x-1").GetUID() == other {
				t.Errorf("x-0 was deleted, or x-1 was not: %s", w.requests())
			}
			w.requests()
			if w.replace(why, "x-0") == nil || w.requests() != "" { // x-1 has given leave, and x-0 was refused under its own name
				t.Error("a refusal of a moment ago is forgotten")
			}
			w.clock.SetTime(w.clock.Now().Add(7 * time.Second)) // the leave that x-1 has given is still good
			if w.replace(why, "x-0") == nil || w.get("x-0").GetUID() != uid {
				t.Fatal("another child's leave was enough")
			}
			w.Before = nil
			w.clock.SetTime(w.clock.Now().Add(7 * time.Second))
			w.must(w.replace(why, "x-0"))
			if w.get("x-0").GetUID() == uid {
				t.Error("it was not made again once that was possible")
			}
		})
	}
}

// TestFullQuota: a quota that is full by as much as the child itself has is no reason to keep it. One that has no room
// for the replacement is.
func TestFullQuota(t *testing.T) {
	for limit, replaced := range map[string]bool{"1": true, "0": false} {
		w := newWorld(t, "x")
		text := "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=" + limit
		w.Before = fakeserver.Refuse(fakeserver.TryCreate, "ConfigMap", apierrors.NewForbidden(configs, "x", errors.New(text)))
		err := w.replace("b", "x")
		if got := len(w.Calls("delete")) == 1; got != replaced || (err == nil) != replaced {
			t.Errorf("limit %s: replaced: %v, error %v", limit, got, err)
		}
	}
}

// TestNotToldIsNotHeld: an API server that does not decide is asked again, and meanwhile nothing is deleted.
func TestNotToldIsNotHeld(t *testing.T) {
	w := newWorld(t, "x-0")
	w.Before = fakeserver.Refuse(fakeserver.TryCreate, "ConfigMap", apierrors.NewInternalError(errors.New("failed calling webhook")))
	if err := w.replace("b", "x-0"); !apierrors.IsInternalError(err) || w.requests() != "try create x-0" {
		t.Errorf("error %v", err)
	}
	w.Before = nil
	w.must(w.replace("b", "x-0"))
}

// TestTrialThatWasWrong: where a dry run is let in and the creation is not, one child is lost and no other.
func TestTrialThatWasWrong(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("x-%d", i))
	}
	w := newWorld(t, names...)
	var trials atomic.Int32 // some are at once
	w.Before = func(c fakeserver.Call) error {
		switch c.Verb {
		case "create":
			return denied
		case fakeserver.TryCreate:
			if trials.Add(1) > 1 {
				return denied // the policy is everywhere by now
			}
		}
		return nil
	}
	if err := w.replace("b", names...); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if got := len(w.Calls("delete")); got != 1 {
		t.Errorf("%d were deleted", got)
	}
}

// TestUnknown: what the API server refuses to say is neither the same nor different. It is asked again, not for ever.
func TestUnknown(t *testing.T) {
	w := newWorld(t, "x")
	w.restart()
	w.drift("x", "drift")
	w.Before = fakeserver.Refuse(fakeserver.TryPatch, "ConfigMap", denied)
	ask := func() children.Verdict {
		p := w.pass()
		wish := w.wish("x", "a")
		if v := p.Compare(wish); v.Is != children.Doubt {
			return v
		}
		w.must(p.Ask(t.Context(), []children.Pair{wish}))
		return p.Compare(wish)
	}
	v := ask()
	if v.Is != children.Unknown || !strings.Contains(v.Why.Error(), "a policy") || !errors.Is(v.Why, denied) {
		t.Errorf("%+v", v)
	}
	if got := w.requests(); got != "try patch x" {
		t.Errorf("requests: %s", got)
	}
	if v = ask(); v.Is != children.Unknown || w.requests() != "" {
		t.Errorf("a moment later: %+v", v)
	}
	w.Before = nil
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if v = ask(); v.Is != children.Different || w.requests() == "" {
		t.Errorf("once it may be told: %+v", v)
	}
}

// TestAskedOfTheChildItself: neither the name nor a quota is in the way of finding drift, and the verdict of a creation
// is asked for only where the child would be made again.
func TestAskedOfTheChildItself(t *testing.T) {
	immutable := apierrors.NewInvalid(configKind.GroupKind(), "x", field.ErrorList{field.Forbidden(field.NewPath("data"), "it cannot be changed")})
	for _, c := range []struct {
		name          string
		inPlace       bool
		patch, create error
		want          children.Likeness
		requests      int
	}{
		{"in place", true, nil, denied, children.Different, 1},
		{"made again", false, nil, nil, children.Different, 2},
		{"made again, under no other name", false, nil, denied, children.Different, 2},
		{"cannot be changed", false, immutable, nil, children.Different, 2},
		{"cannot be changed, under no other name", false, immutable, denied, children.Unknown, 2},
		{"the server fails", false, nil, apierrors.NewInternalError(errors.New("no")), children.Unknown, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "x")
			w.restart()
			w.drift("x", "drift")
			w.Before = func(call fakeserver.Call) error {
				switch call.Verb {
				case fakeserver.TryPatch:
					return c.patch
				case fakeserver.TryCreate:
					return c.create
				}
				return nil
			}
			p, wish := w.pass(), w.wish("x", "a")
			wish.InPlace = c.inPlace
			if v := p.Compare(wish); v.Is != children.Doubt {
				t.Fatalf("%+v", v)
			}
			w.must(p.Ask(t.Context(), []children.Pair{wish}))
			if v := p.Compare(wish); v.Is != c.want {
				t.Errorf("%+v", v)
			}
			if got := w.Calls(); len(got) != c.requests || len(w.Writes()) != 0 {
				t.Errorf("requests: %v", got)
			}
		})
	}
}

// TestStaleComparison: a child that has changed since it was read is compared in the next pass.
func TestStaleComparison(t *testing.T) {
	w := newWorld(t, "x")
	w.restart()
	w.drift("x", "drift")
	for _, err := range []error{apierrors.NewConflict(configs, "x", errors.New("changed")), apierrors.NewNotFound(configs, "x")} {
		w.Before = fakeserver.Refuse(fakeserver.TryPatch, "ConfigMap", err)
		if err := w.pass().Ask(t.Context(), []children.Pair{w.wish("x", "a")}); !errors.Is(err, ownership.ErrStale) {
			t.Errorf("error %v", err)
		}
	}
}

// TestForgets: what is remembered of a child that is gone goes with it.
func TestForgets(t *testing.T) {
	w := newWorld(t, "x")
	wish := w.wish("x", "a")
	if v := w.pass().Compare(wish); v.Is != children.Same {
		t.Fatalf("%+v", v)
	}
	wish.Observed.Object["data"] = map[string]any{"k": "a read that never was"}
	if v := w.pass().Compare(wish); v.Is != children.Same {
		t.Fatalf("nothing is remembered: %+v", v)
	}
	w.keeper.Forget(wish.Observed.GetUID())
	if v := w.pass().Compare(wish); v.Is == children.Same {
		t.Error("it is remembered")
	}
}
