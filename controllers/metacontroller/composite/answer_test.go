package composite

import (
	"runtime"
	"testing"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// TestAnswersAreKeptByTheMemoryOnly: what is remembered of a parent names its children, and does not hold their
// objects. The memory of answers is bounded, and the number of parents is not.
func TestAnswersAreKeptByTheMemoryOnly(t *testing.T) {
	for _, generate := range []bool{false, true} {
		r := &asker{settings: &settings{generate: generate}}
		parent := &unstructured.Unstructured{Object: map[string]any{}}
		parent.SetNamespace("ns")
		parent.SetUID("uid-of-parent")
		o := &gathered{parent: parent, selector: labels.Everything(), memory: &memory{answers: answers{wanted: map[string]wanted{}}}}
		large := make([]any, 1000)
		held := weak.Make(&large[0])
		answer := &hook.Answer{Children: []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "ns"}, "data": large,
		}}}}
		first, err := r.prepare(o, "", answer)
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.prepare(o, "", answer)
		key := first.order[0]
		if err != nil || first.objects[key] != again.objects[key] {
			t.Error("it is prepared anew", err)
		}
		if generate != (first.objects[key].GetLabels()[metacontroller.UIDLabel] == "uid-of-parent") || answer.Children[0].GetLabels() != nil {
			t.Errorf("generate is %v, labels are %v, those of the answer %v", generate, first.objects[key].GetLabels(), answer.Children[0].GetLabels())
		}
		if _, named := o.memory.answers.wanted[""].objects[key]; !named {
			t.Error("which children are wanted is forgotten")
		}
		first, again, answer = wanted{}, wanted{}, nil //nolint:wastedassign // nothing else holds it then
		runtime.GC()
		if held.Value() != nil {
			t.Error("the memory of the answers has let go of it, and it is still there")
		}
		runtime.KeepAlive(o)
	}
}
