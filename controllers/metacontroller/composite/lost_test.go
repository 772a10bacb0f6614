package composite

// What becomes of children whose revision is lost: somebody deletes it, takes its labels away, or it cannot be read.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// TestHeldChildrenStayWhenTheirRevisionIsLost: nobody replaces them, and one that is lost is not made from another
// revision.
func TestHeldChildrenStayWhenTheirRevisionIsLost(t *testing.T) {
	for name, s := range map[string]strategy{"partition": {partition: 2}, "paused": {paused: true}} {
		for how, lose := range map[string]func(w *world){
			"gone, and the newest knows": func(w *world) { w.lost["a"] = "which is gone" },
			"gone, and nobody knows": func(w *world) {
				for k, revision := range w.belongsTo {
					if revision == "a" {
						delete(w.belongsTo, k)
					}
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				s.method = v1alpha1.ChildUpdateRollingRecreate
				w := newWorld(t, strategy{method: s.method}, 4)
				w.strategy.partition, w.strategy.paused = s.partition, s.paused
				w.edit("b")
				w.settle()
				images := strings.ReplaceAll("bbaa", "b", map[bool]string{true: "a", false: "b"}[s.paused])
				w.are(images)
				lose(w)
				w.settle()
				w.are(images)
				status, reason, message := w.last.condition("b")
				if status != "False" || reason != revisionLost || !strings.Contains(message, "partition") {
					t.Error(status, reason, message)
				}
				delete(w.children, key("x-3"))
				w.settle()
				w.are(images[:3])
				if _, _, message := w.last.condition("b"); !strings.Contains(message, "Pod x-3 is missing and is not made from another revision") {
					t.Error(message)
				}
				w.edit("c") // the missing one takes no part of the budget
				w.settle()
				w.are(strings.ReplaceAll(images[:3], "b", "c"))
				w.strategy.partition, w.strategy.paused = 0, false
				w.settle()
				w.are("cccc")
				if w.low < 2 || len(w.last.stranded) > 0 {
					t.Errorf("%d served at a time, and %v are stranded", w.low, w.last.stranded)
				}
			})
		}
	}
}

// TestNewChildrenAreNotLost: those of a larger parent that come into the held range are made from the newest revision.
func TestNewChildrenAreNotLost(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate, partition: 2}, 3)
	w.edit("b")
	w.settle()
	w.are("baa")
	w.scale(4)
	w.settle()
	w.are("bbab") // x-1 is not among the last two any more
}

// TestNotYetReachedWithoutARevision: children that the rollout has not reached wait for their turn and their budget,
// and one that is not ready is not replaced while the newest revision does not work.
func TestNotYetReachedWithoutARevision(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 4)
	w.broken["b"] = true
	w.edit("b")
	w.settle()
	for _, name := range w.order[1:] {
		delete(w.belongsTo, key(name))
	}
	delete(w.children[key("x-3")].Object, "status")
	for range 3 {
		w.pass()
	}
	if got := w.String(); got != "x-0:b x-1:a+ x-2:a+ x-3:a" {
		t.Error(got)
	}
	w.edit("c")
	w.settle()
	w.are("cccc")
}

// partitioned is a parent whose image went from a to b, with two of three pods held at a.
func partitioned(t *testing.T) *passes {
	t.Helper()
	p := newPasses(t, strings.Replace(catSpec, "    statusChecks", "    partition: 2\n    statusChecks", 1))
	p.settle()
	p.edit("image", "b")
	p.settle()
	if got := p.images(); got != "a a b" {
		t.Fatal(got)
	}
	return p
}

// revisionOf returns the revision of an image.
func (p *passes) revisionOf(image string) *v1alpha1.ControllerRevision {
	p.t.Helper()
	list := &v1alpha1.ControllerRevisionList{}
	must(p.t, p.Raw.List(context.Background(), list))
	for i := range list.Items {
		if strings.Contains(string(list.Items[i].ParentPatch.Raw), `"`+image+`"`) {
			return &list.Items[i]
		}
	}
	p.t.Fatalf("there is no revision of %s", image)
	return nil
}

