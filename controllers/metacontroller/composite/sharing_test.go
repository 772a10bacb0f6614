package composite

// Parents that two CompositeControllers have.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// configSpec is a controller of cats whose children are ConfigMaps.
var configSpec = strings.NewReplacer("resource: pods", "resource: configmaps", "RollingRecreate", "RollingInPlace",
	`    statusChecks: {conditions: [{type: Ready, status: "True"}]}`, "").Replace(catSpec)

// wantsConfigs answers two ConfigMaps that hold the parent's image.
func wantsConfigs(q *hook.Question) string {
	image, _, _ := unstructured.NestedString(q.Parent.Object, "spec", "image")
	var children []string
	for i := range 2 {
		children = append(children, fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf-%d","labels":{"app":"tom"}},"data":{"image":%q}}`, i, image))
	}
	return fmt.Sprintf(`{"status":{"configured":%q},"children":[%s]}`, image, strings.Join(children, ","))
}

func controllerNamed(t *testing.T, name, spec string, made time.Time) *v1alpha1.CompositeController {
	t.Helper()
	cc := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(made),
	}}
	must(t, yaml.UnmarshalStrict([]byte(spec), &cc.Spec))
	return cc
}

// sharedBy returns two controllers of tom, the older one first.
func sharedBy(t *testing.T, first, second string) (a, b *passes) {
	t.Helper()
	a = newPasses(t, first)
	copied := *a
	b = &copied
	b.hook, b.due, b.asked = wantsConfigs, false, nil
	controllers := []v1alpha1.CompositeController{*controllerNamed(t, "a", first, start), *controllerNamed(t, "b", second, start.Add(time.Second))}
	for i, p := range []*passes{a, b} {
		s, err := readSettings(&controllers[i], served{})
		must(t, err)
		p.start(s)
		p.r.gatherer.others = func(context.Context) ([]v1alpha1.CompositeController, error) { return controllers, nil }
	}
	return a, b
}

// rest makes passes of both until neither writes anything, and returns how many writes that took.
func rest(t *testing.T, a, b *passes) int {
	t.Helper()
	a.Forget()
	for range 40 {
		before := len(a.Writes())
		for _, p := range []*passes{a, b} {
			for { // what the other one wrote meanwhile is a conflict
				if _, err := p.pass(); err == nil {
					break
				} else if len(a.Writes()) > 500 {
					t.Fatal(err)
				}
			}
		}
		a.makeReady()
		if len(a.Writes()) == before {
			return before
		}
	}
	t.Fatalf("they write for ever: %v", a.Writes()[len(a.Writes())-10:])
	return 0
}

func (p *passes) configs() string {
	p.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(configs.Kind.GroupVersion().WithKind("ConfigMapList"))
	must(p.t, p.Raw.List(context.Background(), list))
	var out []string
	for _, c := range list.Items {
		image, _, _ := unstructured.NestedString(c.Object, "data", "image")
		out = append(out, image)
	}
	return strings.Join(out, " ")
}

// TestTwoControllersOfOneParent: each has its own kind of children, both are rolled, and they share revisions and
// status. Metacontroller's would overwrite each other's claims for ever.
func TestTwoControllersOfOneParent(t *testing.T) {
	a, b := sharedBy(t, catSpec, configSpec)
	rest(t, a, b)
	for _, image := range []string{"b", "c", "b"} {
		a.edit("image", image)
		if n := rest(t, a, b); n > 40 {
			t.Errorf("it took %d writes", n)
		}
		if !a.all(image) || a.configs() != image+" "+image {
			t.Errorf("pods %s, ConfigMaps %s", a.images(), a.configs())
		}
	}
	if got := strings.Join(a.revisions(), " "); got != "1:a:0 3:c:0 4:b:5" {
		t.Errorf("revisions %s", got)
	}
	status := a.tom().Object["status"].(map[string]any)
	if status["configured"] != "b" || status["wants"] != int64(3) || !strings.HasPrefix(a.updated(), "True") {
		t.Errorf("status %v", status)
	}
}

