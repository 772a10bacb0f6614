package related

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

var (
	configMapResource = watching.Resource{Kind: configMaps, Resource: configMaps.GroupVersion().WithResource("configmaps"), Namespaced: true}
	nodeResource      = watching.Resource{Kind: nodeKind, Resource: nodeKind.GroupVersion().WithResource("nodes")}
)

func drawSelector(t *rapid.T, name string) *metav1.LabelSelector {
	value := rapid.SampledFrom([]string{"1", "2"})
	switch rapid.IntRange(0, 6).Draw(t, name) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"a": value.Draw(t, "a"), "b": value.Draw(t, "b")}}
	case 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"a": value.Draw(t, "a")}}
	case 3:
		operator := rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn"}).Draw(t, "operator")
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: operator, Values: []string{"1", "2"}}}}
	case 4:
		operator := rapid.SampledFrom([]metav1.LabelSelectorOperator{"Exists", "DoesNotExist"}).Draw(t, "operator")
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: operator}}}
	default:
		return nil
	}
}

func drawLabels(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"1", "2", "3"}), 0, 2).Draw(t, "labels")
}

func drawWish(t *rapid.T, parent types.NamespacedName) *wish {
	r := hook.Rule{APIVersion: "v1", Resource: "x", Namespace: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "namespace")}
	if rapid.Bool().Draw(t, "by names") {
		r.Names = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 3).Draw(t, "names")
	} else {
		r.LabelSelector = drawSelector(t, "labels")
		if r.Namespace == "" {
			r.NamespaceSelector = drawSelector(t, "namespaces")
		}
	}
	confined := rapid.Bool().Draw(t, "confined") && r.NamespaceSelector == nil && r.Namespace == ""
	checked, err := checkRule(r, parent.Namespace, confined)
	if err != nil {
		t.Fatal(err)
	}
	return &wish{rule: checked, of: rapid.SampledFrom([]watching.Resource{configMapResource, nodeResource}).Draw(t, "kind"), parent: parent}
}

// What is found where it was filed is what trying every rule finds.
func TestInterestsFindWhatEveryRuleTriedFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, filed := newInterests(), map[string][]*wish{}
		key := func(uid string) types.NamespacedName { return types.NamespacedName{Namespace: "one", Name: uid} }
		around := func(namespace string) (labels.Set, bool) {
			set, known := map[string]labels.Set{"one": {"a": "1"}, "two": {"b": "2"}}[namespace]
			return set, known
		}
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			uid := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "parent")
			if rapid.IntRange(0, 4).Draw(t, "gone") == 0 {
				i.forget(types.UID(uid))
				delete(filed, uid)
				continue
			}
			filed[uid] = nil
			for range rapid.IntRange(0, 3).Draw(t, "rules") {
				filed[uid] = append(filed[uid], drawWish(t, key(uid)))
			}
			i.file(types.UID(uid), key(uid), "", &asked{wishes: filed[uid]})
		}
		o := objectOf(configMaps, rapid.SampledFrom([]string{"one", "two", "unknown"}).Draw(t, "its namespace"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "its name"))
		if rapid.Bool().Draw(t, "a node") {
			o = objectOf(nodeKind, "", o.GetName())
		}
		o.SetLabels(drawLabels(t))
		got, want := map[types.NamespacedName]struct{}{}, map[types.NamespacedName]struct{}{}
		i.wanting(got, o.GroupVersionKind(), o, around)
		for _, wishes := range filed {
			for _, w := range wishes {
				if w.of.Kind == o.GroupVersionKind() && w.selects(o, around) {
					want[w.parent] = struct{}{}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v: %s", o, diff)
		}
		for uid := range maps.Clone(filed) {
			i.forget(types.UID(uid))
		}
		if len(i.parents)+len(i.uids)+len(i.places)+len(i.around) != 0 {
			t.Fatalf("left: %+v", i)
		}
	})
}

// An object among those of many parents is compared with the rules of few.
func TestManyParentsAreNotAllAsked(t *testing.T) {
	i := newInterests()
	for n := range 1000 {
		parent := types.NamespacedName{Namespace: fmt.Sprint("ns", n%10), Name: fmt.Sprint("p", n)}
		own := &metav1.LabelSelector{MatchLabels: map[string]string{"own": parent.Name}}
		var wishes []*wish
		for _, r := range []hook.Rule{{LabelSelector: own}, {Names: []string{parent.Name}}, {Namespace: parent.Namespace, LabelSelector: own}} {
			r.APIVersion, r.Resource = "v1", "configmaps"
			checked, err := checkRule(r, parent.Namespace, false)
			if err != nil {
				t.Fatal(err)
			}
			wishes = append(wishes, &wish{rule: checked, of: configMapResource, parent: parent})
		}
		i.file(types.UID(parent.Name), parent, "", &asked{wishes: wishes})
	}
	for p, wishes := range i.places {
		if len(wishes) > 1 {
			t.Fatalf("%d rules at %+v", len(wishes), p)
		}
	}
	got := map[types.NamespacedName]struct{}{}
	i.wanting(got, configMaps, objectOf(configMaps, "ns7", "p17", "own=p27"), nil)
	want := map[types.NamespacedName]struct{}{{Namespace: "ns7", Name: "p17"}: {}, {Namespace: "ns7", Name: "p27"}: {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkWanting(b *testing.B) {
	i := newInterests()
	for n := range 1000 {
		parent := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("p", n)}
		checked, err := checkRule(hook.Rule{
			APIVersion: "v1", Resource: "configmaps", LabelSelector: selecting("own", parent.Name),
		}, "ns", true)
		if err != nil {
			b.Fatal(err)
		}
		i.file(types.UID(parent.Name), parent, "", &asked{wishes: []*wish{{rule: checked, of: configMapResource, parent: parent}}})
	}
	o := objectOf(configMaps, "ns", "x", "own=p7")
	for b.Loop() {
		i.wanting(map[types.NamespacedName]struct{}{}, configMaps, o, nil)
	}
}
