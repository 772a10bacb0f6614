package author

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/revision"
)

func entry(manager string, second int, subresource, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Unix(int64(second), 0))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: &at, Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestLast: who wrote what is recorded last, not who wrote something else later, nor the status.
func TestLast(t *testing.T) {
	all, err := revision.FieldPaths(nil, revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	target, err := all.Without(revision.Path{"spec", "replicas"})
	if err != nil {
		t.Fatal(err)
	}
	const image, scale = `{"f:spec":{"f:image":{}}}`, `{"f:spec":{"f:replicas":{}}}`
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":               {nil, ""},
		"the newest":           {[]metav1.ManagedFieldsEntry{entry("a", 2, "", image), entry("b", 1, "", image)}, "a"},
		"two in one second":    {[]metav1.ManagedFieldsEntry{entry("a", 1, "", image), entry("b", 1, "", image)}, "b"},
		"labels":               {[]metav1.ManagedFieldsEntry{entry("a", 1, "", image), entry("b", 2, "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`)}, "a"},
		"status":               {[]metav1.ManagedFieldsEntry{entry("a", 1, "", image), entry("b", 2, "status", image)}, "a"},
		"what is ignored":      {[]metav1.ManagedFieldsEntry{entry("a", 1, "", image), entry("hpa", 2, "", scale)}, "a"},
		"a list":               {[]metav1.ManagedFieldsEntry{entry("a", 1, "", `{"f:spec":{"f:ports":{"k:{\"port\":1}":{".":{}}}}}`)}, "a"},
		"what nobody can read": {[]metav1.ManagedFieldsEntry{entry("a", 1, "", image), entry("b", 2, "", `{"f:spec":7}`)}, "a"},
	} {
		got := ""
		if by := Last(c.entries, target); by != nil {
			got = by.Manager
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
