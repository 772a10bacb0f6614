package builder

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A status patch says zero where nobody knows whether it is stored: a CRD may require it. ReplicaSets always have replicas in their
// JSON, and the other counters only if they are not zero.
func TestStatusPatches(t *testing.T) {
	for name, c := range map[string]struct {
		was, is appsv1.ReplicaSetStatus
		want    string
	}{
		"the first":        {appsv1.ReplicaSetStatus{}, appsv1.ReplicaSetStatus{ObservedGeneration: 1}, `{"status":{"observedGeneration":1,"replicas":0}}`},
		"a later one":      {appsv1.ReplicaSetStatus{Replicas: 2}, appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 1}, `{"status":{"readyReplicas":1}}`},
		"down to zero":     {appsv1.ReplicaSetStatus{Replicas: 2}, appsv1.ReplicaSetStatus{}, `{"status":{"replicas":0}}`},
		"what was removed": {appsv1.ReplicaSetStatus{ReadyReplicas: 1}, appsv1.ReplicaSetStatus{}, `{"status":{"readyReplicas":null,"replicas":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			parent, after := shop(), shop()
			parent.Status, after.Status = c.was, c.is
			parent.ResourceVersion, after.ResourceVersion = "7", "7"
			lock := client.MergeFromWithOptimisticLock{}
			patch, err := client.MergeFromWithOptions(beforeStatus(parent, after), lock).Data(after)
			if err != nil || string(patch) != `{"metadata":{"resourceVersion":"7"},`+c.want[1:] {
				t.Errorf("%s, %v; want %s", patch, err, c.want)
			}
		})
	}
}

// What an unstructured parent has is what is stored.
func TestStatusPatchesOfUnstructuredParents(t *testing.T) {
	parent := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"replicas": int64(0)}}}
	after := parent.DeepCopy()
	after.Object["status"].(map[string]any)["ready"] = int64(1)
	if patch, err := client.MergeFrom(beforeStatus(parent, after)).Data(after); err != nil || string(patch) != `{"status":{"ready":1}}` {
		t.Errorf("%s, %v", patch, err)
	}
}
