package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// These tests ask for the history and the status of the same objects.

// A kind without children has a history, a status and an undo. Its second revision lacks a key of the first: the reason
// could be a default, so the API server is asked, and its answer is not taken from a generation that is always 0.
func TestAKindWithoutChildren(t *testing.T) {
	was, parent := inspecttest.Settings(map[string]string{"color": "red", "size": "1"}), inspecttest.Settings(map[string]string{"color": "red"})
	c := inspecttest.Server(interceptor.Funcs{}, parent, inspecttest.RecordedOf(t, was, 1, "a"), inspecttest.RecordedOf(t, parent, 2, "b"))
	i := inspect.New(c)
	for _, name := range []string{"recorded", "not recorded yet"} {
		if name != "recorded" {
			if err := c.Delete(t.Context(), inspecttest.RecordedOf(t, parent, 2, "b")); err != nil {
				t.Fatal(err)
			}
		}
		h, err := i.History(t.Context(), parent)
		if err != nil || (h.Current() != nil) != (name == "recorded") || h.Children != "" || h.Entries[0].Children != inspect.UnknownCount {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		s, err := Of(t.Context(), i, parent, time.Now())
		if err != nil || s.Complete() != (name == "recorded") || s.Total != 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	plan, err := i.PlanUndo(t.Context(), parent, 0)
	if err != nil || plan.To.Number != 1 || !strings.Contains(plan.Diff, `+  size: "1"`) {
		t.Fatalf("%+v, %v", plan, err)
	}
	done, err := i.Apply(t.Context(), plan, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.PlanUndo(t.Context(), done.Parent, 1); !errors.Is(err, inspect.ErrNothingToUndo) {
		t.Error(err)
	}
}

// Children of two kinds are counted together. What is no pod passes once it exists, as for the controller.
func TestChildrenOfTwoKinds(t *testing.T) {
	parent := inspecttest.Settings(map[string]string{"color": "red"})
	r := inspecttest.RecordedOf(t, parent, 1, "a")
	r.Annotations[history.ChildrenAnnotation] = "v1/Pod,apps/v1/ReplicaSet"
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: r.Labels, OwnerReferences: r.OwnerReferences}
	}
	pod, set := &corev1.Pod{ObjectMeta: meta("pod")}, &appsv1.ReplicaSet{ObjectMeta: meta("set")}
	i := inspect.New(inspecttest.Server(interceptor.Funcs{}, parent, r, pod, set))
	h, err := i.History(t.Context(), parent)
	if err != nil || h.Children != "children" || h.Entries[0].Children != 2 {
		t.Errorf("%+v, %v", h, err)
	}
	s, err := Of(t.Context(), i, parent, time.Now())
	if err != nil || s.Updated != 2 || s.Total != 2 || s.Available != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestAControllerThatRecordsNothing: where no revisions are kept, that is no error, and status works as well.
func TestAControllerThatRecordsNothing(t *testing.T) {
	west := inspecttest.CatSet("2")
	west.SetKind("Zoo")
	west.SetNamespace("")
	cc := inspecttest.ControllerOf("zoo", inspecttest.Pets.WithResource("zoos"))
	cc.Spec.ParentResource.RevisionHistory = nil
	cc.Spec.ChildResources[0].UpdateStrategy.Method = v1alpha1.ChildUpdateInPlace
	i := inspect.New(inspecttest.PetServer(t, interceptor.Funcs{}, west, cc))
	const why = "CompositeController zoo keeps no revisions"
	h, err := i.History(t.Context(), west)
	if err != nil || len(h.Entries) != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	inspecttest.ExpectWarnings(t, h.Warnings, why)
	s, err := Of(t.Context(), i, west, time.Now())
	if err != nil || s.Rolled != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	inspecttest.ExpectWarnings(t, s.Warnings, why, "Its controller has not reported")
	if _, err := i.PlanUndo(t.Context(), west, 0); !errors.Is(err, inspect.ErrNothingToUndo) {
		t.Errorf("an undo: %v", err)
	}
}
