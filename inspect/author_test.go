package inspect

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestWhoMadeTheEdit: of the current revision it is who wrote the recorded part last; of another one nobody knows.
func TestWhoMadeTheEdit(t *testing.T) {
	ds := inspecttest.Web("web:2")
	ds.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-set", APIVersion: "apps/v1", FieldsType: "FieldsV1", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{}}}}`)},
		{Manager: "cairn", APIVersion: "apps/v1", FieldsType: "FieldsV1", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
	}
	h := readingOf(t, ds, nil, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb")).History()
	if first, second := h.Entries[0].By, h.Entries[1].By; first != "" || second != "kubectl-set" {
		t.Errorf("by %q and %q", first, second)
	}
}
