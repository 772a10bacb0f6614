package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// settings is a parent of a kind with neither generation nor status, whose revisions do not say what is made from them.
func settings(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "settings-uid"},
		Data:       data,
	}
}

// recordedOf returns a revision of a parent.
func recordedOf(t *testing.T, parent *corev1.ConfigMap, number int64, uid types.UID) *appsv1.ControllerRevision {
	t.Helper()
	target, err := revision.FieldPaths(nil, revision.Path{"data"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	named := revision.Hash(s.Data(), nil)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings-" + named, UID: uid,
			Labels:          map[string]string{"configmap": "settings", appsv1.ControllerRevisionHashLabelKey: named},
			Annotations:     map[string]string{history.FieldPathsAnnotation: "data"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Data: runtime.RawExtension{Raw: s.Data()}, Revision: number,
	}
}

// A kind without children has a history, a status and an undo. Its second revision lacks a key of the first: the reason
// could be a default, so the API server is asked, and its answer is not taken from a generation that is always 0.
func TestAKindWithoutChildren(t *testing.T) {
	was, parent := settings(map[string]string{"color": "red", "size": "1"}), settings(map[string]string{"color": "red"})
	c := server(interceptor.Funcs{}, parent, recordedOf(t, was, 1, "a"), recordedOf(t, parent, 2, "b"))
	i := New(c)
	for _, name := range []string{"recorded", "not recorded yet"} {
		if name != "recorded" {
			if err := c.Delete(t.Context(), recordedOf(t, parent, 2, "b")); err != nil {
				t.Fatal(err)
			}
		}
		h, err := i.History(t.Context(), parent)
		if err != nil || (h.Current() != nil) != (name == "recorded") || h.Children != "" || h.Entries[0].Children != UnknownCount {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		s, err := i.Status(t.Context(), parent, time.Now())
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
	if _, err := i.PlanUndo(t.Context(), done.Parent, 1); !errors.Is(err, ErrNothingToUndo) {
		t.Error(err)
	}
}

// Somebody changed what is recorded: a revision from before holds less, and going back to it leaves the rest as it is.
func TestWhatIsRecordedWasChanged(t *testing.T) {
	parent := settings(map[string]string{"color": "blue", "size": "1"})
	parent.ResourceVersion = "7"
	old := recordedOf(t, settings(map[string]string{"color": "red"}), 1, "a")
	old.Annotations = map[string]string{history.FieldPathsAnnotation: "data.color"}
	c := server(interceptor.Funcs{}, parent, old, recordedOf(t, parent, 2, "b"))
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
		tree, err := New(c).whole(done.Parent)
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := unstructured.NestedStringMap(tree.whole.Object, "data")
		if err != nil || data["color"] != "red" || data["size"] != "1" {
			t.Errorf("%s first: the undo leads to %v, %v", first, data, err)
		}
	}
}

// A release of the controller that versions another field has recorded the newest revision. What is current is read by
// that one, and going back to what an earlier release recorded is refused: it would write a field that nobody looks at,
// and say that it rolled back.
func TestASecondRelease(t *testing.T) {
	was, parent := settings(map[string]string{"color": "red"}), settings(map[string]string{"color": "red"})
	parent.BinaryData = map[string][]byte{"color": []byte("green")}
	newest := recordedOf(t, was, 2, "b")
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
	old := recordedOf(t, was, 1, "a")
	i := New(server(interceptor.Funcs{}, parent, old, newest))
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
	i = New(server(interceptor.Funcs{}, parent, old, newest))
	if _, err := i.PlanUndo(t.Context(), parent, 1); errors.As(err, &left) {
		t.Error(err)
	}
}

// Children of two kinds are counted together. What is no pod passes once it exists, as for the controller.
func TestChildrenOfTwoKinds(t *testing.T) {
	parent := settings(map[string]string{"color": "red"})
	r := recordedOf(t, parent, 1, "a")
	r.Annotations[history.ChildrenAnnotation] = "v1/Pod,apps/v1/ReplicaSet"
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: r.Labels, OwnerReferences: r.OwnerReferences}
	}
	pod, set := &corev1.Pod{ObjectMeta: meta("pod")}, &appsv1.ReplicaSet{ObjectMeta: meta("set")}
	i := New(server(interceptor.Funcs{}, parent, r, pod, set))
	h, err := i.History(t.Context(), parent)
	if err != nil || h.Children != "children" || h.Entries[0].Children != 2 {
		t.Errorf("%+v, %v", h, err)
	}
	s, err := i.Status(t.Context(), parent, time.Now())
	if err != nil || s.Updated != 2 || s.Total != 2 || s.Available != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
