package composite

// What several controllers of one parent say of it together.

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// vote is what a controller says of tom, empty if nothing.
func (p *passes) vote(name string) string {
	conditions, _, _ := unstructured.NestedSlice(p.tom().Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); typeOf(c) == voteType+name {
			return stringOf(m, "status")
		}
	}
	return ""
}

// TestUpdatedMeansAllControllers: a parent is updated when each of its controllers has said so in this generation, also
// one that does not roll its children.
func TestUpdatedMeansAllControllers(t *testing.T) {
	for name, second := range map[string]string{
		"both roll": configSpec, "one rolls": strings.Replace(configSpec, "RollingInPlace", "InPlace", 1),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := sharedBy(t, catSpec, second)
			const silent = "False RolloutWaiting: b: this CompositeController has not said yet whether its children are updated"
			for _, image := range []string{"a", "b"} {
				a.edit("image", image)
				for range 12 {
					_, err := a.pass()
					must(t, err)
					a.makeReady()
				}
				if !a.all(image) || a.vote("a") != "True" || a.updated() != silent {
					t.Errorf("pods %s, a says %q, and the parent %q", a.images(), a.vote("a"), a.updated())
				}
				rest(t, a, b)
				if a.configs() != image+" "+image || a.vote("b") != "True" || !strings.HasPrefix(a.updated(), "True OnLatestRevision: latest ControllerRevision: cats.") {
					t.Errorf("ConfigMaps %s, b says %q, and the parent %q", a.configs(), a.vote("b"), a.updated())
				}
			}
			a.edit("image", "broken")
			for range 6 {
				for _, p := range []*passes{a, b} {
					p.run(1)
				}
				a.makeReady()
			}
			if got := a.updated(); !strings.HasPrefix(got, "False RolloutWaiting: a: ") || b.vote("b") != "True" {
				t.Errorf("b says %q, and the parent %q", b.vote("b"), got)
			}
			a.r.gatherer.others, b.due = nil, true // the other one is gone
			if _, err := a.pass(); err != nil || a.vote("a")+a.vote("b") != "" || strings.Contains(a.updated(), " a: ") {
				t.Errorf("%v, a says %q, b %q, and the parent %q", err, a.vote("a"), a.vote("b"), a.updated())
			}
		})
	}
}

// TestAnErrorIsSaidAndTakenBack where nobody rolls anything: the parent then has no condition Updated.
func TestAnErrorIsSaidAndTakenBack(t *testing.T) {
	still := func(spec string) string {
		spec = strings.NewReplacer("RollingRecreate", "Recreate", "RollingInPlace", "InPlace").Replace(spec)
		return strings.Replace(spec, "  revisionHistory: {fieldPaths: [spec.image]}\n", "", 1)
	}
	a, b := sharedBy(t, still(catSpec), still(configSpec))
	rest(t, a, b)
	good := b.hook
	b.hook = func(*hook.Question) string { return "{" }
	a.edit("replicas", int64(2))
	if _, err := b.pass(); err == nil || !strings.HasPrefix(a.updated(), "False ") || !strings.Contains(a.updated(), ": b: ") {
		t.Fatalf("%v, and it says %q", err, a.updated())
	}
	b.hook = good
	rest(t, a, b)
	if a.vote("b") != "" || a.updated() != "" {
		t.Errorf("b says %q, and the parent %q", a.vote("b"), a.updated())
	}
}

// TestVotesWakeNobody: what one of several controllers says of its own children does not wake the others; all else
// does.
func TestVotesWakeNobody(t *testing.T) {
	parent := func(a, b, updated string, more ...string) *unstructured.Unstructured {
		conditions := []any{}
		for _, c := range [][2]string{{voteType + "a", a}, {voteType + "b", b}, {conditionUpdated, updated}} {
			conditions = append(conditions, map[string]any{"type": c[0], "status": "False", "message": c[1]})
		}
		status := map[string]any{"conditions": conditions, "observedGeneration": int64(1)}
		for _, m := range more {
			status[m] = "x"
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"name": "tom", "uid": "u", "resourceVersion": a + b + updated,
		}, "status": status}}
	}
	edited := parent("1", "2", "a: 1")
	edited.SetGeneration(7)
	for name, c := range map[string]struct {
		after *unstructured.Unstructured
		quiet bool
	}{
		"another one fails in another way":   {parent("1", "2", "a: 1"), true},
		"its own condition":                  {parent("2", "1", "a: 1"), false},
		"nothing but the condition Updated":  {parent("1", "1", "spoilt"), false},
		"something that a hook says as well": {parent("1", "2", "a: 1", "phase"), false},
		"an edit":                            {edited, false},
		"a resync":                           {parent("1", "1", "a: 1"), false},
	} {
		if got := othersVoted("a", event.UpdateEvent{ObjectOld: parent("1", "1", "a: 1"), ObjectNew: c.after}); got != c.quiet {
			t.Errorf("%s: %t", name, got)
		}
	}
}
