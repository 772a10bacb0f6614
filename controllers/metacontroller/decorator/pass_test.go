package decorator

// Whole passes against the fake API server: what is written, what is left alone, and when nothing is done at all.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/pass"
)

// TestServicePerPod is the whole life of the example: made, changed, scaled, drifted, taken out; and no request at all
// in a pass without news.
func TestServicePerPod(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 3))
	w.settle(webRequest)
	if diff := cmp.Diff([]string{"web-0", "web-1", "web-2"}, w.names(services)); diff != "" {
		t.Fatalf("services (-want +got):\n%s", diff)
	}
	service := w.get(services, "web-1")
	ref := metav1.GetControllerOf(service)
	if ref == nil || ref.UID != "uid-of-web" || ref.Kind != "StatefulSet" || !*ref.BlockOwnerDeletion {
		t.Errorf("controller %+v", ref)
	}
	// The bytes that Metacontroller writes.
	const applied = `{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"metacontroller.k8s.io/decorator-controller":"service-per-pod"},` +
		`"name":"web-1","namespace":"default"},"spec":{"ports":[{"port":80}],"selector":{"pod-name":"web-1"}}}`
	if diff := cmp.Diff(map[string]string{Annotation: "service-per-pod", apply.LastApplied: applied}, service.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got := w.get(statefulSets, "web").GetFinalizers(); !cmp.Equal(got, []string{"metacontroller.io/decoratorcontroller-service-per-pod"}) {
		t.Errorf("finalizers %v", got)
	}

	w.Forget()
	w.mustReconcile(webRequest)
	if got := w.calls(); got != "" {
		t.Errorf("a pass without news made requests: %s", got)
	}

	w.edit(statefulSets, "web", func(o *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas"))
		o.SetAnnotations(map[string]string{"service-per-pod-label": "other"})
	})
	w.settle(webRequest)
	if diff := cmp.Diff([]string{"delete web-2", "patch web-0", "patch web-1"}, w.WritesTo("Service")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	selector, _, _ := unstructured.NestedStringMap(w.get(services, "web-0").Object, "spec", "selector")
	if text(selector) != "other=web-0" {
		t.Errorf("selector %v", selector)
	}

	w.edit(statefulSets, "web", optOut)
	w.settle(webRequest)
	if got := w.names(services); len(got) != 0 {
		t.Errorf("after the opt-out there are %v", got)
	}
	if got := w.get(statefulSets, "web"); len(got.GetFinalizers()) != 0 || got.GetDeletionTimestamp() != nil {
		t.Errorf("after the opt-out it has finalizers %v", got.GetFinalizers())
	}
	w.Forget()
	asked := len(w.asked)
	w.mustReconcile(webRequest)
	if got := w.calls(); got != "" || len(w.asked) != asked {
		t.Errorf("an object that is none of ours: %s, %v", got, w.asked[asked:])
	}
	if !slices.Contains(w.forgotten, "uid-of-web") {
		t.Error("what it wanted to know of still wakes it")
	}
	if got := w.events.Events(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

// TestPreconditions: every write names the very object that was looked at.
func TestPreconditions(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 1))
	w.settle(webRequest)
	w.edit(statefulSets, "web", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"service-per-pod-label": "other"})
	})
	w.settle(webRequest)
	w.edit(statefulSets, "web", optOut)
	w.settle(webRequest)
	seen := map[string]int{}
	for _, c := range w.Writes() {
		if c.Verb != "create" && (c.UID == "" || c.Version == "") {
			t.Errorf("%s has preconditions %q and %q", c, c.UID, c.Version)
		}
		seen[c.Verb+" "+c.Kind]++
	}
	want := map[string]int{"patch StatefulSet": 2, "create Service": 1, "patch Service": 1, "delete Service": 1}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

const labelled = `
resources: [{apiVersion: apps/v1, resource: statefulsets}]
attachments: [{apiVersion: v1, resource: configmaps}]
hooks: {sync: {}}
`

