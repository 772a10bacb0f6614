package related

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// unmarked selects all objects but that of relations.woken.
const unmarked = `"labelSelector":{"matchExpressions":[{"key":"test","operator":"DoesNotExist"}]}`

func isNotSynced(err error) bool { return errors.Is(err, watching.ErrNotSynced) }

func TestRelatedObjects(t *testing.T) {
	for _, c := range []struct{ name, version, rules, want string }{
		{"no rules", "v1", `[]`, ""},
		{"null", "v1", `null`, ""},
		{"v1 means the parent's namespace", "v1", `[{"apiVersion":"v1","resource":"configmaps"}]`, "ConfigMap: team/a team/b"},
		{"v2 means all", "v2", `[{"apiVersion":"v1","resource":"configmaps"}]`, "ConfigMap: other/a team/a team/b"},
		{"one namespace", "v2", `[{"apiVersion":"v1","resource":"configmaps","namespace":"other"}]`, "ConfigMap: other/a"},
		{"names", "v1", `[{"apiVersion":"v1","resource":"configmaps","names":["b","none"]}]`, "ConfigMap: team/b"},
		{"names everywhere", "v2", `[{"apiVersion":"v1","resource":"configmaps","names":["a"]}]`, "ConfigMap: other/a team/a"},
		{"labels", "v2", `[{"apiVersion":"v1","resource":"configmaps","labelSelector":{"matchLabels":{"tier":"web"}}}]`, "ConfigMap: other/a team/b"},
		{"namespaces", "v2", `[{"apiVersion":"v1","resource":"configmaps","namespaceSelector":{"matchLabels":{"env":"test"}}}]`, "ConfigMap: team/a team/b"},
		{
			"namespaces that are not labelled so", "v2",
			`[{"apiVersion":"v1","resource":"configmaps","namespaceSelector":{"matchExpressions":[{"key":"env","operator":"NotIn","values":["test"]}]}}]`,
			"ConfigMap: other/a",
		},
		{"a kind without namespaces", "v1", `[{"apiVersion":"v1","resource":"nodes"}]`, "Node: one two"},
		{"one of them", "v1", `[{"apiVersion":"v1","resource":"nodes","names":["two"]}]`, "Node: two"},
		{
			"one of them, all namespaces that match", "v2",
			`[{"apiVersion":"v1","resource":"nodes","namespaceSelector":{"matchLabels":{"env":"test"}}}]`, "Node:",
		},
		{
			"a kind that is there twice, and one that is empty", "v1",
			`[{"apiVersion":"v1","resource":"configmaps","names":["b"]},{"apiVersion":"v1","resource":"nodes","names":["none"]},{"apiVersion":"v1","resource":"configmaps"}]`,
			"ConfigMap: team/a team/b; Node:",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRelations(t, v1alpha1.HookVersion(c.version))
			r.add(
				objectOf(configMaps, "team", "b", "tier=web"), objectOf(configMaps, "team", "a"), objectOf(configMaps, "other", "a", "tier=web"),
				objectOf(nodeKind, "", "two"), objectOf(nodeKind, "", "one"),
				objectOf(namespaces.Kind, "", "team", "env=test"), objectOf(namespaces.Kind, "", "other"),
			)
			r.asks(parentOf("team", "cat", c.rules), c.want)
			if strings.Contains(c.rules, "namespaceSelector") != strings.Contains(r.watched(), "Namespace") &&
				!strings.Contains(c.rules, "nodes") {
				t.Errorf("watched: %s", r.watched())
			}
		})
	}
	if groups, err := New(&watching.Server{}, nil, v1alpha1.HookVersionV1, watching.Resource{}).Gather(t.Context(), parentOf("team", "cat", "[]")); groups != nil || err != nil {
		t.Error("no hook:", groups, err)
	}
}

