// Package indexedjob is the hook of the indexed job example: one pod for each index, so many at a time.
//
// A pod that fails, or is lost before its index is done, is made again. Which indexes are done is remembered in the
// status of the parent, so a pod that succeeded may be deleted. Children that are what was asked for once are never
// updated (OnDelete), so there is nothing to roll out and no history.
package indexedjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
)

// m is an object in JSON.
type m = map[string]any

// request is what cairn sends: the parent, and the children that it has, by name.
type request struct {
	Parent struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Completions int `json:"completions"`
			Parallelism int `json:"parallelism"`
			Template    struct {
				Metadata m `json:"metadata"`
				Spec     m `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			Done []int `json:"done"`
		} `json:"status"`
	} `json:"parent"`
	Children struct {
		Pods map[string]struct {
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		} `json:"Pod.v1"`
	} `json:"children"`
}

// response is what we answer: the status, and every child that is wanted.
type response struct {
	Status   m   `json:"status"`
	Children []m `json:"children"`
}

// Hook serves the sync hook.
func Hook() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sync", func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(sync(in)) // half an answer is none: cairn asks again
	})
	return mux
}

// sync says what an IndexedJob wants: the pods that run or have succeeded, and new ones for the next indexes, up to the
// limit. A pod that failed is not wanted; once it is deleted its index is free again.
func sync(in request) response {
	job := in.Parent.Spec
	remembered := map[int]bool{}
	for _, i := range in.Parent.Status.Done {
		remembered[i] = true
	}
	name := func(i int) string { return in.Parent.Metadata.Name + "-" + strconv.Itoa(i) }
	done, wanted, active := []int{}, map[int]bool{}, 0
	for i := range job.Completions {
		pod, exists := in.Children.Pods[name(i)]
		switch {
		case exists && pod.Status.Phase == "Succeeded":
			remembered[i], wanted[i] = true, true
		case exists:
			active++ // also a failed one: the next takes its place when it is deleted
			wanted[i] = pod.Status.Phase != "Failed"
		}
		if remembered[i] {
			done = append(done, i)
		}
	}
	children := []m{}
	for i := range job.Completions {
		_, exists := in.Children.Pods[name(i)]
		if !exists && !remembered[i] && active < job.Parallelism {
			active++
			wanted[i] = true
		}
		if wanted[i] {
			children = append(children, podOf(in, i, name(i)))
		}
	}
	complete := "False"
	if len(done) == job.Completions {
		complete = "True"
	}
	message := fmt.Sprintf("%d of %d indexes are done", len(done), job.Completions)
	conditions := []m{{"type": "Complete", "status": complete, "message": message}}
	return response{Status: m{"done": done, "active": active, "conditions": conditions}, Children: children}
}

// podOf is the pod of one index. Its containers know the index from their environment.
func podOf(in request, index int, name string) m {
	template := in.Parent.Spec.Template
	metadata := m{}
	maps.Copy(metadata, template.Metadata)
	metadata["name"] = name
	spec := m{"restartPolicy": "Never"}
	maps.Copy(spec, template.Spec)
	containers, _ := spec["containers"].([]any)
	indexed := make([]any, 0, len(containers))
	for _, c := range containers {
		container, _ := c.(m)
		container = maps.Clone(container)
		env, _ := container["env"].([]any)
		container["env"] = append([]any{m{"name": "JOB_COMPLETION_INDEX", "value": strconv.Itoa(index)}}, env...)
		indexed = append(indexed, container)
	}
	spec["containers"] = indexed
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}