// TestARevisionIsLostForGood: whatever a person does to it, pods stay, also after the manager was started again; the
// condition and one event say so, and then nothing is written. It goes on as the message says.
func TestARevisionIsLostForGood(t *testing.T) {
	for name, lose := range map[string]func(p *passes, r *v1alpha1.ControllerRevision) error{
		"deleted": func(p *passes, r *v1alpha1.ControllerRevision) error { return p.Raw.Delete(p.t.Context(), r) },
		"without labels": func(p *passes, r *v1alpha1.ControllerRevision) error {
			r.Labels = nil
			return p.Raw.Update(p.t.Context(), r)
		},
		"unreadable": func(p *passes, r *v1alpha1.ControllerRevision) error {
			r.ParentPatch.Raw = []byte(`{"spec":"oops"}`)
			return p.Raw.Update(p.t.Context(), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := partitioned(t)
			must(t, lose(p, p.revisionOf("a")))
			p.settle()
			p.start(p.r.settings)
			p.settle()
			if got := p.images(); got != "a a b" {
				t.Fatalf("there are %s", got)
			}
			if got := p.updated(); !strings.HasPrefix(got, "False RevisionLost: Pod tom-1 and 1 more are held by partition or paused, at ControllerRevision cats.") {
				t.Error(got)
			}
			p.Forget()
			p.run(1)
			if calls := p.Calls(); len(calls) > 0 {
				t.Errorf("at rest it makes requests: %v", calls)
			}
			if got := p.events.Events(revisionLost); len(got) != 2 { // one for each process
				t.Errorf("events %q", got)
			}

			p.lose()
			p.start(p.r.settings)
			p.run(3)
			if got := p.images(); got != "a b" {
				t.Errorf("it is made from another revision: %s", got)
			}
			if got := p.updated(); !strings.Contains(got, "Pod tom-0 is missing and is not made from another revision") {
				t.Error(got)
			}

			s := p.r.settings
			for kind, strategy := range s.strategies {
				strategy.partition = 0
				s.strategies[kind] = strategy
			}
			p.settle()
			if !p.all("b") || !strings.HasPrefix(p.updated(), "True") {
				t.Errorf("there are %s, and %s", p.images(), p.updated())
			}
			if r := p.revisionOf("b"); r.Annotations[metacontroller.HeldAnnotation] != "" {
				t.Errorf("it still says %s", r.Annotations[metacontroller.HeldAnnotation])
			}
		})
	}
}

// TestALostRevisionIsToldBesideWhatElseIsWrong: one child cannot be made because its name is taken, and that hides
// nothing.
func TestALostRevisionIsToldBesideWhatElseIsWrong(t *testing.T) {
	p := partitioned(t)
	must(t, p.Raw.Delete(t.Context(), p.revisionOf("a")))
	for _, gone := range p.pods() {
		if gone.GetName() != "tom-1" {
			must(t, p.Raw.Delete(t.Context(), &gone))
		}
	}
	stranger := fakeserver.Of(pods.Kind)
	stranger.SetNamespace("default")
	stranger.SetName("tom-2")
	must(t, unstructured.SetNestedSlice(stranger.Object, []any{map[string]any{"name": "main", "image": "foreign"}}, "spec", "containers"))
	must(t, p.Raw.Create(t.Context(), stranger))
	p.run(3)
	got := p.updated()
	if !strings.HasPrefix(got, "False ChildExists: Pod tom-2 exists already") ||
		!strings.Contains(got, ". Besides, Pod tom-1 and 1 more are held") || !strings.Contains(got, "Pod tom-0 is missing") {
		t.Error(got)
	}
	if got := p.events.Events(revisionLost); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}

// TestAllRevisionsAreDeleted: nobody knows what was held any more. What is there is not touched all the same.
func TestAllRevisionsAreDeleted(t *testing.T) {
	p := partitioned(t)
	must(t, p.Raw.DeleteAllOf(t.Context(), &v1alpha1.ControllerRevision{}, client.InNamespace("default")))
	p.start(p.r.settings)
	p.settle()
	if got := p.images(); got != "a a b" || !strings.Contains(p.updated(), "although no revision says what it was made from") {
		t.Errorf("there are %s, and %s", got, p.updated())
	}
	p.lose()
	p.run(3)
	if got := p.images(); got != "a b" {
		t.Errorf("there are %s", got)
	}
}

// TestARestoredRevisionCounts: the children that it had come back from it.
func TestARestoredRevisionCounts(t *testing.T) {
	p := partitioned(t)
	a := p.revisionOf("a")
	must(t, p.Raw.Delete(t.Context(), a))
	p.lose()
	p.run(1)
	back := a.DeepCopy()
	back.UID, back.ResourceVersion, back.Children = "", "", nil // as from a backup of long ago
	must(t, p.Raw.Create(t.Context(), back))
	p.settle()
	if got := p.images(); got != "a a b" || strings.Contains(p.updated(), revisionLost) {
		t.Errorf("there are %s, and %s", got, p.updated())
	}
}

