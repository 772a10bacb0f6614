package composite

// A world of children in which passes are played: what a plan says is done, children that are going go, and new ones
// get ready. It keeps no time but the tick.

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/readiness"
)

var (
	podKind = schema.GroupKind{Kind: "Pod"}
	start   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	yes     = "True"
)

// world is one parent whose hook wants a pod for each name, with the parent's image.
type world struct {
	t        testing.TB
	strategy strategy
	// images are those of the revisions, by name: a, b, c. order is the names in the hook's order.
	images map[string]string
	newest string
	order  []string
	// fixed is a part of what the hook answers that no revision covers.
	fixed     string
	belongsTo map[metacontroller.Child]string
	children  map[metacontroller.Child]*unstructured.Unstructured
	now       time.Time
	// lost are revisions that nothing can be made from.
	lost map[string]string
	// broken are images that never get ready.
	broken map[string]bool
	// changed is what is remembered of changes in place.
	changed changes
	// low is the least number of children that ever served.
	low  int
	last *plan
}

func newWorld(t testing.TB, s strategy, n int) *world {
	t.Helper()
	w := &world{
		t: t, strategy: s, images: map[string]string{}, belongsTo: map[metacontroller.Child]string{}, children: map[metacontroller.Child]*unstructured.Unstructured{},
		now: start, broken: map[string]bool{}, lost: map[string]string{}, changed: changes{},
	}
	if w.strategy.ready.Checks == nil {
		w.strategy.ready.Checks = []readiness.Check{{Type: "Ready", Status: &yes}}
	}
	w.scale(n)
	w.edit("a")
	w.settle()
	w.low = n
	return w
}

func (w *world) scale(n int) {
	w.order = nil
	for i := range n {
		w.order = append(w.order, fmt.Sprintf("x-%d", i))
	}
}

// edit changes the parent to an image; the revision has its name.
func (w *world) edit(image string) { w.newest, w.images[image] = image, image }

func key(name string) metacontroller.Child {
	return metacontroller.Child{GroupKind: podKind, Name: name}
}

func (w *world) wanted(revision string) wanted {
	out := wanted{objects: map[metacontroller.Child]*unstructured.Unstructured{}}
	for _, name := range w.order {
		out.order = append(out.order, key(name))
		out.objects[key(name)] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"image": w.images[revision], "fixed": w.fixed},
		}}
	}
	return out
}

func (w *world) facts() facts {
	f := facts{
		newest: w.newest, answers: map[string]wanted{w.newest: w.wanted(w.newest)}, storedIn: maps.Clone(w.belongsTo),
		observed: maps.Clone(w.children), strategies: map[schema.GroupKind]strategy{podKind: w.strategy}, now: w.now, changed: w.changed,
		lost: w.lost,
		same: func(observed, desired *unstructured.Unstructured) bool {
			return reflect.DeepEqual(observed.Object["spec"], desired.Object["spec"])
		},
	}
	for _, revision := range w.belongsTo {
		if _, lost := w.lost[revision]; !lost && revision != "" {
			f.answers[revision] = w.wanted(revision)
		}
	}
	return f
}

// pass plans once, and does what the plan says.
func (w *world) pass() *plan {
	w.t.Helper()
	p, err := makePlan(w.facts())
	if err != nil {
		w.t.Fatal(err)
	}
	w.last, w.belongsTo = p, p.belongsTo
	p.note(w.changed, w.now)
	for _, c := range p.creates {
		child := c.object.DeepCopy()
		child.SetCreationTimestamp(metav1.NewTime(w.now))
		w.children[c.key] = child
	}
	for _, u := range p.updates {
		child := u.object.DeepCopy()
		child.SetCreationTimestamp(u.observed.GetCreationTimestamp())
		w.children[u.key] = child
	}
	for _, d := range p.deletes {
		child := d.observed.DeepCopy()
		child.SetDeletionTimestamp(&metav1.Time{Time: w.now})
		w.children[d.key] = child
	}
	w.low = min(w.low, w.serving())
	return p
}

// tick lets children that are going go, and those that are there get ready.
func (w *world) tick() {
	w.now = w.now.Add(time.Second)
	for k, child := range w.children {
		if child.GetDeletionTimestamp() != nil {
			delete(w.children, k)
			continue
		}
		if !ready(child) && !w.broken[image(child)] {
			w.children[k] = readied(child, w.now)
		}
	}
}

func readied(child *unstructured.Unstructured, at time.Time) *unstructured.Unstructured {
	child = child.DeepCopy()
	child.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "lastTransitionTime": at.Format(time.RFC3339),
	}}}
	return child
}

func ready(child *unstructured.Unstructured) bool { return child.Object["status"] != nil }

func image(child *unstructured.Unstructured) string {
	s, _, _ := unstructured.NestedString(child.Object, "spec", "image")
	return s
}

// serving counts the children that are wanted and serve.
func (w *world) serving() int {
	n := 0
	for _, name := range w.order {
		if child := w.children[key(name)]; child != nil && child.GetDeletionTimestamp() == nil && ready(child) {
			n++
		}
	}
	return n
}

// settle makes passes until one has nothing to do and nothing changes, and returns how many it took.
func (w *world) settle() int {
	w.t.Helper()
	for n := range 500 {
		before := w.String()
		p := w.pass()
		w.tick()
		if w.String() == before && len(p.creates)+len(p.updates)+len(p.deletes) == 0 {
			return n
		}
	}
	w.t.Fatalf("it does not come to rest: %s", w)
	return 0
}

// String is a line: x-0:a+ is a child from image a that is ready, and - one that is going.
func (w *world) String() string {
	keys := slices.SortedFunc(maps.Keys(w.children), metacontroller.Child.Compare)
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		child, mark := w.children[k], ""
		switch {
		case child.GetDeletionTimestamp() != nil:
			mark = "-"
		case ready(child):
			mark = "+"
		}
		out = append(out, k.Name+":"+image(child)+mark)
	}
	return strings.Join(out, " ")
}

// are compares the images of the children that serve, in the order of their names.
func (w *world) are(images string) {
	w.t.Helper()
	var got strings.Builder
	for _, name := range w.order {
		if child := w.children[key(name)]; child != nil && ready(child) {
			got.WriteString(image(child))
		}
	}
	if got.String() != images {
		w.t.Errorf("the children are %s, want images %s", w, images)
	}
}
