package apply_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// A pass over a hundred children at rest, with a new answer of the hook that says the same.
func BenchmarkHundredChildrenAtRest(b *testing.B) {
	memo := apply.NewMemo(apply.MemoBytes)
	created, err := apply.New(parse(b, desiredPod))
	if err != nil {
		b.Fatal(err)
	}
	var observed, desired []*unstructured.Unstructured
	for i := range 100 {
		o := &unstructured.Unstructured{Object: parse(b, text(b, created))}
		o.SetUID(types.UID(fmt.Sprint(i)))
		o.SetResourceVersion("7")
		observed, desired = append(observed, o), append(desired, &unstructured.Unstructured{Object: parse(b, desiredPod)})
	}
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			for i := range observed {
				if r, err := memo.Child("", observed[i], desired[i], nil); err != nil || r.Changed {
					b.Fatal(r, err)
				}
			}
		}
	})
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			for i := range observed {
				if r, err := apply.Child(observed[i].Object, desired[i].Object, nil); err != nil || r.Changed {
					b.Fatal(r, err)
				}
			}
		}
	})
}
