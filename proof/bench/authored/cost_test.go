package authored

// This file holds the counts, and the pair itself, to what they may be. Times are for the benchmark; these are the same
// on every machine.

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// most is how many times the requests of the StatefulSet controller the builder's may be.
const most = 1.2

// TestCostOfAuthored: whoever makes a controller with the builder asks the API server for little more than the
// StatefulSet controller does. Statuses and events are left out: how often they are written depends on the machine.
func TestCostOfAuthored(t *testing.T) {
	load := lab.Load{Parents: 2, Children: 10}
	requests := map[string]map[string]int{}
	pods := map[string][]unstructured.Unstructured{}
	for _, s := range pair {
		c, p := s.start(t, load)
		requests[s.name] = map[string]int{}
		measure := func(phase string, change func()) {
			cost := c.Measure(p, change)
			t.Logf("%s, %s: %s", s.name, phase, cost.Tally)
			if len(cost.Refused) > 0 {
				t.Errorf("%s, %s: some requests were refused: %v", s.name, phase, cost.Refused)
			}
			maps.DeleteFunc(cost.Requests, func(what string, _ int) bool {
				return strings.HasSuffix(what, "/status") || strings.HasSuffix(what, " events")
			})
			requests[s.name][phase] = cost.Total()
		}
		measure("created", c.Create)
		pods[s.name] = podsOf(c)
		measure("touched", func() { touch(c, 3) })
		measure("rolled", c.Edit)
		measure("undone", func() { c.EditTo(1) })
		p.Stop()
	}
	for phase, theirs := range requests[statefulSet] {
		ours := requests[authored][phase]
		if float64(ours) > most*float64(theirs) {
			t.Errorf("%s: %d requests, want at most %.1f times those of the StatefulSet controller, which are %d", phase, ours, most, theirs)
		}
	}
	if diff := cmp.Diff(pods[statefulSet], pods[authored]); diff != "" {
		t.Errorf("the pods of the two differ (-StatefulSet +builder):\n%s", diff)
	}
}

// podsOf are the pods of a load, without what must be different in two of the same.
func podsOf(c *lab.Cluster) []unstructured.Unstructured {
	c.Helper()
	list, err := c.User.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(c.Namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, pod := range list.Items {
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "namespace", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(pod.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(pod.Object, "metadata", "labels", "controller-revision-hash")
		unstructured.RemoveNestedField(pod.Object, "status")
		volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		for _, volume := range volumes { // that of the service account's token has a name by chance
			volume.(m)["name"] = "token"
		}
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		for _, container := range containers {
			for _, mount := range container.(m)["volumeMounts"].([]any) {
				mount.(m)["name"] = "token"
			}
		}
		if err := unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes"); err != nil {
			c.Fatal(err)
		}
		if err := unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers"); err != nil {
			c.Fatal(err)
		}
	}
	return list.Items
}
