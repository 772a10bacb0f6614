package composite

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

func sortRevisions(r []v1alpha1.ControllerRevision) {
	slices.SortFunc(r, func(a, b v1alpha1.ControllerRevision) int { return int(a.Revision - b.Revision) })
}

// TestRollout: create, roll, go back, in every way of selecting and scoping in which Metacontroller's released rollout hangs
// or fails (metacontroller.md, part 0).
func TestRollout(t *testing.T) {
	for name, c := range map[string]struct {
		kind   schema.GroupVersionKind
		change func(l *lab, cc *v1alpha1.CompositeController)
	}{
		"namespaced": {setKind, func(*lab, *v1alpha1.CompositeController) {}},
		"cluster-scoped": {clusterSetKind, func(l *lab, cc *v1alpha1.CompositeController) {
			cc.Spec.ParentResource.Resource = "clustersets"
			cc.Spec.ParentResource.RevisionHistory.Namespace = l.namespace
		}},
		"generated selector": {setKind, func(_ *lab, cc *v1alpha1.CompositeController) { cc.Spec.GenerateSelector = new(true) }},
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
