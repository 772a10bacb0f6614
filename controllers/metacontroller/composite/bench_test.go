package composite

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file measures the pure plan, on its own: not what it takes to see whether a child is what is wanted, nor
// requests.

// BenchmarkPlan plans one pass of a parent that is at rest, of one in the middle of a rollout, and of one whose
// children are all still to come. Its cost is to grow with the children, and not with their square.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for name, prepare := range map[string]func(*world){
			"rest":    func(*world) {},
			"rollout": func(w *world) { halfway(w, n) },
			"create":  func(w *world) { clear(w.children) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				w := newWorld(b, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, n)
				prepare(w)
				f := w.facts()
				f.same = func(observed, desired *unstructured.Unstructured) bool { return image(observed) == image(desired) }
				b.ReportAllocs()
				for b.Loop() {
					if _, err := makePlan(f); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/child")
			})
		}
	}
}

// halfway makes the first half of the children what revision b wants, and gives the others to a.
func halfway(w *world, n int) {
	for _, name := range w.order {
		w.belongsTo[key(name)] = "a"
	}
	w.edit("b")
	for _, name := range w.order[:n/2] {
		w.belongsTo[key(name)] = "b"
		w.children[key(name)] = readied(w.wanted("b").objects[key(name)], w.now)
	}
}
