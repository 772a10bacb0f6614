// Package bluegreen is the hook of the blue-green example: two ReplicaSets, and a Service in front of one of them.
//
// A new template goes to the colour that the Service does not point to. When all of its pods are available the Service
// is switched, at once for all, and the other colour goes down to no pods. The Service belongs to a revision, so a
// BlueGreen has a history, and an undo is a switch like any other.
package bluegreen

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"strconv"
)

// m is an object in JSON.
type m = map[string]any

// templateLabel is the label that says which template a ReplicaSet has.
const templateLabel = "examples.cairn.dev/template"

// request is what cairn sends: the parent, and the children that it has, by name.
type request struct {
	Parent struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Replicas int `json:"replicas"`
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			Ports    []any `json:"ports"`
			Template m     `json:"template"`
		} `json:"spec"`
	} `json:"parent"`
	Children struct {
		ReplicaSets map[string]*replicaSet `json:"ReplicaSet.apps/v1"`
		Services    map[string]struct {
			Spec struct {
				Selector map[string]string `json:"selector"`
			} `json:"spec"`
		} `json:"Service.v1"`
	} `json:"children"`
}

type replicaSet struct {
	Metadata struct {
		Labels     map[string]string `json:"labels"`
		Generation int               `json:"generation"`
	} `json:"metadata"`
	Spec   m `json:"spec"`
	Status struct {
		Replicas           int `json:"replicas"`
		AvailableReplicas  int `json:"availableReplicas"`
		ObservedGeneration int `json:"observedGeneration"`
	} `json:"status"`
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

// sync says what a BlueGreen wants. Its only memory is the children: which colour the Service points to, and which
// template each ReplicaSet has.
func sync(in request) m {
	live, next := "blue", "green"
	if service, exists := in.Children.Services[in.Parent.Metadata.Name]; exists && service.Spec.Selector["color"] == next {
		live, next = next, live
	}
	wish, replicas := templateHash(in.Parent.Spec.Template), in.Parent.Spec.Replicas
	was, spare := in.of(live), in.of(next)
	var children []m
	status, message := "True", "every request goes to "+live
	switch {
	case was.has(wish): // nothing to roll out; the other colour waits without pods
		children = append(children, in.fresh(live, replicas), in.kept(next, 0))
	case was == nil: // the first one of all, or lost: there is nothing to switch from
		children = append(children, in.fresh(live, replicas), in.kept(next, 0))
		status, message = "False", live+" is made"
	case spare != nil && !spare.has(wish) && !spare.empty(): // a template that is given up; its pods go first
		children = append(children, in.kept(live, replicas), in.kept(next, 0))
		status, message = "False", next+" goes down, to start again"
	default:
		children = append(children, in.kept(live, replicas), in.fresh(next, replicas))
		status, message = "False", fmt.Sprintf("waiting for %d pods of %s", replicas, next)
		if spare.has(wish) && spare.available(replicas) {
			live, status, message = next, "True", "every request goes to "+next
		}
	}
	out := []m{in.service(live)}
	for _, child := range children {
		if child != nil {
			out = append(out, child)
		}
	}
	return m{"status": m{"live": live, "conditions": []m{{"type": "Live", "status": status, "message": message}}}, "children": out}
}

func (in request) of(color string) *replicaSet {
	return in.Children.ReplicaSets[in.Parent.Metadata.Name+"-"+color]
}

func (s *replicaSet) has(template string) bool {
	return s != nil && s.Metadata.Labels[templateLabel] == template
}

// available reports whether the ReplicaSet has so many pods that serve, and no older ones are counted among them.
func (s *replicaSet) available(replicas int) bool {
	return s.Status.ObservedGeneration >= s.Metadata.Generation && s.Status.AvailableReplicas >= replicas && s.Status.Replicas == replicas
}

// empty reports whether the ReplicaSet has no pods and makes none, so that all that it will have are of its next
// template.
func (s *replicaSet) empty() bool {
	return s.Status.ObservedGeneration >= s.Metadata.Generation && s.Spec["replicas"] == 0.0 && s.Status.Replicas == 0
}

// fresh is a ReplicaSet with the template that the parent has now.
func (in request) fresh(color string, replicas int) m {
	template := maps.Clone(in.Parent.Spec.Template)
	metadata, _ := template["metadata"].(m)
	metadata = maps.Clone(metadata)
	labels, _ := metadata["labels"].(m)
	labels = maps.Clone(labels)
	if metadata == nil || labels == nil {
		metadata, labels = m{}, m{}
	}
	labels["color"] = color
	metadata["labels"], template["metadata"] = labels, metadata
	spec := m{"replicas": replicas, "selector": m{"matchLabels": in.labels(color)}, "template": template}
	return in.replicaSet(color, templateHash(in.Parent.Spec.Template), spec)
}

// kept is a ReplicaSet as it is, but for the number of its pods. It is nil if there is none.
func (in request) kept(color string, replicas int) m {
	s := in.of(color)
	if s == nil {
		return nil
	}
	spec := maps.Clone(s.Spec)
	spec["replicas"] = replicas
	return in.replicaSet(color, s.Metadata.Labels[templateLabel], spec)
}

func (in request) replicaSet(color, template string, spec m) m {
	labels := in.labels(color)
	labels[templateLabel] = template
	metadata := m{"name": in.Parent.Metadata.Name + "-" + color, "labels": labels}
	return m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
}

func (in request) service(color string) m {
	return m{
		"apiVersion": "v1", "kind": "Service",
		"metadata": m{"name": in.Parent.Metadata.Name, "labels": maps.Clone(in.Parent.Spec.Selector.MatchLabels)},
		"spec":     m{"selector": in.labels(color), "ports": in.Parent.Spec.Ports},
	}
}

// labels are those that the pods of a colour, and nothing else, have.
func (in request) labels(color string) map[string]string {
	out := map[string]string{"color": color}
	maps.Copy(out, in.Parent.Spec.Selector.MatchLabels)
	return out
}

// templateHash is short enough for a label. Encoding sorts keys, so one template has one hash.
func templateHash(template m) string {
	text, _ := json.Marshal(template) //nolint:errchkjson // it was JSON before
	h := fnv.New64a()
	_, _ = h.Write(text)
	return strconv.FormatUint(h.Sum64(), 16)
}
