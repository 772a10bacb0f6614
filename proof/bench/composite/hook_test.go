package composite

// This file is the webhook: what Metacontroller was measured with, and counted. It wants one pod for each replica.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// question is as much of a request as the hook looks at.
type question struct {
	Parent struct {
		Metadata struct{ Name string }
		Spec     struct {
			Replicas int
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     json.RawMessage
			}
		}
	}
	Children map[string]map[string]struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
}

// startHook serves the hook until the test ends, and returns its URL.
func startHook(tb testing.TB) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		counted.Call(len(body))
		var q question
		if err := json.Unmarshal(body, &q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer(&q)) // the manager may have gone
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

// answer wants pods 0 to replicas-1, in this order, and reports how many there are and how many of them are ready.
func answer(q *question) m {
	pods := q.Children["Pod.v1"]
	readyReplicas := 0
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				readyReplicas++
			}
		}
	}
	template, children := q.Parent.Spec.Template, []m{}
	for i := range q.Parent.Spec.Replicas {
		children = append(children, m{
			"apiVersion": "v1", "kind": "Pod", "spec": template.Spec,
			"metadata": m{"name": fmt.Sprintf("%s-%d", q.Parent.Metadata.Name, i), "labels": template.Metadata.Labels},
		})
	}
	return m{"status": m{"replicas": len(pods), "readyReplicas": readyReplicas}, "children": children}
}
