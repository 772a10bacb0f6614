package inspect

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/revision"
)

// Somebody changed what is recorded: a revision from before holds less, and going back to it leaves the rest as it is.
func TestWhatIsRecordedWasChanged(t *testing.T) {
	parent := inspecttest.Settings(map[string]string{"color": "blue", "size": "1"})
	parent.ResourceVersion = "7"
	old := inspecttest.RecordedOf(t, inspecttest.Settings(map[string]string{"color": "red"}), 1, "a")
	old.Annotations = map[string]string{history.FieldPathsAnnotation: "data.color"}
	c := inspecttest.Server(interceptor.Funcs{}, parent, old, inspecttest.RecordedOf(t, parent, 2, "b"))
	for _, first := range []string{"old", "new"} { // whichever is listed first
		if first == "new" {
			renamed := old.DeepCopy()
			renamed.Name, renamed.UID, renamed.ResourceVersion = "settings-z", "z", ""
			if err := c.Delete(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			if err := c.Create(t.Context(), renamed); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := New(c).PlanUndo(t.Context(), parent, 1)
		if err != nil {
			t.Fatal(err)
		}
		done, err := New(c).Apply(t.Context(), plan, true)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := object.Fields(done.Parent, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := unstructured.NestedStringMap(fields.Object, "data")
		if err != nil || data["color"] != "red" || data["size"] != "1" {
			t.Errorf("%s first: the undo leads to %v, %v", first, data, err)
		}
	}
}

// A release of the controller that versions another field has recorded the newest revision. What is current is read by
// that one, and going back to what an earlier release recorded is refused: it would write a field that nobody looks at,
// and say that it rolled back.
func TestASecondRelease(t *testing.T) {
	was, parent := inspecttest.Settings(map[string]string{"color": "red"}), inspecttest.Settings(map[string]string{"color": "red"})
	parent.BinaryData = map[string][]byte{"color": []byte("green")}
	newest := inspecttest.RecordedOf(t, was, 2, "b")
	newest.Annotations[history.FieldPathsAnnotation] = "binaryData"
	target, err := revision.FieldPaths(nil, revision.Path{"binaryData"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	newest.Data.Raw = s.Data()
	newest.Labels[appsv1.ControllerRevisionHashLabelKey] = revision.Hash(s.Data(), nil)
	newest.Name = "settings-" + revision.Hash(s.Data(), nil)
	old := inspecttest.RecordedOf(t, was, 1, "a")
	i := New(inspecttest.Server(interceptor.Funcs{}, parent, old, newest))
	h, err := i.History(t.Context(), parent)
	if err != nil || h.Current() == nil || h.Current().Number != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	var left *EarlierReleaseError
	for _, number := range []int64{0, 1} {
		_, err = i.PlanUndo(t.Context(), parent, number)
		if !errors.As(err, &left) || left.Entry.Number != 1 || !strings.Contains(err.Error(), "it holds data, which is not versioned any more, and not binaryData") {
			t.Errorf("%d: %v", number, err)
		}
	}
	old.Labels[v1alpha1.PolicyLabel] = "all" // what a policy records can be edited, and is looked at by somebody
	i = New(inspecttest.Server(interceptor.Funcs{}, parent, old, newest))
	if _, err := i.PlanUndo(t.Context(), parent, 1); errors.As(err, &left) {
		t.Error(err)
	}
}