// TestARevisionThatIsRenumberedOrCopied changes nothing for the children that belong to it.
func TestARevisionThatIsRenumberedOrCopied(t *testing.T) {
	for name, change := range map[string]func(p *passes, r *v1alpha1.ControllerRevision) error{
		"renumbered": func(p *passes, r *v1alpha1.ControllerRevision) error {
			r.Revision = 17
			return p.Raw.Update(p.t.Context(), r)
		},
		"copied, and the original is deleted": func(p *passes, r *v1alpha1.ControllerRevision) error {
			other := r.DeepCopy()
			other.Name, other.UID, other.ResourceVersion = "copy", "", ""
			if err := p.Raw.Create(p.t.Context(), other); err != nil {
				return err
			}
			return p.Raw.Delete(p.t.Context(), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := partitioned(t)
			must(t, change(p, p.revisionOf("a")))
			p.settle()
			p.lose()
			p.settle()
			if got := p.images(); got != "a a b" || strings.Contains(p.updated(), revisionLost) {
				t.Errorf("there are %s, and %s", got, p.updated())
			}
		})
	}
}

// TestWhatIsHeldIsKnownThroughTheNextEdit: the revision that becomes the newest knows what the one before it knew.
func TestWhatIsHeldIsKnownThroughTheNextEdit(t *testing.T) {
	p := partitioned(t)
	must(t, p.Raw.Delete(t.Context(), p.revisionOf("a")))
	for _, image := range []string{"c", "b"} { // forward and back
		p.edit("image", image)
		p.settle()
	}
	p.lose()
	p.run(3)
	if got := p.images(); got != "a b" {
		t.Errorf("there are %s", got)
	}
}

// TestPlantedRevisions: what somebody else plants steers no child, whatever it says, and a lost one that is held comes
// back as it was.
func TestPlantedRevisions(t *testing.T) {
	for _, number := range []int64{0, 1, 2, 100} {
		for name, fits := range map[string]bool{"its name is made up": false, "its name follows from its content": true} {
			t.Run(fmt.Sprintf("number %d, %s", number, name), func(t *testing.T) {
				p := partitioned(t)
				planted := p.revisionOf("a").DeepCopy()
				planted.Name, planted.UID, planted.ResourceVersion, planted.OwnerReferences = "planted", "", "", nil
				planted.ParentPatch.Raw = []byte(strings.ReplaceAll(string(planted.ParentPatch.Raw), `"a"`, `"evil"`))
				planted.Revision = number
				planted.Children = []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: []string{"tom-0", "tom-1", "tom-2"}}}
				if fits {
					planted.Name = p.r.format.Name(p.tom(), p.r.format.Read(planted).Snapshot, nil)
				}
				must(t, p.Raw.Create(t.Context(), planted))
				p.settle()
				p.lose()
				p.settle()
				if got := p.images(); got != "a a b" {
					t.Errorf("there are %s, %s", got, p.updated())
				}
			})
		}
	}
}

// past is a cache that shows the revisions of an earlier moment.
type past struct {
	client.Reader

	revisions v1alpha1.ControllerRevisionList
}

func (p *past) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if into, ok := list.(*v1alpha1.ControllerRevisionList); ok {
		p.revisions.DeepCopyInto(into)
		return nil
	}
	return p.Reader.List(ctx, list, opts...)
}

// TestALostChildAfterARestartInThePast: a new process whose cache does not have the revision that a lost child is moved
// to creates nothing until the cache has it.
func TestALostChildAfterARestartInThePast(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	before := &past{Reader: p.Raw}
	must(t, p.Raw.List(t.Context(), &before.revisions))
	p.edit("image", "b")
	p.run(1)
	for _, pod := range p.pods() {
		if podImage(&pod) == "b" {
			must(t, p.Raw.Delete(t.Context(), &pod))
		}
	}
	p.edit("image", "a")
	env := p.environment()
	env.Cache = cached{Reader: before}
	p.startIn(env, p.r.settings)
	p.Forget()
	p.run(2)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it writes %v", writes)
	}
	p.start(p.r.settings)
	p.settle()
	if !p.all("a") {
		t.Error(p.images())
	}
}
