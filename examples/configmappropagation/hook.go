// Package configmappropagation is the hook of the config map propagation example: copies of one config map in all
// namespaces with certain labels.
//
// The parent is in no namespace. Its customize hook says which objects it needs to see, the source and the namespaces,
// and cairn asks the sync hook again when one of them changes. Both hooks speak version v2, in which everything that is
// in a namespace is named by namespace/name, and an answer may hold nothing that the protocol does not know.
package configmappropagation

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// m is an object in JSON.
type m = map[string]any

// request is what cairn sends: the parent, the copies that there are, and the related objects.
type request struct {
	Parent struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Source struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"source"`
			NamespaceSelector m `json:"namespaceSelector"`
		} `json:"spec"`
	} `json:"parent"`
	Children struct {
		ConfigMaps map[string]configMap `json:"ConfigMap.v1"`
	} `json:"children"`
	Related struct {
		ConfigMaps map[string]configMap `json:"ConfigMap.v1"`
		Namespaces map[string]struct {
			Metadata struct {
				DeletionTimestamp string `json:"deletionTimestamp"`
			} `json:"metadata"`
		} `json:"Namespace.v1"`
	} `json:"related"`
}

type configMap struct {
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string]string `json:"binaryData,omitempty"`
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

// customize says what sync needs to see.
func customize(in request) m {
	source := in.Parent.Spec.Source
	return m{"relatedResources": []m{
		{"apiVersion": "v1", "resource": "configmaps", "namespace": source.Namespace, "names": []string{source.Name}},
		{"apiVersion": "v1", "resource": "namespaces", "labelSelector": in.Parent.Spec.NamespaceSelector},
	}}
}

// sync wants a copy in each of the namespaces, the source's own left out. If there is no source, copies stay as they
// are: a source that is deleted and recreated takes nothing from its users.
func sync(in request) m {
	from := in.Parent.Spec.Source
	source, found := in.Related.ConfigMaps[from.Namespace+"/"+from.Name]
	children := []m{}
	for _, namespace := range slices.Sorted(maps.Keys(in.Related.Namespaces)) {
		content, exists := source, found
		if !found {
			content, exists = in.Children.ConfigMaps[namespace+"/"+from.Name]
		}
		if !exists || namespace == from.Namespace || in.Related.Namespaces[namespace].Metadata.DeletionTimestamp != "" {
			continue
		}
		child := m{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": m{"namespace": namespace, "name": from.Name, "labels": m{"propagated-by": in.Parent.Metadata.Name}},
		}
		if content.Data != nil {
			child["data"] = content.Data
		}
		if content.BinaryData != nil {
			child["binaryData"] = content.BinaryData
		}
		children = append(children, child)
	}
	condition := m{"type": "SourceFound", "status": "True", "message": "copies follow the source"}
	if !found {
		condition = m{"type": "SourceFound", "status": "False", "message": "copies stay as they are"}
	}
	return m{"status": m{"copies": len(children), "conditions": []m{condition}}, "children": children}
}
