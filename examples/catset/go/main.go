// Command catset is the hook of the CatSet example: it answers what pods a CatSet wants.
//
// A CatSet is a set of pods with names that stay, which come one after the other, like a small StatefulSet. All that this
// program knows is what one CatSet looks like; revisions, rollouts and the way back are cairn's.
// examples/catset/python/catset.py is the same without Go.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"
)

// m is an object in JSON.
type m = map[string]any

// request is what cairn sends: the parent, and the children that it has, by kind and name.
type request struct {
	Parent struct {
		Metadata struct{ Name string }
		Spec     struct {
			Replicas    int
			ServiceName string
			Template    struct {
				Metadata struct{ Labels map[string]string }
				Spec     m
			}
		}
	}
	Children map[string]map[string]struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
}

// response is what we answer: every child that is wanted, in the order in which they are to be updated.
type response struct {
	Status   m   `json:"status"`
	Children []m `json:"children"`
}

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func serve(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(sync(in)); err != nil {
		log.Print(err)
	}
}

// sync says what a CatSet wants: pods 0 to replicas-1, the last one first. While it grows, a new pod is wanted once all
// before it are ready; one that is there stays, whatever the others do.
func sync(in request) response {
	pods := in.Children["Pod.v1"]
	name := func(i int) string { return fmt.Sprintf("%s-%d", in.Parent.Metadata.Name, i) }
	wanted, readyReplicas, allReady := 0, 0, true
	for i := range in.Parent.Spec.Replicas {
		pod, exists := pods[name(i)]
		if exists || allReady {
			wanted = i + 1
		}
		ready := false
		for _, c := range pod.Status.Conditions {
			ready = ready || c.Type == "Ready" && c.Status == "True"
		}
		if ready {
			readyReplicas++
		}
		allReady = allReady && ready
	}
	out := response{Status: m{"replicas": len(pods), "readyReplicas": readyReplicas}, Children: []m{}}
	for i := wanted - 1; i >= 0; i-- {
		out.Children = append(out.Children, podOf(in, name(i)))
	}
	return out
}

// podOf is one pod of a CatSet.
func podOf(in request, name string) m {
	template := in.Parent.Spec.Template
	labels := m{"cat": name}
	for k, v := range template.Metadata.Labels {
		labels[k] = v
	}
	spec := m{"hostname": name, "subdomain": in.Parent.Spec.ServiceName}
	for k, v := range template.Spec {
		spec[k] = v
	}
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name, "labels": labels}, "spec": spec}
}
