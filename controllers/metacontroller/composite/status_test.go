package composite

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStatusOf(t *testing.T) {
	updated := map[string]any{"type": "Updated", "status": "True", "reason": "OnLatestRevision", "message": "m"}
	other := map[string]any{"type": "Ready", "status": "False"}
	for name, c := range map[string]struct {
		said   map[string]any
		rolled bool
		want   map[string]any
	}{
		"nothing said":                 {nil, false, map[string]any{"observedGeneration": int64(3)}},
		"nothing said, with revisions": {nil, true, map[string]any{"observedGeneration": int64(3), "conditions": []any{updated}}},
		"what the hook says stays": {
			map[string]any{"replicas": int64(2), "observedGeneration": int64(1), "conditions": []any{other}},
			true,
			map[string]any{"replicas": int64(2), "observedGeneration": int64(3), "conditions": []any{other, updated}},
		},
		"the condition is ours": {
			map[string]any{"conditions": []any{map[string]any{"type": "Updated", "status": "Unknown"}, other}},
			true,
			map[string]any{"observedGeneration": int64(3), "conditions": []any{updated, other}},
		},
		"conditions that are none": {
			map[string]any{"conditions": "fine"},
			true,
			map[string]any{"observedGeneration": int64(3), "conditions": []any{updated}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := (&unstructured.Unstructured{Object: map[string]any{"status": c.said}}).DeepCopy()
			var rolled *condition
			if c.rolled {
				rolled = &condition{status: "True", reason: "OnLatestRevision", message: "m"}
			}
			got := statusOf(c.said, 3, rolled)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.said != nil {
				if diff := cmp.Diff(before.Object["status"], any(c.said)); diff != "" {
					t.Errorf("what the hook said was changed:\n%s", diff)
				}
			}
			differs := func(parent map[string]any) bool {
				o := &gathered{parent: &unstructured.Unstructured{Object: parent}, memory: &memory{}}
				return o.statusDiffers(got)
			}
			if differs(map[string]any{"status": got}) || !differs(map[string]any{}) || !differs(map[string]any{"status": "text"}) {
				t.Error("it does not tell what differs")
			}
		})
	}
}
