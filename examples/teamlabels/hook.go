// Package teamlabels is the hook of the team labels example: Deployments get the labels of their namespace that say
// whose they are.
//
// It is the smallest decorator: it makes nothing, it only sets labels on objects that others made. A label that the
// namespace does not have is removed, which is what null stands for in an answer.
package teamlabels

import (
	"encoding/json"
	"net/http"
)

// The labels that Deployments get from their namespace.
var labels = []string{"team", "cost-centre"}

// m is an object in JSON.
type m = map[string]any

// request is what cairn sends: the object, and the related objects that customize asked for. A customize hook gets the
// object as its parent.
type request struct {
	Parent  object `json:"parent"`
	Object  object `json:"object"`
	Related struct {
		Namespaces map[string]object `json:"Namespace.v1"`
	} `json:"related"`
}

type object struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

// Hook serves the customize and sync hooks.
func Hook() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /customize", answer(customize))
	mux.HandleFunc("POST /sync", answer(sync))
	return mux
}

func answer(f func(request) m) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f(in)) // half an answer is none: cairn asks again
	}
}

// customize asks for the namespace of the object.
func customize(in request) m {
	return m{"relatedResources": []m{{"apiVersion": "v1", "resource": "namespaces", "names": []string{in.Parent.Metadata.Namespace}}}}
}

// sync says which labels the object has.
func sync(in request) m {
	of, found := in.Related.Namespaces[in.Object.Metadata.Namespace]
	set := map[string]*string{}
	for _, key := range labels {
		if value, has := of.Metadata.Labels[key]; has {
			set[key] = &value
		} else if found {
			set[key] = nil
		}
	}
	return m{"labels": set}
}
