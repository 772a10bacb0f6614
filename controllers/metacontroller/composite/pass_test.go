package composite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/rollback"
)

func TestAPassThatHasNothingToDoCostsNothing(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	p.Forget()
	p.run(3)
	if calls := p.Calls(); len(calls) > 0 {
		t.Errorf("requests: %v", calls)
	}
}

// TestIntentFirst: the revision that a child moves to says so before the child is touched, and the one that it comes
// from no longer lists it.
func TestIntentFirst(t *testing.T) {
	p := newPasses(t, strings.Replace(catSpec, "    statusChecks", "    maxUnavailable: 2\n    statusChecks", 1))
	p.settle()
	p.edit("image", "b")
	p.Forget()
	p.run(1)
	var got []string
	for _, c := range p.Writes() {
		got = append(got, c.Verb+" "+c.Kind)
	}
	slices.Sort(got[2 : len(got)-1]) // pods are written at once
	want := append(append([]string{"create ControllerRevision", "patch ControllerRevision"}, slices.Repeat([]string{"create Pod"}, 2)...),
		append(slices.Repeat([]string{"delete Pod"}, 2), "patch status Cat")...)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestARevisionIsGoodInThePassThatRecordsIt: the children of a parent that was deleted and created again are all there,
// and its first status names the new revision as the last good one.
func TestARevisionIsGoodInThePassThatRecordsIt(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	must(t, p.Raw.DeleteAllOf(t.Context(), &v1alpha1.ControllerRevision{}, client.InNamespace("default")))
	tom := p.tom()
	delete(tom.Object, "status")
	must(t, p.Raw.Status().Update(t.Context(), tom))
	p.Forget()
	p.run(1)
	if good := rollback.GoodOf(p.tom()); good.Last.IsZero() || len(p.Calls("patch status")) != 1 {
		t.Errorf("the last good revision is %s after the requests %v", good.Last, p.Calls())
	}
	p.run(2)
	if n := len(p.Calls("patch status")); n != 1 {
		t.Errorf("%d status writes", n)
	}
}

// TestAPanicIsACondition: of one parent, and the process goes on.
func TestAPanicIsACondition(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	p.hook = func(*hook.Question) string { panic("a bug") }
	p.edit("image", "b")
	if _, err := p.pass(); err == nil {
		t.Error("it is not tried again")
	}
	if got := p.updated(); got != "False Panic: the pass over Cat default/tom panicked: a bug" {
		t.Error(got)
	}
	p.hook = wantsPods
	p.settle()
	if !p.all("b") {
		t.Error(p.images())
	}
}

// TestAnAnswerThatCannotBeUsedIsNotRemembered: the hook is asked again, although nothing that it is told has changed.
func TestAnAnswerThatCannotBeUsedIsNotRemembered(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	var again []bool
	p.hook = func(q *hook.Question) string {
		again = append(again, q.Again)
		return `{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"tom-0","labels":{"of":"somebody else"}}}]}`
	}
	p.edit("image", "b")
	for range 2 {
		if _, err := p.pass(); err == nil {
			t.Fatal("a child that the parent does not select is no error")
		}
	}
	if !slices.Equal(again, []bool{false, true}) {
		t.Errorf("asked in any case: %v", again)
	}
	p.hook = wantsPods
	p.settle()
	if !p.all("b") {
		t.Error(p.images())
	}
}

// TestAFailureIsNotToldToWait: the queue takes a wait for a success, and its delay would never grow.
func TestAFailureIsNotToldToWait(t *testing.T) {
	p := newPasses(t, catSpec)
	p.Before = func(c fakeserver.Call) error {
		if c.Verb == "create" && c.Kind == "Pod" {
			return apierrors.NewForbidden(corev1.Resource("pods"), "tom-0", errors.New("no"))
		}
		return nil
	}
	for i := range 6 {
		p.clock.Step(50 * time.Millisecond) // less than children are left to settle
		if result, err := p.r.Reconcile(t.Context(), p.request()); i > 2 && err == nil {
			t.Errorf("pass %d: %v", i, result)
		}
	}
}

// TestEditedMeanwhile: children take their time, the parent is edited, and no more of the old ones are made.
func TestEditedMeanwhile(t *testing.T) {
	p := newPasses(t, catSpec)
	var once sync.Once
	p.Before = func(c fakeserver.Call) error {
		if c.Verb == "create" && c.Kind == "Pod" {
			once.Do(func() { p.edit("image", "b") })
		}
		return nil
	}
	p.run(1)
	if got := p.images(); got != "a" {
		t.Errorf("there are %s", got)
	}
	p.settle()
	if !p.all("b") {
		t.Error(p.images())
	}
}

// TestAForeignNameIsNoDeadEnd: an object that is no revision of ours has the name that ours would have.
func TestAForeignNameIsNoDeadEnd(t *testing.T) {
	p := newPasses(t, catSpec)
	stranger := p.revisionObject(7)
	stranger.OwnerReferences, stranger.Labels = nil, nil
	must(t, p.Raw.Create(context.Background(), stranger))
	p.settle()
	if !p.all("a") {
		t.Error(p.images())
	}
	if got := strings.Join(p.revisions(), " "); got != "1:a:3 7:a:0" {
		t.Error(got)
	}
}

func TestOldRevisionsArePruned(t *testing.T) {
	p := newPasses(t, strings.Replace(catSpec, "[spec.image]}", "[spec.image], limit: 2}", 1))
	for i := range 6 {
		p.edit("image", fmt.Sprint("v", i))
		p.settle()
	}
	if got := strings.Join(p.revisions(), " "); got != "4:v3:0 5:v4:0 6:v5:3" {
		t.Error(got)
	}
}

// TestARevisionThatCannotBeDeleted: the pass is tried again and an event says why; the conditions stay what they are.
func TestARevisionThatCannotBeDeleted(t *testing.T) {
	p := newPasses(t, strings.Replace(catSpec, "[spec.image]}", "[spec.image], limit: 0}", 1))
	p.settle()
	p.edit("image", "b")
	p.Before = fakeserver.Refuse("delete", "ControllerRevision", apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")))
	var failed error
	for range 20 {
		if _, err := p.pass(); err != nil {
			failed = err
		}
		p.makeReady()
	}
	if !apierrors.IsForbidden(failed) || len(p.revisions()) != 2 {
		t.Fatalf("%v, revisions %v", failed, p.revisions())
	}
	p.Forget()
	for range 3 {
		if _, err := p.pass(); err == nil {
			t.Error("it is not tried again")
		}
	}
	if got := p.Calls("patch status"); len(got) != 0 {
		t.Errorf("status writes %v", got)
	}
	if got := p.events.Events("TruncateFailed"); len(got) == 0 {
		t.Errorf("events %v", p.events.Events())
	}
	if got := p.events.Events("SyncError"); len(got) != 0 {
		t.Errorf("events %v", got)
	}
	p.Before = nil
	if _, err := p.pass(); err != nil || len(p.revisions()) != 1 {
		t.Errorf("%v, revisions %v", err, p.revisions())
	}
}

// TestAHookThatOnlyRepeatsItsStatusIsNotAskedAgain: our own write of what it said is no news.
func TestAHookThatOnlyRepeatsItsStatusIsNotAskedAgain(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	m := p.r.memories.of("tom-uid")
	told := m.version.of(p.tom())
	p.edit("image", "broken")
	p.run(1)
	if at := m.version.of(p.tom()); at == told || at == p.tom().GetResourceVersion() {
		t.Errorf("told of %s, then of %s, and it is at %s", told, at, p.tom().GetResourceVersion())
	}
	tom := p.tom()
	must(t, unstructured.SetNestedField(tom.Object, "else", "status", "somebody"))
	must(t, p.Raw.Status().Update(context.Background(), tom))
	if at := m.version.of(p.tom()); at != p.tom().GetResourceVersion() {
		t.Error("somebody else's write is news")
	}
}

// TestTheFirstStatusIsNews also if it is empty: a hook may ask for nothing but to be asked again once there is one
// (Metacontroller's TestResyncAfter). Where the hook has no status to give, ours is none of its business.
func TestTheFirstStatusIsNews(t *testing.T) {
	for status, news := range map[string]bool{`"status":{},`: true, `"status":null,`: false, "": false} {
		p := newPasses(t, strings.Replace(catSpec, "RollingRecreate", "InPlace", 1))
		p.hook = func(*hook.Question) string { return "{" + status + `"children":[]}` }
		result, err := p.pass()
		must(t, err)
		if (result.RequeueAfter > 0) != news || !p.tomSays("observedGeneration") {
			t.Errorf("%q: again after %s: %v", status, result.RequeueAfter, p.tom().Object["status"])
		}
	}
}

// TestABusyHook that does not say for how long is asked later each time, at last once a minute.
func TestABusyHook(t *testing.T) {
	p := newPasses(t, catSpec)
	p.r.asker.sync = busy{}
	for want := hosting.FirstRetry; want < 2*hosting.LastRetry; want *= 2 {
		_, err := p.pass()
		if got := p.r.Limiter().When(p.request()); err == nil || got != min(want, hosting.LastRetry) || len(p.events.Events()) != 0 {
			t.Fatalf("it is asked again in %s, want %s; %v, %v", got, want, err, p.events.Events())
		}
	}
	if got := p.updated(); !strings.Contains(got, "HookBusy: the hook answers 429 Too Many Requests, and does not say when") {
		t.Error(got)
	}
}

type busy struct{}

func (busy) Ask(context.Context, *hook.Question) (*hook.Answer, error) {
	return nil, &hook.Error{Hook: hook.Sync, Reason: hook.Busy, Err: &hook.TooManyRequestsError{}}
}

// TestAHookThatCountsInItsStatus is asked again until its status stays the same, although the event of our own write
// enqueues nobody.
func TestAHookThatCountsInItsStatus(t *testing.T) {
	p := newPasses(t, strings.Replace(catSpec, "RollingRecreate", "InPlace", 1))
	p.hook = func(q *hook.Question) string {
		step, _, _ := unstructured.NestedInt64(q.Parent.Object, "status", "step")
		return fmt.Sprintf(`{"status":{"step":%d},"children":[]}`, min(step+1, 5))
	}
	again := time.Duration(1)
	for passes := 0; again > 0 && passes < 8; passes++ {
		result, err := p.pass()
		must(t, err)
		again = result.RequeueAfter
	}
	if step, _, _ := unstructured.NestedInt64(p.tom().Object, "status", "step"); step != 5 || again > 0 {
		t.Errorf("at step %d, again after %s", step, again)
	}
}

// tomSays reports whether a field of tom's status is set.
func (p *passes) tomSays(field string) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(p.tom().Object, "status", field)
	return found
}

// TestNoStatusSubresource: the parent cannot be told, so that an event says so, and another one tells the controller.
// Its children are made; a parent that is gone is another thing.
func TestNoStatusSubresource(t *testing.T) {
	p := newPasses(t, catSpec)
	p.Before = fakeserver.Refuse("patch status", "Cat", apierrors.NewNotFound(cats.Resource.GroupResource(), "tom"))
	_, err := p.pass()
	fault, ok := errors.AsType[*faultError](err)
	if !ok || fault.Reason != noStatusSubresource || !strings.Contains(err.Error(), "cats.example.com does not have subresource 'Status' enabled") {
		t.Fatal(err)
	}
	if got := p.events.Events("SyncError"); len(got) != 2 || len(p.Calls("patch status")) != 1 || !p.all("a") {
		t.Errorf("events %q, calls %v, pods %s", got, p.Calls(), p.images())
	}
	must(t, p.Raw.Delete(t.Context(), p.tom()))
	p.Forget()
	if _, err := p.pass(); err != nil || len(p.events.Events("SyncError")) != 2 {
		t.Errorf("%v, events %q", err, p.events.Events("SyncError"))
	}
}

// TestAKindThatTheAPIServerDoesNotKnowAsAnOwnerYet: it will in half a minute, and a delay that doubles would make that
// two.
func TestAKindThatTheAPIServerDoesNotKnowAsAnOwnerYet(t *testing.T) {
	p := newPasses(t, catSpec)
	p.Before = fakeserver.Refuse("create", "Pod", apierrors.NewForbidden(pods.Resource.GroupResource(), "tom-0",
		errors.New("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion example.com/v1 Kind Cat")))
	result, err := p.pass()
	if err != nil || result.RequeueAfter != unknownOwnerRetry {
		t.Errorf("again after %s, %v", result.RequeueAfter, err)
	}
	if got := p.updated(); !strings.Contains(got, "False SyncError: create Pod tom-2: ") {
		t.Error(got)
	}
	if got := p.events.Events("SyncError"); len(got) != 0 {
		t.Errorf("events %q about what passes by itself", got)
	}
	p.Before = fakeserver.Refuse("create", "Pod", apierrors.NewForbidden(pods.Resource.GroupResource(), "tom-0", errors.New("no quota")))
	if _, err := p.pass(); err == nil || len(p.events.Events("SyncError")) != 1 {
		t.Errorf("another refusal: %v, events %q", err, p.events.Events("SyncError"))
	}
}

// TestAHookThatCountsItsCalls: each call makes another status, and each status would make another call.
func TestAHookThatCountsItsCalls(t *testing.T) {
	p := newPasses(t, catSpec)
	p.hook = func(q *hook.Question) string {
		return strings.Replace(wantsPods(q), `"wants":3`, fmt.Sprintf(`"wants":3,"calls":%d`, len(p.asked)), 1)
	}
	for range 8 {
		p.run(1)
		p.makeReady()
	}
	p.Forget()
	for range 20 {
		p.clock.Step(200 * time.Millisecond)
		_, err := p.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "tom"}})
		must(t, err)
	}
	if n := len(p.Calls("patch status")); n < 2 || n > 5 {
		t.Errorf("%d writes in 4 seconds", n)
	}
}

