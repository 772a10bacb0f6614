package indexedjob

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask returns what the hook says of a job with five indexes, two at a time.
func ask(t *testing.T, done string, pods map[string]string) (names string, answer response) {
	t.Helper()
	server := httptest.NewServer(Hook())
	defer server.Close()
	children := m{}
	for name, phase := range pods {
		children[name] = m{"status": m{"phase": phase}}
	}
	observed, err := json.Marshal(children)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"parent": {"metadata": {"name": "sum"}, "status": {"done": [%s]}, "spec": {"completions": 5, "parallelism": 2, "template": {
		"metadata": {"labels": {"app": "sum"}}, "spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}, {"name": "other"}]}}}},
		"children": {"Pod.v1": %s}}`, done, observed)
	r, err := http.Post(server.URL+"/sync", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", r.Status, err)
	}
	var list []string
	for _, child := range answer.Children {
		list = append(list, child["metadata"].(m)["name"].(string))
	}
	return strings.Join(list, " "), answer
}

func TestSync(t *testing.T) {
	for name, c := range map[string]struct {
		done string
		pods map[string]string
		want string
		// then is which indexes are done, and complete.
		then, complete string
	}{
		"at first":              {"", nil, "sum-0 sum-1", "[]", "False"},
		"two run":               {"", map[string]string{"sum-0": "Running", "sum-1": "Pending"}, "sum-0 sum-1", "[]", "False"},
		"one is done":           {"", map[string]string{"sum-0": "Running", "sum-1": "Succeeded"}, "sum-0 sum-1 sum-2", "[1]", "False"},
		"its pod is gone":       {"1", map[string]string{"sum-0": "Running"}, "sum-0 sum-2", "[1]", "False"},
		"a pod is lost":         {"", map[string]string{"sum-1": "Running"}, "sum-0 sum-1", "[]", "False"},
		"a pod has failed":      {"", map[string]string{"sum-0": "Failed", "sum-1": "Running"}, "sum-1", "[]", "False"},
		"the last ones":         {"0,1,2", map[string]string{"sum-3": "Succeeded", "sum-4": "Running"}, "sum-3 sum-4", "[0 1 2 3]", "False"},
		"all are done":          {"0,1,2,3", map[string]string{"sum-4": "Succeeded"}, "sum-4", "[0 1 2 3 4]", "True"},
		"an index that is gone": {"0,1,2,3,4,5", map[string]string{"sum-5": "Succeeded"}, "", "[0 1 2 3 4]", "True"},
	} {
		t.Run(name, func(t *testing.T) {
			names, answer := ask(t, c.done, c.pods)
			condition := answer.Status["conditions"].([]any)[0].(m)
			if names != c.want || fmt.Sprint(answer.Status["done"]) != c.then || condition["status"] != c.complete || answer.Children == nil {
				t.Errorf("pods %q, status %v; want %q, %s, %s", names, answer.Status, c.want, c.then, c.complete)
			}
		})
	}
}

func TestPodsKnowTheirIndex(t *testing.T) {
	_, answer := ask(t, "", nil)
	for i, child := range answer.Children {
		spec := child["spec"].(m)
		containers := fmt.Sprint(spec["containers"])
		want := fmt.Sprintf("[map[env:[map[name:JOB_COMPLETION_INDEX value:%d] map[name:A value:b]] name:main] map[env:[map[name:JOB_COMPLETION_INDEX value:%d]] name:other]]", i, i)
		if containers != want || spec["restartPolicy"] != "Never" || child["metadata"].(m)["labels"].(m)["app"] != "sum" {
			t.Errorf("%v", child)
		}
	}
}
