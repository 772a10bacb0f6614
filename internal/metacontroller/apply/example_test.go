package apply_test

import (
	"fmt"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// A hook asks for another image. The label that a service mesh wrote stays.
func ExampleChild() {
	pod := func(image string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "cats-0", "labels": map[string]any{"app": "cats"}},
			"spec":     map[string]any{"image": image},
		}
	}
	observed, err := apply.New(pod("cat:1"))
	if err != nil {
		panic(err)
	}
	set(observed, "sidecar", "metadata", "labels", "mesh")

	same, err := apply.Child(observed, pod("cat:1"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(same.Changed)

	other, err := apply.Child(observed, pod("cat:2"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(other.Changed, other.Differences(observed, 3), other.Object["metadata"].(map[string]any)["labels"])
	// Output:
	// false
	// true [spec.image] map[app:cats mesh:sidecar]
}
