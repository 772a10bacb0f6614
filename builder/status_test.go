package builder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// A patch of a status sets all that is required, for nobody knows what the API server has, and removes what is to be removed.
func TestAStatusIsWrittenWhole(t *testing.T) {
	for name, c := range map[string]struct {
		before, after ferryStatus
		want          string
	}{
		"the first":           {ferryStatus{}, ferryStatus{Seats: 3}, `{"names":null,"seats":3,"taken":0}`},
		"a counter":           {ferryStatus{Seats: 3}, ferryStatus{Seats: 3, Taken: 1}, `{"names":null,"taken":1}`},
		"down to zero":        {ferryStatus{Seats: 3, Taken: 1}, ferryStatus{Seats: 3}, `{"names":null,"taken":0}`},
		"a zero that goes":    {ferryStatus{Seats: 1, Taken: 1, Places: map[string]int32{"bow": 0}}, ferryStatus{Seats: 1, Taken: 1}, `{"names":null,"places":null}`},
		"a struct that comes": {ferryStatus{Seats: 1, Taken: 1}, ferryStatus{Seats: 1, Taken: 1, Crew: &ferryCrew{}}, `{"crew":{"aboard":0},"names":null}`},
		"a struct that goes":  {ferryStatus{Seats: 1, Taken: 1, Crew: &ferryCrew{}}, ferryStatus{Seats: 1, Taken: 1}, `{"crew":null,"names":null}`},
		"a list":              {ferryStatus{Seats: 1, Taken: 1, Names: []string{"a"}}, ferryStatus{Seats: 1, Taken: 1, Names: []string{"b"}}, `{"names":["b"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Name: "b", ResourceVersion: "7"}
			before := &ferry{ConfigMap: corev1.ConfigMap{ObjectMeta: meta}, Status: c.before}
			after := &ferry{ConfigMap: corev1.ConfigMap{ObjectMeta: meta}, Status: c.after}
			stored, err := asStored(before, after)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}).Data(after)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"metadata":{"resourceVersion":"7"},"status":` + c.want + `}`; string(patch) != want {
				t.Errorf("%s, want %s", patch, want)
			}
		})
	}
}