// TestOneOfTwoIsNotUpdated: the condition says so, and whose children these are, until they are.
func TestOneOfTwoIsNotUpdated(t *testing.T) {
	a, b := sharedBy(t, catSpec, configSpec)
	rest(t, a, b)
	a.edit("image", "broken")
	for range 10 {
		_, err := a.pass()
		must(t, err)
		_, err = b.pass()
		must(t, err)
		a.makeReady()
	}
	if got := a.updated(); !strings.HasPrefix(got, "False RolloutWaiting: a: ") {
		t.Error(got)
	}
	a.Forget()
	for range 5 {
		_, err := b.pass()
		must(t, err)
		_, err = a.pass()
		must(t, err)
	}
	if writes := a.Writes(); len(writes) > 0 {
		t.Errorf("they write %v", writes)
	}
	a.edit("image", "b")
	rest(t, a, b)
	if got := a.updated(); !strings.HasPrefix(got, "True") {
		t.Error(got)
	}
}

// TestContestedStatus: what both hooks want to be theirs is written once a minute.
func TestContestedStatus(t *testing.T) {
	a, b := sharedBy(t, catSpec, configSpec)
	a.hook = func(q *hook.Question) string {
		return strings.Replace(wantsPods(q), `"wants"`, `"phase":"a","wants"`, 1)
	}
	b.hook = func(q *hook.Question) string {
		return strings.Replace(wantsConfigs(q), `"configured"`, `"phase":"b","configured"`, 1)
	}
	passesOfBoth := func(n int) {
		for range n {
			for _, p := range []*passes{a, b} {
				p.run(1)
			}
			a.makeReady()
		}
	}
	passesOfBoth(10)
	a.Forget()
	passesOfBoth(30) // two minutes
	if n := len(a.Calls("patch status")); n == 0 || n > 6 {
		t.Errorf("%d writes in two minutes", n)
	}
}

// TestControllersThatCannotShare: the older one goes on, the younger one does nothing, and both are told.
func TestControllersThatCannotShare(t *testing.T) {
	for name, c := range map[string]struct{ second, says string }{
		"one kind of children":   {catSpec, "both declare pods as children"},
		"other field paths":      {strings.Replace(configSpec, "spec.image", "spec", 1), "differ in generateSelector or revisionHistory.fieldPaths"},
		"other selectors":        {configSpec + "\ngenerateSelector: true", "differ in generateSelector"},
		"other labels of parent": {strings.Replace(catSpec, "resource: cats\n", "resource: cats\n  labelSelector: {matchLabels: {of: b}}\n", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := sharedBy(t, catSpec, c.second)
			_, err := b.pass()
			if c.says == "" {
				a.settle()
				if err != nil || !a.all("a") || len(a.r.memories.of("tom-uid").sharers) > 0 {
					t.Errorf("%v, pods %s, shared with %v", err, a.images(), a.r.memories.of("tom-uid").sharers)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %q", err, c.says)
			}
			if got := a.updated(); !strings.HasPrefix(got, "False ControllersOverlap: b: CompositeControllers b and a ") {
				t.Error(got)
			}
			a.settle()
			_, _ = b.pass()
			if !a.all("a") || a.configs() != "" || !strings.HasPrefix(a.updated(), "False ControllersOverlap: b: ") {
				t.Errorf("pods %s, ConfigMaps %q, %s", a.images(), a.configs(), a.updated())
			}
			a.Forget()
			_, err = a.pass()
			must(t, err)
			_, _ = b.pass()
			if writes := a.Writes(); len(writes) > 0 {
				t.Errorf("at rest they write %v", writes)
			}
			if got := a.events.Events(controllersOverlap); len(got) != 2 {
				t.Errorf("events %q, want one for each controller", got)
			}
			if err := b.r.alone(t.Context(), b.r.gatherer.others); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is built: %v", err)
			}
			must(t, a.r.alone(t.Context(), a.r.gatherer.others))
		})
	}
}

// TestForeignChildrenKeepARevision: what another controller holds at it is kept, and so is the revision.
func TestForeignChildrenKeepARevision(t *testing.T) {
	p := newPasses(t, strings.Replace(catSpec, "[spec.image]}", "[spec.image], limit: 0}", 1))
	p.settle()
	a := p.revisionOf("a")
	a.Children = append(a.Children, v1alpha1.ControllerRevisionChildren{Kind: "Service", Names: []string{"tom"}})
	must(t, p.Raw.Update(t.Context(), a))
	p.edit("image", "b")
	p.settle()
	if got := strings.Join(p.revisions(), " "); got != "1:a:1 2:b:3" {
		t.Errorf("revisions %s", got)
	}
}
