package apply_test

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// FuzzChild: whatever somebody wrote into a child, and whatever a hook answered, nothing panics, and what is applied
// once is not applied again.
func FuzzChild(f *testing.F) {
	f.Add([]byte(desiredPod), []byte(desiredPod), []byte(desiredPod))
	f.Add([]byte(`{"metadata":7}`), []byte(`{"metadata":{"annotations":[]}}`), []byte(`null`))
	f.Add([]byte(`{"metadata":{"annotations":{"metacontroller.k8s.io/last-applied-configuration":"{\"a\":[{\"name\":1}]}"}},"a":[{"name":1},{"name":null}]}`),
		[]byte(`{"a":[{"name":2},{"name":"2"}],"status":null}`), []byte(`{"a":{}}`))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		var observed, desired, served map[string]any
		if utiljson.Unmarshal(a, &observed) != nil || utiljson.Unmarshal(b, &desired) != nil || desired == nil {
			return
		}
		_ = utiljson.Unmarshal(c, &served)
		r, err := apply.Child(observed, desired, served)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Patch(observed); err != nil {
			t.Fatal(err)
		}
		again, err := apply.Child(r.Object, desired, served)
		if err != nil {
			t.Fatal(err)
		}
		if again.Content && served == nil {
			t.Fatalf("applied twice is not applied once: %q", again.Differences(r.Object, 5))
		}
	})
}
