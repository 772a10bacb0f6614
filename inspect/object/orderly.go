package object

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// This file makes a status of a kind of others readable for kstatus.

// Orderly returns a copy of an object whose status follows the conventions where it has fields of the same names: some
// controllers write observedGeneration as a string, or conditions as something else than a list of objects.
func Orderly(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	status, ok := o.Object["status"].(map[string]any)
	if !ok {
		delete(o.Object, "status")
		return o
	}
	if text, ok := status["observedGeneration"].(string); ok {
		delete(status, "observedGeneration")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			status["observedGeneration"] = n
		}
	}
	if _, err := kstatus.GetObjectWithConditions(o.Object); err != nil {
		delete(status, "conditions")
	}
	return o
}
