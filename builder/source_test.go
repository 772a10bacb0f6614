package builder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// knowing is a parent whose status names good revisions.
func knowing(good ...types.UID) client.Object {
	known := rollback.Good{}
	for _, uid := range good {
		known = rollback.Good{Last: rollback.Revision{Name: string(uid), UID: uid}, Before: known.Last}
	}
	parent := &unstructured.Unstructured{Object: map[string]any{}}
	if c := known.Condition(metav1.Time{}); c != nil {
		parent.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
		}}}
	}
	return parent
}

// What lost children come back from: one that was complete, then one that others come from; and while nothing can be
// recorded, the newest revision stands for the one that the spec asks for.
func TestWhatLostChildrenComeFrom(t *testing.T) {
	r := reconcilerOf(t, sound())
	for name, c := range map[string]struct {
		update    string
		used      []string
		completed []types.UID
		want      string
	}{
		"the one that others come from":               {"3", []string{"1", "3"}, nil, "1"},
		"the newest of them":                          {"3", []string{"1", "2", "3"}, nil, "2"},
		"one that was complete before one that never": {"3", []string{"1", "2"}, []types.UID{"1"}, "1"},
		"one that was complete, if there is no other": {"3", []string{"3"}, []types.UID{"1", "2"}, "2"},
		"none, if the update revision was complete":   {"3", []string{"3"}, []types.UID{"2", "3"}, ""},
		"nothing is recorded, in a rollout":           {"", []string{"1", "3"}, nil, "1"},
		"nothing is recorded, after a rollout":        {"", []string{"3"}, []types.UID{"1", "3"}, "3"},
		"nothing is recorded, and nothing is there":   {"", nil, nil, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observed{parent: knowing(c.completed...)}
			var children []client.Object
			for _, hash := range c.used {
				children = append(children, at("", "c"+hash, hash))
			}
			o.children = [][]client.Object{children}
			snapshot, err := r.target.Snapshot(shop())
			if err != nil {
				t.Fatal(err)
			}
			recorded := &pass.Recorded{}
			for i, hash := range []string{"1", "2", "3"} {
				e := revision.Revision{UID: types.UID(hash), Name: hash, Hash: hash, Number: int64(i + 1), Snapshot: snapshot}
				recorded.Entries = append(recorded.Entries, e)
				if hash == c.update {
					recorded.Update = &e
				}
			}
			got := ""
			if from := r.olderOf(o, recorded); from != nil {
				got = from.Hash
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// An author is asked for an older revision only where a child is missing, and not again for the same version of the
// parent while there is work to do.
func TestWhenTheAuthorIsAsked(t *testing.T) {
	asked := 0
	c := sound()
	c.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) {
		asked++
		return []client.Object{named("web-0"), named("web-1")}, nil
	}
	r := reconcilerOf(t, c)
	r.Controller = &pass.Controller{Config: pass.Config{Cache: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}}
	parent := shop()
	parent.UID = "shop"
	snapshot, err := r.target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	recorded := &pass.Recorded{Snapshot: snapshot}
	for i, hash := range []string{"1", "2"} {
		recorded.Entries = append(recorded.Entries,
			revision.Revision{UID: types.UID(hash), Name: hash, Hash: hash, Number: int64(i + 1), Snapshot: snapshot})
	}
	recorded.Update = &recorded.Entries[1]
	all := []client.Object{at("", "web-0", "1"), at("", "web-1", "2")}
	for _, step := range []struct {
		what, version string
		children      []client.Object
		want          int
	}{
		{"as it is", "7", all, 1},
		{"the same again", "7", all, 0},
		{"a child is missing", "7", all[:1], 1},
		{"it still is", "7", all[:1], 0},
		{"the parent has changed", "8", all[:1], 2},
		{"and nobody is missing", "9", all, 1},
	} {
		asked, parent.ResourceVersion = 0, step.version
		o := &observed{parent: parent, children: [][]client.Object{step.children, nil}}
		if o.wanted, err = r.answers.ask(parent, source{}, func() ([]want, error) { return r.wantedOf(parent) }); err != nil {
			t.Fatal(err)
		}
		f, err := r.facts(t.Context(), o, recorded)
		if err != nil || asked != 2*step.want || len(f.places) != 2 || f.older != "1" {
			t.Errorf("%s: asked %d times, want twice %d; %d places, older %q: %v", step.what, asked, step.want, len(f.places), f.older, err)
		}
	}
	if r.answers.forget(parent.UID); len(r.answers.of) > 0 {
		t.Error("something is remembered")
	}
}

// A default that a release has added is the author's to rely on: children of the update revision, which is equal to the
// parent and was recorded without it, are made from the parent as it is.
func TestChildrenOfTheParentAsItIs(t *testing.T) {
	c := sound()
	c.Children = func(set *appsv1.ReplicaSet) ([]client.Object, error) {
		if set.Spec.Template.Spec.DNSPolicy == "" {
			return nil, errors.New("no DNS policy, which the schema has a default for")
		}
		return []client.Object{named("web-0")}, nil
	}
	r := reconcilerOf(t, c)
	r.Controller = &pass.Controller{Config: pass.Config{Cache: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}}
	parent := shop()
	without, err := r.target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	parent.Spec.Template.Spec.DNSPolicy = corev1.DNSDefault
	with, err := r.target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	update := revision.Revision{UID: "1", Name: "1", Hash: "1", Number: 1, Snapshot: without}
	recorded := &pass.Recorded{Snapshot: with, Update: &update, Entries: []revision.Revision{update}}
	o := &observed{parent: parent, children: [][]client.Object{nil, nil}}
	if o.wanted, err = r.wantedOf(parent); err != nil {
		t.Fatal(err)
	}
	f, err := r.facts(t.Context(), o, recorded)
	if err != nil || len(f.places) != 1 || f.update != "1" {
		t.Errorf("%+v, %v", f, err)
	}
}

// An error of the author's function, and a panic, are told to whoever looks at the parent, and tried again.
func TestTheAuthorsFunctionFails(t *testing.T) {
	for name, children := range map[string]func(*appsv1.ReplicaSet) ([]client.Object, error){
		"an error": func(*appsv1.ReplicaSet) ([]client.Object, error) { return nil, errors.New("not today") },
		"a panic":  func(*appsv1.ReplicaSet) ([]client.Object, error) { panic("not today") },
	} {
		c := sound()
		c.Children = children
		_, err := reconcilerOf(t, c).wantedOf(shop())
		refused, ok := errors.AsType[*pass.RefusedError](err)
		if !ok || refused.Reason != "ChildrenFailed" || !refused.Retry || !strings.Contains(err.Error(), "not today") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an author's function makes of the time or of chance would be written in every pass: it is refused, with the
// field.
func TestAFunctionThatIsNone(t *testing.T) {
	n := 0
	again := func() string { n++; return fmt.Sprint("x", n) }
	service := func(port int32, annotations map[string]string) client.Object {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}},
		}
	}
	for name, c := range map[string]struct {
		children func() []client.Object
		want     string
	}{
		"a name":       {func() []client.Object { return []client.Object{service(1, nil), named(again())} }, "metadata.name of child 1"},
		"a list":       {func() []client.Object { n++; return []client.Object{service(int32(n), nil)} }, "spec.ports of child 0"},
		"the time":     {func() []client.Object { return []client.Object{service(1, map[string]string{"now": again()})} }, "metadata.annotations.now"},
		"an addition":  {func() []client.Object { return []client.Object{service(1, map[string]string{again(): ""})} }, "metadata.annotations"},
		"their number": {func() []client.Object { n++; return make([]client.Object, n) }, "number of children"},
	} {
		a := sound()
		a.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) { return c.children(), nil }
		_, err := reconcilerOf(t, a).wantedOf(shop())
		refused, ok := errors.AsType[*pass.RefusedError](err)
		if !ok || refused.Reason != "NotDeterministic" || refused.Retry || !strings.Contains(err.Error(), "another "+c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What pods of an older revision mount stays as long as one of them is at its place.
func TestWhatHeldChildrenNeedStays(t *testing.T) {
	c := sound()
	c.Children = func(set *appsv1.ReplicaSet) ([]client.Object, error) {
		if set.Spec.Template.Labels["content"] == "broken" {
			return nil, errors.New("not for this one")
		}
		config := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "config-" + set.Spec.Template.Labels["content"]}}
		return []client.Object{config, named("web-0"), named("web-1")}, nil
	}
	r := reconcilerOf(t, c)
	r.Controller = &pass.Controller{Config: pass.Config{Cache: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}}
	of := func(content string) *appsv1.ReplicaSet {
		parent := shop()
		parent.UID = "shop"
		parent.Spec.Template.Labels = map[string]string{"content": content}
		return parent
	}
	recorded := &pass.Recorded{}
	for i, content := range []string{"old", "new", "broken"} {
		snapshot, err := r.target.Snapshot(of(content))
		if err != nil {
			t.Fatal(err)
		}
		recorded.Entries = append(recorded.Entries, revision.Revision{
			UID: types.UID(content), Name: content, Hash: content, Number: int64(i + 1), Snapshot: snapshot,
		})
	}
	recorded.Update, recorded.Snapshot = &recorded.Entries[1], recorded.Entries[1].Snapshot
	for name, c := range map[string]struct {
		pods []client.Object
		want []string
	}{
		"one is held":              {[]client.Object{at("", "web-0", "old"), at("", "web-1", "new")}, []string{"config-other"}},
		"all are updated":          {[]client.Object{at("", "web-0", "new"), at("", "web-1", "new")}, []string{"config-old", "config-other"}},
		"the last is on its way":   {[]client.Object{terminating(at("", "web-0", "old")), at("", "web-1", "new")}, []string{"config-old", "config-other"}},
		"one is scaled away":       {[]client.Object{at("", "web-0", "old"), at("", "web-1", "new"), at("", "web-2", "old")}, []string{"config-other", "web-2"}},
		"what is gone wanted what": {[]client.Object{at("", "web-0", "gone"), at("", "web-1", "new")}, nil},
		"nobody can say":           {[]client.Object{at("", "web-0", "broken"), at("", "web-1", "new")}, nil},
	} {
		parent := of("new")
		var services []client.Object
		for _, name := range []string{"config-old", "config-new", "config-other"} {
			services = append(services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
		}
		o := &observed{parent: parent, children: [][]client.Object{c.pods, services}}
		var err error
		if o.wanted, err = r.wantedOf(parent); err != nil {
			t.Fatal(err)
		}
		f, err := r.facts(t.Context(), o, recorded)
		var got []string
		for _, s := range f.surplus {
			got = append(got, s.object.GetName())
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v goes, want %v: %v", name, got, c.want, err)
		}
	}
}
