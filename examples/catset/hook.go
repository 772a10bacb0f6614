// Package catset is the hook of the CatSet example: it answers what pods a CatSet wants.
//
// A CatSet is a set of pods with names that stay, which come one after the other, like a small StatefulSet. All that
// this package knows is what one CatSet looks like; revisions, rollouts and the way back are cairn's. Folder go holds
// the program, python the same hook without Go.
package catset

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
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
			Replicas    int    `json:"replicas"`
			ServiceName string `json:"serviceName"`
			Template    struct {
				Metadata struct {
					Labels      map[string]string `json:"labels"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
				Spec m `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			Replicas int `json:"replicas"`
		} `json:"status"`
	} `json:"parent"`
	Children struct {
		Pods map[string]pod `json:"Pod.v1"`
	} `json:"children"`
}

type pod struct {
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func (p pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// response is what we answer: every child that is wanted, in the order in which they are to be updated.
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

// sync says what a CatSet wants: pods 0 to replicas-1, the last one first. While it grows, a new pod is wanted once all
// before it are ready. One that was wanted before stays wanted, whatever the others do: status.replicas remembers how
// many. So a lost one is recreated at once, and at the revision that it had.
func sync(in request) response {
	name := func(i int) string { return fmt.Sprintf("%s-%d", in.Parent.Metadata.Name, i) }
	wanted, readyReplicas := 0, 0
	for i := range in.Parent.Spec.Replicas {
		pod, exists := in.Children.Pods[name(i)]
		if exists || i < in.Parent.Status.Replicas || i == readyReplicas {
			wanted = i + 1
		}
		if pod.ready() {
			readyReplicas++
		}
	}
	out := response{Status: m{"replicas": wanted, "readyReplicas": readyReplicas}, Children: []m{}}
	for i := wanted - 1; i >= 0; i-- {
		out.Children = append(out.Children, podOf(in, name(i)))
	}
	return out
}

// podOf is one pod of a CatSet.
func podOf(in request, name string) m {
	template := in.Parent.Spec.Template
	labels := map[string]string{"cat": name}
	maps.Copy(labels, template.Metadata.Labels)
	metadata := m{"name": name, "labels": labels}
	if template.Metadata.Annotations != nil {
		metadata["annotations"] = template.Metadata.Annotations
	}
	spec := m{"hostname": name}
	if service := in.Parent.Spec.ServiceName; service != "" {
		spec["subdomain"] = service
	}
	maps.Copy(spec, template.Spec)
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}