// TestANameThatIsTaken keeps one child from being made and no other one, and to wait for it costs no request:
// what is in the way is in the cache. Once it is gone, the child is made.
func TestANameThatIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		owner  *metav1.OwnerReference
		says   string
		within time.Duration
	}{
		"by a stranger": {nil, "exists already and is not ours", 10 * time.Second},
		"by a child of an earlier parent": {
			&metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Cat", Name: "tom", UID: "earlier", Controller: new(true)},
			"belongs to an earlier Cat of this name", time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPasses(t, catSpec)
			stranger := fakeserver.Of(pods.Kind)
			stranger.SetNamespace("default")
			stranger.SetName("tom-2") // the first one of the answer
			must(t, unstructured.SetNestedSlice(stranger.Object, []any{map[string]any{"name": "main", "image": "foreign"}}, "spec", "containers"))
			if c.owner != nil {
				stranger.SetOwnerReferences([]metav1.OwnerReference{*c.owner})
			}
			must(t, p.Raw.Create(t.Context(), stranger))
			result, err := p.pass()
			if err != nil || result.RequeueAfter != c.within || !strings.Contains(p.updated(), "False ChildExists: ") ||
				!strings.Contains(p.updated(), c.says) {
				t.Errorf("%v, %v, %s, want %q, and to look again in %s", result, err, p.updated(), c.says, c.within)
			}
			if got := p.images(); got != strings.Repeat("a ", 2)+"foreign" {
				t.Errorf("there are %s, want the other two of tom", got)
			}
			p.Forget()
			p.due = true
			p.run(3)
			if calls := p.Calls(); len(calls) > 0 || p.due || len(p.events.Events("SyncError")) != 1 {
				t.Errorf("waiting costs %v and says %q; a resync is due: %t", calls, p.events.Events("SyncError"), p.due)
			}
			must(t, p.Raw.Delete(t.Context(), stranger))
			p.settle()
			if !p.all("a") || !strings.HasPrefix(p.updated(), "True") {
				t.Errorf("in the end there is %v, and %s", p.images(), p.updated())
			}
		})
	}
}