// A parent is woken by what it is told of, as it was or as it is, and by nothing else.
func TestRelatedObjectsWakeParents(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV2)
	r.asks(parentOf("team", "by-name", `[{"apiVersion":"v1","resource":"configmaps","namespace":"team","names":["a"]}]`), "ConfigMap:")
	r.asks(parentOf("team", "by-label", `[{"apiVersion":"v1","resource":"configmaps","labelSelector":{"matchLabels":{"tier":"web"}}}]`), "ConfigMap:")
	r.asks(parentOf("team", "by-no-label", `[{"apiVersion":"v1","resource":"configmaps","labelSelector":{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"},{"key":"test","operator":"DoesNotExist"}]}}]`), "ConfigMap:")
	r.asks(parentOf("team", "by-namespace", `[{"apiVersion":"v1","resource":"configmaps","namespace":"other"}]`), "ConfigMap:")
	r.asks(parentOf("team", "by-kind", `[{"apiVersion":"v1","resource":"nodes",`+unmarked+`}]`), "Node:")

	r.add(objectOf(configMaps, "team", "a"))
	r.wakes(configMaps, "by-name by-no-label")
	r.modify(objectOf(configMaps, "team", "a", "tier=web"))
	r.wakes(configMaps, "by-label by-name by-no-label") // the last one because it was selected before
	r.modify(objectOf(configMaps, "team", "a", "tier=db"))
	r.wakes(configMaps, "by-label by-name")
	r.remove(objectOf(configMaps, "team", "a", "tier=db"))
	r.wakes(configMaps, "by-name")
	r.add(objectOf(configMaps, "other", "a", "tier=web"))
	r.wakes(configMaps, "by-label by-namespace")
	r.wakes(configMaps, "")
	r.add(objectOf(nodeKind, "", "one"))
	r.wakes(nodeKind, "by-kind")
}

// Labels of namespaces count when they change, and when a namespace is heard of after what is in it.
func TestNamespacesWakeParents(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV2)
	r.add(objectOf(namespaces.Kind, "", "team", "env=test"), objectOf(configMaps, "late", "a"))
	test := parentOf("team", "test", `[{"apiVersion":"v1","resource":"configmaps","namespaceSelector":{"matchLabels":{"env":"test"}}}]`)
	elsewhere := parentOf("team", "elsewhere", `[{"apiVersion":"v1","resource":"configmaps","namespaceSelector":{"matchExpressions":[{"key":"env","operator":"NotIn","values":["test"]},{"key":"test","operator":"DoesNotExist"}]}}]`)
	none := parentOf("team", "none", `[{"apiVersion":"v1","resource":"configmaps",`+unmarked+`}]`)
	r.asks(test, "ConfigMap:")
	r.asks(elsewhere, "ConfigMap:")
	r.asks(none, "ConfigMap: late/a")

	r.add(objectOf(configMaps, "team", "a"))
	r.wakes(configMaps, "none test")
	r.add(objectOf(namespaces.Kind, "", "late"))
	r.wakes(namespaces.Kind, "elsewhere")
	r.asks(elsewhere, "ConfigMap: late/a")
	r.modify(objectOf(namespaces.Kind, "", "late", "env=test"))
	r.wakes(namespaces.Kind, "elsewhere test")
	r.asks(test, "ConfigMap: late/a team/a")
	r.modify(objectOf(namespaces.Kind, "", "late", "env=test", "a=b"))
	r.wakes(namespaces.Kind, "")
	r.remove(objectOf(namespaces.Kind, "", "late", "env=test", "a=b"))
	r.wakes(namespaces.Kind, "test")
	r.asks(test, "ConfigMap: team/a")
}

