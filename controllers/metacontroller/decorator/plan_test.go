package decorator

// Decisions, as tables. No client in sight.

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// text is a plan for people.
func (p *plan) text() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if p.object != nil {
		add("object: labels %s; annotations %s; finalizers %v", text(p.object.labels), text(p.object.annotations), p.object.finalizers)
	}
	if p.restate {
		add("status: %s", encode(p.status))
	}
	if p.done {
		add("done")
	}
	for _, d := range p.deletes {
		add("delete %s: %s", anyobject.Describe(d.attachment), d.reason)
	}
	for _, u := range p.updates {
		add("change %s: %s", anyobject.Describe(u.attachment), u.reason)
	}
	for _, c := range p.creates {
		add("make %s", anyobject.Describe(c.attachment))
	}
	return strings.Join(out, "\n")
}

// service is an attachment that is there, as port was applied to it.
func service(t *testing.T, name string, port int, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	content, err := apply.New(wantedService(t, name, port).Object)
	must(t, err)
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	for _, f := range change {
		f(o)
	}
	return o
}

// wantedService is an attachment that a hook asks for.
func wantedService(t *testing.T, name string, port int) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: default, name: %s}, spec: {ports: [{port: 80, targetPort: %d}]}}`, name, port))
}

// drifted has a field that somebody else changed.
func drifted(o *unstructured.Unstructured) {
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	ports[0].(map[string]any)["targetPort"] = int64(1)
	_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
}

// unmarked remembers nothing that was applied.
func unmarked(o *unstructured.Unstructured) { o.SetAnnotations(nil) }

func TestPlanOfAttachments(t *testing.T) {
	const (
		onDelete = v1alpha1.ChildUpdateOnDelete
		recreate = v1alpha1.ChildUpdateRecreate
		inPlace  = v1alpha1.ChildUpdateInPlace
	)
	for _, c := range []struct {
		name     string
		method   v1alpha1.ChildUpdateMethod
		observed []*unstructured.Unstructured
		wanted   []*unstructured.Unstructured
		want     string
	}{
		{"new", onDelete, nil, []*unstructured.Unstructured{wantedService(t, "b", 1), wantedService(t, "a", 1)}, "make Service default/b\nmake Service default/a"},
		{
			"surplus", onDelete,
			[]*unstructured.Unstructured{service(t, "a", 1), service(t, "b", 1)},
			nil,
			"delete Service default/a: the hook does not ask for it\ndelete Service default/b: the hook does not ask for it",
		},
		{"surplus that goes already", inPlace, []*unstructured.Unstructured{service(t, "a", 1, going)}, nil, ""},
		{"as wanted", inPlace, []*unstructured.Unstructured{service(t, "a", 1)}, []*unstructured.Unstructured{wantedService(t, "a", 1)}, ""},
		{"as wanted, to be made again otherwise", recreate, []*unstructured.Unstructured{service(t, "a", 1)}, []*unstructured.Unstructured{wantedService(t, "a", 1)}, ""},
		{"another, on delete", onDelete, []*unstructured.Unstructured{service(t, "a", 1)}, []*unstructured.Unstructured{wantedService(t, "a", 2)}, ""},
		{
			"another, made again", recreate,
			[]*unstructured.Unstructured{service(t, "a", 1)},
			[]*unstructured.Unstructured{wantedService(t, "a", 2)},
			"delete Service default/a: the hook asks for another spec.ports[0].targetPort",
		},
		{
			"another, in place", inPlace,
			[]*unstructured.Unstructured{service(t, "a", 1)},
			[]*unstructured.Unstructured{wantedService(t, "a", 2)},
			"change Service default/a: the hook asks for another spec.ports[0].targetPort",
		},
		{
			"drift, in place", inPlace,
			[]*unstructured.Unstructured{service(t, "a", 2, drifted)},
			[]*unstructured.Unstructured{wantedService(t, "a", 2)},
			"change Service default/a: the hook asks for another spec.ports[0].targetPort",
		},
		{"another, but it goes", inPlace, []*unstructured.Unstructured{service(t, "a", 1, going)}, []*unstructured.Unstructured{wantedService(t, "a", 2)}, ""},
		{"wanted again, but it goes", recreate, []*unstructured.Unstructured{service(t, "a", 1, going)}, []*unstructured.Unstructured{wantedService(t, "a", 1)}, ""},
		{
			"as wanted, and does not remember it: nothing is made again for that", recreate,
			[]*unstructured.Unstructured{service(t, "a", 1, unmarked)},
			[]*unstructured.Unstructured{wantedService(t, "a", 1)},
			"change Service default/a: it remembers something else as applied last",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := factsOf(t, web(t, 1), `{}`)
			f.settings.methods[services.Kind.GroupKind()] = c.method
			f.answer.ChildrenPresence = hook.Given
			f.desired = c.wanted
			for _, o := range c.observed {
				f.observed[keyOf(o)] = o
			}
			for _, desired := range c.wanted {
				if o := f.observed[keyOf(desired)]; o != nil && c.method != onDelete {
					result, err := apply.Child(o.Object, desired.Object, nil)
					must(t, err)
					f.applied[keyOf(desired)] = result
				}
			}
			if got := makePlan(f).text(); got != c.want {
				t.Errorf("plan:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// factsOf are facts about an object, and the answer of a hook of a controller without attachments.
func factsOf(t *testing.T, o *unstructured.Unstructured, answer string) *facts {
	t.Helper()
	f := &facts{
		settings: controller(t, "service-per-pod", perPod), object: o,
		observed: map[key]*unstructured.Unstructured{}, applied: map[key]apply.Result{},
	}
	f.resource = f.settings.resources[0]
	f.finalizing = f.settings.finalizing(f.resource, o)
	kind := hook.Sync
	if f.finalizing {
		kind = hook.Finalize
	}
	var err error
	f.answer, err = hook.Form{Hook: kind, Type: hook.Decorator, Namespace: "default"}.Decode([]byte(answer))
	must(t, err)
	return f
}

// TestPlanOfObject: what is done to the object itself, and to its attachments while it goes.
func TestPlanOfObject(t *testing.T) {
	with := func(finalizers ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) }
	}
	ours := finalizerPrefix + "service-per-pod"
	const surplus = "delete Service default/web-0: the hook does not ask for it"
	for _, c := range []struct {
		name, answer string
		change       []func(*unstructured.Unstructured)
		want         string
	}{
		{"nothing", `{"attachments":[]}`, nil, surplus},
		{"no word of attachments", `{"labels":{"app":"web","a":null}}`, nil, ""},
		{"labels", `{"labels":{"app":null}}`, nil, "object: labels ; annotations service-per-pod-label=pod-name; finalizers []"},
		{"a status, beside", `{"status":{"a":1}}`, nil, `status: {"a":1}`},
		{"a sync hook cannot finalize", `{"finalized":true}`, []func(*unstructured.Unstructured){with(ours)}, ""},
		{
			"left out, and done", `{"finalized":true,"attachments":[],"labels":{"app":null}}`,
			[]func(*unstructured.Unstructured){with("other", ours), optOut},
			"object: labels ; annotations ; finalizers [other]\ndone\n" + surplus,
		},
		{"left out, and not done", `{"attachments":[]}`, []func(*unstructured.Unstructured){with(ours), optOut}, surplus},
		{"going", `{"attachments":[]}`, []func(*unstructured.Unstructured){with(ours), going}, surplus},
		{"going, not ours any more", `{"attachments":[],"finalized":true}`, []func(*unstructured.Unstructured){going}, ""},
		{
			"going with its children", `{"attachments":[],"finalized":true}`,
			[]func(*unstructured.Unstructured){with(ours, metav1.FinalizerDeleteDependents), going},
			"object: labels app=web; annotations service-per-pod-label=pod-name; finalizers [foregroundDeletion example.com/stays]\ndone",
		},
		{"leaving its children", `{"attachments":[]}`, []func(*unstructured.Unstructured){with(ours, metav1.FinalizerOrphanDependents), going}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := web(t, 1)
			for _, f := range c.change {
				f(o)
			}
			f := factsOf(t, o, c.answer)
			there := service(t, "web-0", 1)
			f.observed[keyOf(there)] = there
			if got := makePlan(f).text(); got != c.want {
				t.Errorf("plan:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}