// TestThePromotedRevisionIsAskedFor: whatever becomes the newest revision, the API server has just said that the parent
// asks for it (H7), and what other numbers there are (H2): another process may have given one a moment ago.
func TestThePromotedRevisionIsAskedFor(t *testing.T) {
	p := newPasses(t, catSpec)
	for _, image := range []string{"a", "b", "a"} { // two are made, and one is gone back to
		p.edit("image", image)
		p.Forget()
		p.settle()
		calls := p.Calls()
		read := slices.IndexFunc(calls, func(c fakeserver.Call) bool { return c.Verb == "get" && c.Kind == "Cat" })
		written := slices.IndexFunc(calls, func(c fakeserver.Call) bool {
			return (c.Verb == "create" || c.Verb == "patch") && c.Kind == "ControllerRevision"
		})
		listed := slices.IndexFunc(calls, func(c fakeserver.Call) bool { return c.Verb == "list" })
		if read < 0 || written < read || listed < 0 || written < listed {
			t.Errorf("%s: the parent is read at %d, revisions are listed at %d, one is written at %d: %v", image, read, listed, written, calls)
		}
	}
}

// TestChildrenAreCountedWhoseRevisionsCannotBeClaimed: a write that is refused for long is none that the status needs.
func TestChildrenAreCountedWhoseRevisionsCannotBeClaimed(t *testing.T) {
	p := newPasses(t, catSpec)
	p.hook = func(q *hook.Question) string {
		return strings.Replace(wantsPods(q), `"wants"`, fmt.Sprintf(`"there":%d,"wants"`, len(q.Children[0].Objects)), 1)
	}
	p.settle()
	for what, refused := range map[string]string{"of revisions": "ControllerRevision", "of pods": "Pod"} {
		log := p.revisionOf("a")
		log.OwnerReferences = nil
		must(t, p.Raw.Update(t.Context(), log))
		released := p.pods()[0]
		released.SetOwnerReferences(nil)
		must(t, p.Raw.Update(t.Context(), &released))
		gone := p.pods()[1]
		must(t, p.Raw.Delete(t.Context(), &gone))
		p.Before = fakeserver.Refuse("patch", refused, apierrors.NewForbidden(pods.Resource.GroupResource(), "any", errors.New("no")))
		p.Forget()
		p.due = true
		_, err := p.pass()
		want := map[string]int64{"Pod": 1, "ControllerRevision": 2}[refused]
		there, _, _ := unstructured.NestedInt64(p.tom().Object, "status", "there")
		if err == nil || there != want || !strings.HasPrefix(p.updated(), "False SyncError") {
			t.Errorf("claims %s are refused: %v, status.there is %d, want %d, and %s", what, err, there, want, p.updated())
		}
		if made := p.Calls("create", "delete"); len(made) > 0 {
			t.Errorf("claims %s are refused, and it makes %v", what, made)
		}
		p.Before = nil
		p.settle()
		if there, _, _ := unstructured.NestedInt64(p.tom().Object, "status", "there"); there != 3 {
			t.Errorf("in the end status.there is %d", there)
		}
	}
}
