package composite

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/rollout"
)

// TestUntoldStays: a child about which nobody can tell is not touched, is not counted as updated, keeps its revision,
// and is waited for by name. The others go on, unless they are rolled out in an order: then those after it wait.
func TestUntoldStays(t *testing.T) {
	refused := errors.New("the API server does not tell")
	for _, method := range []v1alpha1.ChildUpdateMethod{
		v1alpha1.ChildUpdateRecreate, v1alpha1.ChildUpdateInPlace, v1alpha1.ChildUpdateOnDelete,
		v1alpha1.ChildUpdateRollingRecreate, v1alpha1.ChildUpdateRollingInPlace,
	} {
		t.Run(string(method), func(t *testing.T) {
			w := newWorld(t, strategy{method: method}, 3)
			w.edit("b")
			f := w.facts()
			held := w.children[key("x-0")]
			told := f.same
			f.same = func(observed, desired *unstructured.Unstructured) bool {
				return observed != held && told(observed, desired)
			}
			f.compareErr = func(observed, _ *unstructured.Unstructured) error {
				if observed == held {
					return refused
				}
				return nil
			}
			p, err := makePlan(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range p.updates {
				if u.observed == held {
					t.Error("it is changed")
				}
			}
			for _, d := range p.deletes {
				if d.observed == held {
					t.Error("it is deleted")
				}
			}
			if len(p.compareErrs) != 1 || !errors.Is(p.compareErrs[0], refused) || p.complete() || p.updated != 0 {
				t.Errorf("compareErrs %v, %d updated", p.compareErrs, p.updated)
			}
			if waits := slices.ContainsFunc(p.waits, func(w rollout.Wait) bool { return w.Unit == "Pod x-0" && w.Reason == refused.Error() }); !waits {
				t.Errorf("waits %v", p.waits)
			}
			if method.Rolling() && p.belongsTo[key("x-0")] != "a" {
				t.Errorf("it belongs to %s", p.belongsTo[key("x-0")])
			}
			atOnce := method == v1alpha1.ChildUpdateRecreate || method == v1alpha1.ChildUpdateInPlace
			if got := len(p.updates) + len(p.deletes); atOnce != (got == 2) {
				t.Errorf("%d others go on", got)
			}
		})
	}
}