func TestRulesChange(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV1)
	one := `[{"apiVersion":"v1","resource":"configmaps","names":["one"]}]`
	two := `[{"apiVersion":"v1","resource":"configmaps","names":["two"]}]`
	a, b := objectOf(configMaps, "team", "one"), objectOf(configMaps, "team", "two")
	change := func() { r.modify(a); r.modify(b) }
	r.add(a, b)
	parent := parentOf("team", "cat", one)
	r.asks(parent, "ConfigMap: team/one")
	r.wakes(configMaps, "")

	parent = parentOf("team", "cat", two)
	r.asks(parent, "ConfigMap: team/two")
	r.modify(a)
	r.wakes(configMaps, "")
	r.modify(b)
	r.wakes(configMaps, "cat")

	// A kind that is not there: what counted before counts on.
	wrong := parentOf("team", "cat", `[{"apiVersion":"x/v1","resource":"dogs"}]`)
	if _, err := r.Gather(t.Context(), wrong); !meta.IsNoMatchError(err) {
		t.Error(err)
	}
	change()
	r.wakes(configMaps, "cat")

	// An older revision that is asked about as well.
	old := parentOf("team", "cat", one)
	both := func() {
		r.asks(parent, "ConfigMap: team/two")
		if got := r.told(&hook.Question{Parent: old, Revision: "r1"}); got != "ConfigMap: team/one" {
			t.Errorf("the older revision is told %q", got)
		}
	}
	both()
	both()
	r.modify(a)
	r.wakes(configMaps, "cat")
	r.asks(parent, "ConfigMap: team/two")
	r.asks(parent, "ConfigMap: team/two")
	r.modify(a)
	r.wakes(configMaps, "")

	// Its successor has its name, and then it is gone.
	next := parentOf("team", "cat", one)
	next.SetUID("next")
	r.asks(next, "ConfigMap: team/one")
	r.modify(b)
	r.wakes(configMaps, "")
	r.Forget("cat")
	r.modify(a)
	r.wakes(configMaps, "cat")
	r.Forget("next")
	change()
	r.wakes(configMaps, "")
	if i := r.interests; len(i.parents)+len(i.uids)+len(i.places)+len(i.around) != 0 {
		t.Errorf("left: %+v", i)
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV1)
	failure := (*hook.Error)(nil)
	_, err := r.Gather(t.Context(), parentOf("team", "cat", `[{"apiVersion":"v1","resource":"configmaps","namespaceSelector":{}}]`))
	if !errors.As(err, &failure) || failure.Reason != hook.Contradictory || failure.Hook != hook.Customize {
		t.Error(err)
	}
	_, err = r.Gather(t.Context(), parentOf("team", "cat", `7`))
	if !errors.As(err, &failure) || failure.Reason != hook.Malformed {
		t.Error(err)
	}

	// A resource that is not served is looked up now and then only, whoever asks for it.
	for i := range 10 {
		_, err = r.Gather(t.Context(), parentOf("team", fmt.Sprint(i), `[{"apiVersion":"x/v1","resource":"dogs"}]`))
		if !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "dogs") {
			t.Error(err)
		}
	}
	if r.lookups.n != 1 {
		t.Errorf("looked up %d times", r.lookups.n)
	}
	r.clock.Step(unserved)
	dogs := corev1.SchemeGroupVersion.WithKind("Dog")
	dogs.Group = "x"
	mapper, _ := r.lookups.RESTMapper.(*meta.DefaultRESTMapper)
	mapper.Add(dogs, meta.RESTScopeNamespace)
	r.asks(parentOf("team", "0", `[{"apiVersion":"x/v1","resource":"dogs"}]`), "Dog:")
}

// A kind that cannot be listed holds up nobody: its parents are told why, and the others are served.
func TestKindsThatCannotBeListed(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV1)
	release := make(chan struct{})
	r.of(nodeKind).listed = release
	r.add(objectOf(nodeKind, "", "one"))
	cat := parentOf("team", "cat", `[{"apiVersion":"v1","resource":"nodes",`+unmarked+`},{"apiVersion":"v1","resource":"configmaps"}]`)
	says := func(soon bool, parts ...string) {
		t.Helper()
		_, err := r.Gather(t.Context(), cat)
		if err == nil || isNotSynced(err) != soon {
			t.Fatalf("soon is not %t: %v", soon, err)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %v", part, err)
			}
		}
	}
	r.asks(parentOf("team", "dog", `[{"apiVersion":"v1","resource":"configmaps"}]`), "ConfigMap:")
	says(true, "nodes")
	r.asks(parentOf("team", "dog", `[{"apiVersion":"v1","resource":"configmaps"}]`), "ConfigMap:")

	r.fail(nodeKind, fmt.Errorf("failed to list: %w", apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no role"))))
	says(false, "nodes is forbidden", "get, list and watch")
	r.fail(nodeKind, apierrors.NewNotFound(corev1.Resource("nodes"), ""))
	says(false, "nodes of v1 is not served any more")
	r.fail(nodeKind, errors.New("connection refused"))
	says(true, "nodes")
	r.clock.Step(listing)
	says(false, "list nodes: connection refused")
	r.fail(nodeKind, nil)
	r.clock.Step(time.Second)
	says(false, "has not listed nodes for 11s")

	// What is listed now wakes nobody: there is no pass that was told that there is nothing.
	close(release)
	for _, err := r.Gather(t.Context(), cat); err != nil; _, err = r.Gather(t.Context(), cat) {
		if !isNotSynced(err) && !strings.Contains(err.Error(), "has not listed") || t.Context().Err() != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	r.asks(parentOf("team", "dog", `[{"apiVersion":"v1","resource":"nodes",`+unmarked+`}]`), "Node: one")
	r.asks(cat, "Node: one; ConfigMap:")
	r.wakes(nodeKind, "")
}

func TestRelatedBeforeItsSource(t *testing.T) {
	r := newRelations(t, v1alpha1.HookVersionV1)
	r.kinds.queue = nil
	if _, err := r.Gather(t.Context(), parentOf("team", "cat", `[{"apiVersion":"v1","resource":"nodes"}]`)); !isNotSynced(err) {
		t.Error(err)
	}
}
