package recorder

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

var revisionStamp = revision.Stamp{ParentUID: "u", Generation: 1}

func set(m map[string]string) labels.Set { return m }

func entry(manager string, second int, subresource, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Unix(int64(second), 0))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: &at, Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// What was noted of one version is said of no other.
func TestAuthors(t *testing.T) {
	target, err := revision.FieldPaths(nil, revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetUID("u")
	o.SetResourceVersion("1")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{entry("a", 60, "", `{"f:spec":{"f:image":{}}}`)})
	var known authors
	known.note(o, target)
	if got := known.of(o); got[history.RecordedByAnnotation] != "a" || got[history.RecordedAtAnnotation] != "1970-01-01T00:01:00Z" {
		t.Errorf("%v", got)
	}
	o.SetResourceVersion("2")
	if got := known.of(o); len(got) > 0 {
		t.Errorf("another version was made by %v", got)
	}
	known.forget("u")
	if len(known.known) > 0 {
		t.Errorf("%v is remembered of a deleted object", known.known)
	}
}
