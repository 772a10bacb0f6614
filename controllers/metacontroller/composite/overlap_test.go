package composite

// What both of two CompositeControllers say that cannot share their parents.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// overlapping is a fake API server with controllers of cats.
type overlapping struct {
	*fakeserver.Server

	t *testing.T
	o *overlaps
}

func newOverlapping(t *testing.T, specs map[string]string) *overlapping {
	t.Helper()
	tom := fakeserver.Of(cats.Kind)
	tom.SetNamespace("default")
	tom.SetName("tom")
	tom.SetLabels(map[string]string{"of": "a", "also": "b"})
	kinds := fakeserver.Kinds{AddToScheme: v1alpha1.AddToScheme, Status: []client.Object{&v1alpha1.CompositeController{}}, Indexed: []client.Object{cats.New()}}
	w := &overlapping{Server: fakeserver.NewWith(t, kinds, tom), t: t}
	for i, name := range []string{"a", "b"} {
		must(t, w.Raw.Create(t.Context(), controllerNamed(t, name, specs[name], start.Add(time.Duration(i)*time.Second))))
	}
	w.start()
	return w
}

func (w *overlapping) start() {
	server := &watching.Server{Client: w.Server, Live: w.Server, Clock: clocktesting.NewFakeClock(start)}
	env := &host.Environment{Host: &hosting.Host{Server: server}}
	w.o = &overlaps{env: env, resources: served{}, all: listIn(w.Raw), told: map[types.UID]toldOverlap{}}
}

func (w *overlapping) pass() (reconcile.Result, error) {
	return w.o.Reconcile(w.t.Context(), reconcile.Request{})
}

// says is the reason and the message of the condition, empty if there is none.
func (w *overlapping) says(name string) string {
	w.t.Helper()
	cc := &v1alpha1.CompositeController{}
	must(w.t, w.Raw.Get(w.t.Context(), client.ObjectKey{Name: name}, cc))
	if c := meta.FindStatusCondition(cc.Status.Conditions, Overlap); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

func (w *overlapping) change(name string, do func(cc *v1alpha1.CompositeController)) {
	w.t.Helper()
	cc := &v1alpha1.CompositeController{}
	must(w.t, w.Raw.Get(context.Background(), client.ObjectKey{Name: name}, cc))
	do(cc)
	must(w.t, w.Raw.Update(context.Background(), cc))
}

// TestBothOfAnOverlapSaySo: both controllers say which two they are, what to do and who goes on. It is written once,
// also by a process that was started again, and goes when the overlap is over.
func TestBothOfAnOverlapSaySo(t *testing.T) {
	w := newOverlapping(t, map[string]string{"a": catSpec, "b": catSpec})
	_, err := w.pass()
	must(t, err)
	for name, want := range map[string]string{"a": "GoesOn", "b": "GivesWay"} {
		got := w.says(name)
		if !strings.HasPrefix(got, want+": CompositeControllers a and b have the same parents and both declare pods as children") ||
			!strings.HasSuffix(got, "Until then a, which was created first, stays in charge, and b does nothing for the parents that both select") {
			t.Errorf("%s says %q", name, got)
		}
	}
	w.Forget()
	for range 2 {
		_, err := w.pass()
		must(t, err)
		w.start()
	}
	if writes := w.Writes(); len(writes) > 0 {
		t.Errorf("it is written again: %v", writes)
	}
	w.change("b", func(cc *v1alpha1.CompositeController) { cc.Spec = controllerNamed(t, "b", configSpec, start).Spec })
	_, err = w.pass()
	must(t, err)
	if a, b := w.says("a"), w.says("b"); a+b != "" {
		t.Errorf("it is over, and they say %q and %q", a, b)
	}
}

// TestAnOverlapOfSelectors: controllers that select parents by different labels overlap if there is a parent that both
// select. While nobody can tell, they say what they said.
func TestAnOverlapOfSelectors(t *testing.T) {
	selecting := func(labels string) string {
		return strings.Replace(catSpec, "resource: cats\n", "resource: cats\n  labelSelector: {matchLabels: {"+labels+"}}\n", 1)
	}
	w := newOverlapping(t, map[string]string{"a": selecting("of: a"), "b": selecting("also: b")})
	again, err := w.pass()
	must(t, err)
	if !strings.HasPrefix(w.says("a"), "GoesOn") || !strings.HasPrefix(w.says("b"), "GivesWay") || again.RequeueAfter != overlapEvery {
		t.Errorf("they say %q and %q, and look again after %s", w.says("a"), w.says("b"), again.RequeueAfter)
	}
	tom := fakeserver.Of(cats.Kind)
	must(t, w.Raw.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "tom"}, tom))
	tom.SetLabels(map[string]string{"of": "a"})
	must(t, w.Raw.Update(t.Context(), tom))
	w.Before = func(c fakeserver.Call) error {
		if c.Verb == "list" {
			return errors.New("no answer")
		}
		return nil
	}
	if _, err := w.pass(); err == nil || w.says("a") == "" || w.says("b") == "" {
		t.Errorf("nobody could tell (%v), and they say %q and %q", err, w.says("a"), w.says("b"))
	}
	w.Before = nil
	_, err = w.pass()
	must(t, err)
	if a, b := w.says("a"), w.says("b"); a+b != "" {
		t.Errorf("no parent is of both, and they say %q and %q", a, b)
	}
}

// TestDividedByOneLabel: that no parent can have two values of one label, nobody needs to be asked.
func TestDividedByOneLabel(t *testing.T) {
	selecting := func(value string) string {
		return strings.Replace(catSpec, "resource: cats\n", "resource: cats\n  labelSelector: {matchLabels: {of: "+value+"}}\n", 1)
	}
	w := newOverlapping(t, map[string]string{"a": selecting("a"), "b": selecting("b")})
	w.Forget()
	again, err := w.pass()
	if err != nil || again.RequeueAfter != 0 || w.says("a")+w.says("b") != "" || len(w.Calls()) > 0 {
		t.Errorf("%v, %v, %q, %q, %v", err, again, w.says("a"), w.says("b"), w.Calls())
	}
}
