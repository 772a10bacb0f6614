package composite

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/manager"
)

func sortRevisions(r []v1alpha1.ControllerRevision) {
	slices.SortFunc(r, func(a, b v1alpha1.ControllerRevision) int { return int(a.Revision - b.Revision) })
}

// TestRollout creates, rolls and rolls back parents in no namespace, and parents whose hook has version v2. For parents
// in namespaces, with and without a generated selector, the sweep of proof/fault does the same (rolledAndBack).
func TestRollout(t *testing.T) {
	for name, c := range map[string]struct {
		kind   schema.GroupVersionKind
		change func(l *lab, cc *v1alpha1.CompositeController)
	}{
		"cluster-scoped": {clusterSetKind, func(l *lab, cc *v1alpha1.CompositeController) {
			cc.Spec.ParentResource.Resource = "clustersets"
			cc.Spec.ParentResource.RevisionHistory.Namespace = l.namespace
		}},
		"version v2": {setKind, func(_ *lab, cc *v1alpha1.CompositeController) {
			cc.Spec.Hooks.Sync.Version = new(v1alpha1.HookVersionV2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) { c.change(l, cc) }))
			l.cairn(cc)
			set := l.set(c.kind, "web", 4, "nginx:1.27")
			l.create(set)
			l.rolledOut(set)
			l.images(set, 4, "nginx:1.27")

			l.image(set, "nginx:1.28")
			l.rolledOut(set)
			l.images(set, 4, "nginx:1.28")

			l.image(set, "nginx:1.27")
			l.rolledOut(set)
			l.images(set, 4, "nginx:1.27")
			revisions := l.revisions(set)
			if len(revisions) != 2 || revisions[0].Revision != 2 || revisions[1].Revision != 3 {
				t.Errorf("%d revisions: %+v", len(revisions), revisions)
			}
			if len(revisions[0].Children) != 0 || len(revisions[1].Children) != 1 || len(revisions[1].Children[0].Names) != 4 {
				t.Errorf("children: %v and %v", revisions[0].Children, revisions[1].Children)
			}

			before := l.uids(set)
			l.scale(set, 5)
			l.rolledOut(set)
			after := l.uids(set)
			delete(after, "web-4")
			if !maps.Equal(before, after) {
				t.Errorf("scaling replaced pods: %v, %v", before, after)
			}
			if n := len(l.revisions(set)); n != 2 {
				t.Errorf("scaling made %d revisions", n)
			}
		})
	}
}

// TestServerSideApply: what Metacontroller's rollout hangs with. A field that the hook no longer wants goes, one that
// somebody else set stays.
func TestServerSideApply(t *testing.T) {
	for _, method := range []v1alpha1.ChildUpdateMethod{v1alpha1.ChildUpdateRollingRecreate, v1alpha1.ChildUpdateRollingInPlace} {
		t.Run(string(method), func(t *testing.T) {
			l := newLab(t)
			l.answer(func(in request) any {
				out := l.pods(in).(m)
				for _, c := range out["children"].([]any) {
					_ = unstructured.SetNestedField(c.(m), "always", "metadata", "annotations", "kept")
					if imageOf(&unstructured.Unstructured{Object: c.(m)}) == "app:1" {
						_ = unstructured.SetNestedField(c.(m), "here", "metadata", "annotations", "gone")
					}
				}
				return out
			})
			cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
				cc.Spec.ChildResources[0].UpdateStrategy.Method = method
			}))
			serverSide := func(o *manager.Options) { o.FieldManager = "metacontroller" }
			stop := l.cairnWith(serverSide, cc)
			set := l.set(setKind, "web", 3, "app:1")
			l.create(set)
			l.rolledOut(set)
			for _, pod := range l.podsOf(set) {
				if _, there := pod.GetAnnotations()["metacontroller.k8s.io/last-applied-configuration"]; there {
					t.Errorf("%s has the annotation", pod.GetName())
				}
				l.patch(pod, `{"metadata":{"annotations":{"somebody":"else"}}}`)
			}
			before := l.uids(set)
			l.image(set, "app:2")
			l.rolledOut(set)
			l.images(set, 3, "app:2")
			for name, pod := range l.podsOf(set) {
				a := pod.GetAnnotations()
				if a["kept"] != "always" || a["gone"] != "" {
					t.Errorf("%s has %v", name, a)
				}
				inPlace := method == v1alpha1.ChildUpdateRollingInPlace
				if inPlace != (a["somebody"] == "else") || inPlace != (before[name] == string(pod.GetUID())) {
					t.Errorf("%s: in place %v, annotations %v", name, inPlace, a)
				}
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the manager took %s to stop", took)
			}
			before = l.versions(set)
			l.cairnWith(serverSide, cc)
			l.scale(set, 4)
			l.rolledOut(set)
			after := l.versions(set)
			delete(after, "web-3")
			if !maps.Equal(before, after) {
				t.Errorf("pods were written after a restart: %v, %v", before, after)
			}
		})
	}
}

// TestServerSideApplyTakesOver: what was merged before is applied from now on, and nothing restarts.
func TestServerSideApplyTakesOver(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
		cc.Spec.ChildResources[0].UpdateStrategy.Method = v1alpha1.ChildUpdateRollingInPlace
	}))
	set := l.set(setKind, "web", 2, "app:1")
	l.create(set)
	l.left(set, "app:1", "app:1")
	before := l.uids(set)
	l.cairnWith(func(o *manager.Options) { o.FieldManager = "metacontroller" }, cc)
	l.rolledOut(set)
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 2, "app:2")
	if after := l.uids(set); !maps.Equal(before, after) {
		t.Errorf("pods were replaced: %v, %v", before, after)
	}
}
