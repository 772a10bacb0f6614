package status

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestKindsThatPeopleRun: the objects of popular operators are done, in progress or failed by their statuses, and in an
// unknown state without one.
func TestKindsThatPeopleRun(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Kind                         string
		Spec, Done, Progress, Failed map[string]any
	}
	if err := yaml.UnmarshalStrict(data, &rows); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, row := range rows {
		kinds[row.Kind] = true
		group, kind, _ := strings.Cut(row.Kind, "/")
		for want, status := range map[State]map[string]any{Done: row.Done, InProgress: row.Progress, Failed: row.Failed, Unknown: {}} {
			if status == nil {
				continue
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"generation": int64(1)}, "status": status,
			}}
			if row.Spec != nil {
				o.Object["spec"] = row.Spec
			}
			fix(o.Object)
			conditions(t, status)
			if got := reportedBy(o); got.state != want && (want != Unknown || got.state != InProgress) {
				t.Errorf("%s: %s: %s; want %s", row.Kind, got.state, got.reason, want)
			}
		}
	}
	if len(kinds) < 80 {
		t.Errorf("%d kinds", len(kinds))
	}
}

// conditions makes conditions of Ready=True:Reason.
func conditions(t *testing.T, status map[string]any) {
	t.Helper()
	list, _ := status["conditions"].([]any)
	for n := range list {
		kind, value, found := strings.Cut(list[n].(string), "=")
		if !found {
			t.Fatal(list[n])
		}
		value, reason, _ := strings.Cut(value, ":")
		list[n] = map[string]any{"type": kind, "status": value, "reason": reason}
	}
}
