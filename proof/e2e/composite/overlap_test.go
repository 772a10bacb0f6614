package composite

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	cairn "github.com/cairn-dev/cairn/controllers/metacontroller/composite"
)

// TestAnOverlapIsSaidByBoth: of two controllers that cannot share their parents, each says so, until one of them is
// gone. The older one goes on meanwhile.
func TestAnOverlapIsSaidByBoth(t *testing.T) {
	l := newLab(t)
	older := l.install(l.controller())
	younger := l.install(l.controller(func(cc *v1alpha1.CompositeController) { cc.Name = "z-" + l.name }))
	l.cairn(older, younger)
	says := func(cc *v1alpha1.CompositeController, reason string) {
		t.Helper()
		l.eventually("wait for what "+cc.Name+" says", func() error {
			if err := l.Get(l.Context(), client.ObjectKeyFromObject(cc), cc); err != nil {
				return err
			}
			got := ""
			if c := meta.FindStatusCondition(cc.Status.Conditions, cairn.Overlap); c != nil {
				got = c.Reason
			}
			if ready := meta.FindStatusCondition(cc.Status.Conditions, "Ready"); got != reason || ready == nil {
				return fmt.Errorf("Overlap says %q, want %q; Ready is %v", got, reason, ready)
			}
			return nil
		})
	}
	says(older, "GoesOn")
	says(younger, "GivesWay")
	set := l.set(setKind, "web", 2, "app:1")
	l.create(set)
	l.eventually("wait for the pods", func() error {
		if n := len(l.podsOf(set)); n != 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	must(t, l.Delete(l.Context(), younger))
	says(older, "")
}
