package hook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEncoderForgets: of an object that is gone nothing is kept, in none of the versions in which it was read.
func TestEncoderForgets(t *testing.T) {
	e := NewEncoder(1 << 20)
	a, b := bigPod("a"), bigPod("b")
	beta := a.DeepCopy()
	beta.SetAPIVersion("v1beta1")
	for range 2 {
		for _, o := range []*unstructured.Unstructured{a, beta, b} {
			if _, err := e.encode(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e.encoded.Len() != 3 {
		t.Fatalf("%d objects are kept", e.encoded.Len())
	}
	if e.Forget(a); e.encoded.Len() != 1 {
		t.Errorf("%d objects are kept", e.encoded.Len())
	}
}