// TestDecorations: values are set, null takes one away, and what nobody mentions stays; in one request.
func TestDecorations(t *testing.T) {
	o := web(t, 1)
	o.SetLabels(map[string]string{"app": "web", "gone": "soon", "stays": "yes"})
	w := newWorld(t, controller(t, "labels", labelled), says(`{
		"labels": {"gone": null, "tier": "front", "never-there": null}, "annotations": {"note": "", "service-per-pod-label": null},
		"status": {"replicas": 1}, "attachments": []}`), o)
	w.settle(webRequest)
	if got, want := w.calls(), "patch StatefulSet web, patch status StatefulSet web"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
	got := w.get(statefulSets, "web")
	if text(got.GetLabels()) != "app=web stays=yes tier=front" || text(got.GetAnnotations()) != "note=" {
		t.Errorf("labels %v, annotations %v", got.GetLabels(), got.GetAnnotations())
	}
	if n, _, _ := unstructured.NestedInt64(got.Object, "status", "replicas"); n != 1 {
		t.Errorf("status %v", got.Object["status"])
	}
	if len(got.GetFinalizers()) != 0 {
		t.Errorf("finalizers %v without a finalize hook", got.GetFinalizers())
	}
}

// TestStatus: absent and null leave it, an object replaces it, wherever the kind keeps it.
func TestStatus(t *testing.T) {
	const spec = `
resources: [{apiVersion: example.com/v1, resource: plants}]
hooks: {sync: {}}
`
	plant := object(t, `
apiVersion: example.com/v1
kind: Plant
metadata: {namespace: default, name: fern, uid: uid-of-fern}
status: {height: 3, dry: true}
`)
	req := requestFor(&decorated{Resource: plants}, types.NamespacedName{Namespace: "default", Name: "fern"})
	for _, c := range []struct{ name, body, calls, status string }{
		{"absent", `{}`, "", `{"dry":true,"height":3}`},
		{"null", `{"status":null}`, "", `{"dry":true,"height":3}`},
		{"the same", `{"status":{"height":3.0,"dry":true,"owner":null}}`, "", `{"dry":true,"height":3}`},
		{"another", `{"status":{"height":4}}`, "patch Plant fern", `{"height":4}`},
		{"another, and a label", `{"status":{"height":4},"labels":{"a":"b"}}`, "patch Plant fern", `{"height":4}`},
		{"none", `{"status":{}}`, "patch Plant fern", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, controller(t, "water", spec), says(c.body), plant.DeepCopy())
			w.settle(req)
			status, _ := w.get(plants, "fern").Object["status"].(map[string]any)
			if got := encode(status); got != c.status {
				t.Errorf("status %s, want %s", got, c.status)
			}
			if w.calls() != c.calls {
				t.Errorf("requests %q, want %q", w.calls(), c.calls)
			}
		})
	}
}

// TestFirstStatusIsEmpty: {} is a status, so that it is written, and the hook is asked once more, about an object that
// has one (Metacontroller's TestResyncAfter).
func TestFirstStatusIsEmpty(t *testing.T) {
	const spec = `
resources: [{apiVersion: example.com/v1, resource: plants}]
hooks: {sync: {}}
`
	plant := object(t, `{apiVersion: example.com/v1, kind: Plant, metadata: {namespace: default, name: fern, uid: uid-of-fern}}`)
	w := newWorld(t, controller(t, "water", spec), func(q *hook.Question) string {
		if q.Parent.Object["status"] == nil {
			return `{"status":{}}`
		}
		return `{"resyncAfterSeconds":0.1}`
	}, plant)
	req := requestFor(&decorated{Resource: plants}, types.NamespacedName{Namespace: "default", Name: "fern"})
	w.mustReconcile(req)
	if got := w.calls(); got != "patch Plant fern" || w.get(plants, "fern").Object["status"] == nil {
		t.Errorf("requests %q, status %v", got, w.get(plants, "fern").Object["status"])
	}
	w.mustReconcile(req)
	if got := w.calls(); got != "patch Plant fern" || len(w.resync.after) == 0 {
		t.Errorf("requests %q, resyncs %v", got, w.resync.after)
	}
}

