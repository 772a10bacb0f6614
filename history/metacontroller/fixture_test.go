package metacontroller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds what the tests share.

const parentUID = "3f0e8d1c-9a2b-4c5d-8e6f-0a1b2c3d4e5f"

// object reads YAML as an API client reads JSON: whole numbers are int64.
func object(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(b, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// cat returns a parent with the given rest of its manifest.
func cat(t testing.TB, rest string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, rest)
	o.SetAPIVersion("ctl.enisoc.com/v1")
	o.SetKind("CatSet")
	o.SetNamespace("cats")
	o.SetName("nap")
	o.SetUID(parentUID)
	o.SetGeneration(4)
	return o
}

// format returns the format of CatSets with the given field paths.
func format(t testing.TB, paths ...string) *Format {
	t.Helper()
	return formatOf(t, v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
		ResourceRule:    v1alpha1.ResourceRule{APIVersion: "ctl.enisoc.com/v1", Resource: "catsets"},
		RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: paths},
	}})
}

func formatOf(t testing.TB, spec v1alpha1.CompositeControllerSpec) *Format {
	t.Helper()
	f, err := NewFormat(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func snapshot(t testing.TB, f *Format, parent *unstructured.Unstructured) *revision.Snapshot {
	t.Helper()
	s, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored returns the object that stores a snapshot of parent.
func stored(t testing.TB, f *Format, parent *unstructured.Unstructured, number int64) *v1alpha1.ControllerRevision {
	t.Helper()
	o, err := f.Object(parent, snapshot(t, f, parent), nil, number, revision.Stamp{ParentUID: parent.GetUID(), Generation: parent.GetGeneration()})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*v1alpha1.ControllerRevision)
}
