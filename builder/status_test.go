package builder

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// A status patch says zero where nobody knows whether it is stored: a CRD may require it. ReplicaSets always have
// replicas in their JSON, and the other counters only if they are not zero.
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

// ferry is a parent whose status has a required counter, as controller-gen makes of a field without omitempty.
type ferry struct {
	corev1.ConfigMap

	Status ferryStatus `json:"status"`
}

// DeepCopyObject copies what a patch changes of it.
func (f *ferry) DeepCopyObject() runtime.Object {
	out := *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type ferryStatus struct {
	Seats  int32            `json:"seats"`
	Taken  int32            `json:"taken"`
	Phase  string           `json:"phase,omitempty"`
	Crew   *ferryCrew       `json:"crew,omitempty"`
	Places map[string]int32 `json:"places,omitempty"`
	Names  []string         `json:"names"`
}

type ferryCrew struct {
	Aboard int32 `json:"aboard"`
}

// A patch of a status sets all that is required, for nobody knows what the API server has, and removes what is to be
// removed.
func TestAStatusIsWrittenWhole(t *testing.T) {
	for name, c := range map[string]struct {
		before, after ferryStatus
		want          string
	}{
		"the first":           {ferryStatus{}, ferryStatus{Seats: 3}, `{"seats":3,"taken":0}`},
		"a counter":           {ferryStatus{Seats: 3}, ferryStatus{Seats: 3, Taken: 1}, `{"taken":1}`},
		"down to zero":        {ferryStatus{Seats: 3, Taken: 1}, ferryStatus{Seats: 3}, `{"taken":0}`},
		"a zero that goes":    {ferryStatus{Seats: 1, Taken: 1, Places: map[string]int32{"bow": 0}}, ferryStatus{Seats: 1, Taken: 1}, `{"places":null}`},
		"a struct that comes": {ferryStatus{Seats: 1, Taken: 1}, ferryStatus{Seats: 1, Taken: 1, Crew: &ferryCrew{}}, `{"crew":{"aboard":0}}`},
		"a struct that goes":  {ferryStatus{Seats: 1, Taken: 1, Crew: &ferryCrew{}}, ferryStatus{Seats: 1, Taken: 1}, `{"crew":null}`},
		"a list":              {ferryStatus{Seats: 1, Taken: 1, Names: []string{"a"}}, ferryStatus{Seats: 1, Taken: 1, Names: []string{"b"}}, `{"names":["b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Name: "b", ResourceVersion: "7"}
			before := &ferry{ConfigMap: corev1.ConfigMap{ObjectMeta: meta}, Status: c.before}
			after := &ferry{ConfigMap: corev1.ConfigMap{ObjectMeta: meta}, Status: c.after}
			patch, err := client.MergeFromWithOptions(beforeStatus(before, after), client.MergeFromWithOptimisticLock{}).Data(after)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"metadata":{"resourceVersion":"7"},"status":` + c.want + `}`; string(patch) != want {
				t.Errorf("%s, want %s", patch, want)
			}
		})
	}
}

// What the partition holds is not waited for.
func TestHeldByThePartition(t *testing.T) {
	f := picture(Strategy{MaxUnavailable: 1, Partition: 2}, "2 1 1")
	rep := report{plan: makePlan(f), recorded: &pass.Recorded{Update: &revision.Revision{Name: "web-2"}}}
	c := rep.rollout(time.Now()).Updated
	if c.Reason != pass.RolloutWaiting || c.Message != "1 of 3 children updated; 2 are held by the partition" {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
}