// TestStatusThatIsNotKept: what the API server drops of a status is not written again and again, and what it keeps is.
func TestStatusThatIsNotKept(t *testing.T) {
	const spec = `
resources: [{apiVersion: v1, resource: namespaces}, {apiVersion: v1, resource: configmaps}]
hooks: {sync: {}}
`
	s := controller(t, "status", spec)
	s.of(configMaps.Kind.GroupKind()).status = false
	answer := `{"status":{"phase":"Active","unknown":1}}`
	w := newWorld(t, s, func(*hook.Question) string { return answer },
		object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team, uid: uid-of-team}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: map, uid: uid-of-map}}`))
	team := requestFor(&decorated{Resource: namespaces}, types.NamespacedName{Name: "team"})
	aMap := requestFor(&decorated{Resource: configMaps}, types.NamespacedName{Namespace: "default", Name: "map"})
	for _, c := range []struct{ change, calls string }{
		{answer, "patch status Namespace team, patch ConfigMap map"},
		{answer, ""},
		{`{"status":{"phase":"Terminating","unknown":1}}`, "patch status Namespace team, patch ConfigMap map"},
		{`{"status":{"phase":"Terminating"}}`, "patch ConfigMap map"},
		{`{"status":{}}`, "patch status Namespace team, patch ConfigMap map"},
		{`{"status":{}}`, ""},
	} {
		answer = c.change
		w.Forget()
		w.settle(team)
		w.settle(aMap)
		if got := w.calls(); got != c.calls {
			t.Errorf("%s: requests %s, want %s", c.change, got, c.calls)
		}
	}
}

// TestResyncAfter: the hook is asked again when it wants to be, and in any case then.
func TestResyncAfter(t *testing.T) {
	w := newWorld(t, controller(t, "labels", labelled), says(`{"attachments":[],"resyncAfterSeconds":2.5}`), web(t, 1))
	var again []bool
	w.r.sync = noting{w.r.sync, &again}
	w.mustReconcile(webRequest)
	if got := w.resync.after[webRequest.NamespacedName]; got != 2500*time.Millisecond {
		t.Errorf("again after %v", got)
	}
	w.resync.due = true
	w.mustReconcile(webRequest)
	if !cmp.Equal(again, []bool{false, true}) || w.resync.due {
		t.Errorf("asked in any case: %v, due %t", again, w.resync.due)
	}
}

// noting notes whether a hook was to be called in any case.
type noting struct {
	hook.Asker

	again *[]bool
}

func (n noting) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	*n.again = append(*n.again, q.Again)
	return n.Asker.Ask(ctx, q)
}

// TestGoing: once an object that goes was finalized, or if it went before anything was done for it, it is left alone.
func TestGoing(t *testing.T) {
	const ours = finalizerPrefix + "service-per-pod"
	for name, c := range map[string]struct {
		spec       string
		finalizers []string
		asked      string
		left       []string
	}{
		"finalized already":       {perPod, nil, "", []string{"example.com/stays"}},
		"to be finalized":         {perPod, []string{ours}, "finalize web", []string{"example.com/stays"}},
		"of an earlier spec":      {strings.Replace(perPod, "finalize: {}", "", 1), []string{ours}, "sync web", []string{"example.com/stays"}},
		"without a finalize hook": {strings.Replace(perPod, "finalize: {}", "", 1), nil, "sync web", []string{"example.com/stays"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := web(t, 2)
			o.SetFinalizers(c.finalizers)
			going(o)
			w := newWorld(t, controller(t, "service-per-pod", c.spec), servicePerPod, o)
			w.mustReconcile(webRequest)
			if got := strings.Join(w.asked, ", "); got != c.asked {
				t.Errorf("asked %q, want %q", got, c.asked)
			}
			if diff := cmp.Diff(c.left, w.get(statefulSets, "web").GetFinalizers()); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if got := w.names(services); len(got) > 0 {
				t.Errorf("services %v", got)
			}
		})
	}
}

// TestFinalizerOfAnEarlierSpec: a finalizer that no hook stands behind any more is taken back.
func TestFinalizerOfAnEarlierSpec(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){"decorated": func(*unstructured.Unstructured) {}, "taken out": optOut} {
		t.Run(name, func(t *testing.T) {
			o := web(t, 1)
			change(o)
			o.SetFinalizers([]string{finalizerPrefix + "service-per-pod", "other"})
			w := newWorld(t, controller(t, "service-per-pod", strings.Replace(perPod, "finalize: {}", "", 1)), servicePerPod, o)
			w.settle(webRequest)
			if got := w.get(statefulSets, "web").GetFinalizers(); !cmp.Equal(got, []string{"other"}) {
				t.Errorf("finalizers %v", got)
			}
			if asked := len(w.asked) > 0; asked != (name == "decorated") {
				t.Errorf("asked %v", w.asked)
			}
		})
	}
}

// TestTwoDecorators: each keeps its own attachments and its own finalizer, and leaves those of the other one.
func TestTwoDecorators(t *testing.T) {
	one := newWorld(t, controller(t, "one", perPod), servicePerPod, web(t, 2))
	two := worldOn(t, one.Server, controller(t, "two", strings.Replace(perPod, "services", "configmaps", 1)), func(q *hook.Question) string {
		if q.Parent.GetAnnotations() == nil {
			return `{"attachments":[],"finalized":true}`
		}
		return `{"attachments":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"b"}}]}`
	})
	for range 2 {
		one.settle(webRequest)
		two.settle(webRequest)
	}
	if got := len(one.get(statefulSets, "web").GetFinalizers()); got != 2 {
		t.Errorf("%d finalizers", got)
	}
	if s, c := one.names(services), one.names(configMaps); len(s) != 2 || len(c) != 1 {
		t.Errorf("services %v, config maps %v", s, c)
	}
	one.edit(statefulSets, "web", optOut)
	two.settle(webRequest)
	if s, c := one.names(services), one.names(configMaps); len(s) != 2 || len(c) != 0 {
		t.Errorf("after the second one is done: services %v, config maps %v", s, c)
	}
	if got := one.get(statefulSets, "web").GetFinalizers(); !cmp.Equal(got, []string{finalizerPrefix + "one"}) {
		t.Errorf("finalizers %v", got)
	}
}

// TestSameKindOfAttachment: of two decorators that attach the same kind to one object, neither sees what the other
// made.
func TestSameKindOfAttachment(t *testing.T) {
	one := newWorld(t, controller(t, "one", perPod), servicePerPod, web(t, 2))
	two := worldOn(t, one.Server, controller(t, "two", perPod), says(`{"attachments":[]}`))
	one.settle(webRequest)
	two.settle(webRequest)
	if got := one.names(services); len(got) != 2 {
		t.Errorf("services %v", got)
	}
}

// TestStranger: what has an attachment's name already is reported and never touched, whoever it belongs to.
func TestStranger(t *testing.T) {
	owned := func(name, annotation string) func(o *unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: types.UID("uid-of-" + name), Controller: new(true)}})
			o.SetAnnotations(map[string]string{Annotation: annotation})
		}
	}
	for name, change := range map[string]func(o *unstructured.Unstructured){
		"nobody's":                   func(*unstructured.Unstructured) {},
		"annotated, without owner":   func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{Annotation: "service-per-pod"}) },
		"another object's":           owned("db", "service-per-pod"),
		"another controller's":       owned("web", "another"),
		"the object's own, in truth": owned("web", ""),
	} {
		t.Run(name, func(t *testing.T) {
			stranger := object(t, `{apiVersion: v1, kind: Service, metadata: {namespace: default, name: web-1, uid: stranger}, spec: {selector: {a: b}}}`)
			change(stranger)
			w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 3), stranger)
			before := w.get(services, "web-1")
			result, err := w.reconcile(webRequest)
			if err != nil || result.RequeueAfter != 10*time.Second {
				t.Errorf("%+v, %v", result, err)
			}
			if got := w.events.Events("SyncError"); len(got) != 1 || !strings.Contains(got[0], "Service default/web-1") {
				t.Errorf("events %v", got)
			}
			_, _ = w.reconcile(webRequest)
			w.edit(statefulSets, "web", optOut)
			_, _ = w.reconcile(webRequest)
			if diff := cmp.Diff(before, w.get(services, "web-1")); diff != "" {
				t.Errorf("the stranger was changed (-before +after):\n%s", diff)
			}
			if got := w.names(services); len(got) != 1 {
				t.Errorf("services %v after the opt-out", got)
			}
		})
	}
}

// TestWaitingForAName: an attachment whose name something else has is in the way of no other, and waits without a
// request.
func TestWaitingForAName(t *testing.T) {
	for name, c := range map[string]struct {
		has   string // metadata of what has the name
		again time.Duration
		why   string
	}{
		"a stranger": {`{}`, 10 * time.Second, "(it has no controller, and nothing is adopted)"},
		"what an earlier object of the name has left": {
			`{ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: earlier, controller: true}]}`,
			time.Second, "belongs to an earlier StatefulSet of this name",
		},
		"what is going": {`{deletionTimestamp: "2026-03-04T05:06:07Z", finalizers: [example.com/stays]}`, pass.StaleRetry, ""},
	} {
		t.Run(name, func(t *testing.T) {
			first := object(t, `{apiVersion: v1, kind: Service, metadata: `+c.has+`}`)
			first.SetNamespace("default")
			first.SetName("web-0")
			w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 3), first)
			w.resync.due = true
			for i := range 3 {
				again := c.again
				if c.again == pass.StaleRetry {
					again <<= i // no event may tell, but each look is a request
				}
				if result, err := w.reconcile(webRequest); err != nil || result.RequeueAfter != again {
					t.Errorf("%+v, %v", result, err)
				}
			}
			if w.resync.due != (c.again == pass.StaleRetry) {
				t.Errorf("the hook is asked in each pass: %t", w.resync.due)
			}
			if got, want := w.calls(), "patch StatefulSet web, get StatefulSet web, create Service web-1, create Service web-2"; got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
			if got := w.events.Events(); len(got) != min(1, len(c.why)) || !strings.Contains(strings.Join(got, ""), c.why) {
				t.Errorf("events %v", got)
			}
			w.edit(services, "web-0", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			if w.get(services, "web-0") != nil {
				must(t, w.Raw.Delete(t.Context(), first))
			}
			w.Forget()
			w.mustReconcile(webRequest)
			if got := w.calls(); got != "create Service web-0" {
				t.Errorf("requests when the name is free: %s", got)
			}
		})
	}
}

// TestUnseenStranger: that a name is taken may be known to the API server only.
func TestUnseenStranger(t *testing.T) {
	stranger := object(t, `{apiVersion: v1, kind: Service, metadata: {namespace: default, name: web-0}}`)
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 1), stranger)
	w.r.Cache = unseen{w.r.Cache, "Service"}
	_, err := w.reconcile(webRequest)
	if err == nil || !strings.Contains(err.Error(), "Service default/web-0 exists already and is not ours") {
		t.Errorf("error %v", err)
	}
}

// TestFailingHook: whatever is wrong with an answer, nothing is deleted and nothing else is written, and it is said
// (W1).
func TestFailingHook(t *testing.T) {
	for name, body := range map[string]string{
		"empty":              ``,
		"truncated":          `{"attachments":[`,
		"no attachments":     `{"labels":{"a":"b"}}`,
		"cluster-scoped":     `{"attachments":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"mine"}}]}`,
		"foreign namespace":  `{"attachments":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web-0","namespace":"kube-system"}}]}`,
		"undeclared kind":    `{"attachments":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-0"}}]}`,
		"the same one twice": `{"attachments":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			broken := false
			w := newWorld(t, controller(t, "service-per-pod", strings.Replace(perPod, "attachments:", "attachments:\n- {apiVersion: v1, resource: namespaces}", 1)),
				func(q *hook.Question) string {
					if broken {
						return body
					}
					return servicePerPod(q)
				}, web(t, 2))
			w.settle(webRequest)
			broken = true
			for _, change := range []func(*unstructured.Unstructured){func(*unstructured.Unstructured) {}, optOut} {
				w.edit(statefulSets, "web", change)
				w.Forget()
				w.resync.due = true
				if _, err := w.reconcile(webRequest); err == nil {
					t.Error("no error")
				}
				if got := w.calls(); got != "" {
					t.Errorf("requests %s", got)
				}
				if !w.resync.due {
					t.Error("the resync was lost")
				}
			}
			if got := w.events.Events("SyncError"); len(got) != 2 || len(got[0]) > 1050 {
				t.Errorf("events %v", got)
			}
		})
	}
}

// TestBusyHook: a hook that wants to be asked later is, and that is no event.
func TestBusyHook(t *testing.T) {
	w := newWorld(t, controller(t, "service-per-pod", perPod), servicePerPod, web(t, 2))
	w.r.sync = failing{&hook.Error{Hook: hook.Sync, Reason: hook.Busy, Err: &hook.TooManyRequestsError{After: 7 * time.Second}}}
	result, err := w.reconcile(webRequest)
	if err != nil || result.RequeueAfter != 7*time.Second || len(w.events.Events()) != 0 {
		t.Errorf("%+v, %v, %v", result, err, w.events.Events())
	}
	w.r.sync = failing{&hook.Error{Hook: hook.Sync, Reason: hook.Busy, Err: &hook.TooManyRequestsError{}}}
	for want := hosting.FirstRetry; want < 2*hosting.LastRetry; want *= 2 {
		_, err := w.reconcile(webRequest)
		if got := w.r.Limiter().When(webRequest); err == nil || got != min(want, hosting.LastRetry) || len(w.events.Events()) != 0 {
			t.Errorf("without a time it is asked again in %s, want %s; %v, %v", got, want, err, w.events.Events())
		}
	}
}

type failing struct{ err error }

func (f failing) Ask(context.Context, *hook.Question) (*hook.Answer, error) { return nil, f.err }
