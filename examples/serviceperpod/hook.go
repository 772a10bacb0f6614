// Package serviceperpod is the hook of the service-per-pod example: each pod of a StatefulSet gets a Service of its
// own.
//
// It decorates StatefulSets, whatever their owner, that ask for it by two annotations: the label that tells pods apart,
// and the ports, as 80:8080,443:8443. When the StatefulSet is deleted, or loses an annotation, a finalize hook makes
// sure that the Services are deleted first.
package serviceperpod

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The annotations.
const (
	labelAnnotation = "service-per-pod-label"
	portsAnnotation = "service-per-pod-ports"
)

// m is an object in JSON.
type m = map[string]any

// request is what cairn sends: the decorated object, and the attachments that it has, by name.
type request struct {
	Object struct {
		Metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int `json:"replicas"`
			Ordinals struct {
				Start int `json:"start"`
			} `json:"ordinals"`
		} `json:"spec"`
	} `json:"object"`
	Attachments struct {
		Services map[string]m `json:"Service.v1"`
	} `json:"attachments"`
}

// response is what we answer: every attachment that is wanted. Finalized says that the object may go.
type response struct {
	Attachments []m  `json:"attachments"`
	Finalized   bool `json:"finalized"`
}

// Hook serves the sync and finalize hooks.
func Hook() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sync", answer(sync))
	mux.HandleFunc("POST /finalize", answer(finalize))
	return mux
}

func answer(f func(request) (response, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(in)
		if err != nil { // an answer that is no answer changes nothing, and is reported on the object
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // half an answer is none: cairn asks again
	}
}

// sync wants one Service for each ordinal.
func sync(in request) (response, error) {
	ports, err := parsePorts(in.Object.Metadata.Annotations[portsAnnotation])
	if err != nil {
		return response{}, err
	}
	replicas := 1
	if in.Object.Spec.Replicas != nil {
		replicas = *in.Object.Spec.Replicas
	}
	label := in.Object.Metadata.Annotations[labelAnnotation]
	out := response{Attachments: []m{}}
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", in.Object.Metadata.Name, in.Object.Spec.Ordinals.Start+i)
		out.Attachments = append(out.Attachments, m{
			"apiVersion": "v1", "kind": "Service",
			"metadata": m{"name": name, "labels": m{"app": "service-per-pod"}},
			"spec":     m{"selector": m{label: name}, "ports": ports},
		})
	}
	return out, nil
}

// finalize wants no Services, and is done when none is left.
func finalize(in request) (response, error) {
	return response{Attachments: []m{}, Finalized: len(in.Attachments.Services) == 0}, nil
}

// parsePorts reads a list such as 80:8080,443:8443. One number is port and target.
func parsePorts(text string) ([]m, error) {
	var ports []m
	for item := range strings.SplitSeq(text, ",") {
		from, to, both := strings.Cut(item, ":")
		if !both {
			to = from
		}
		port, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no port: %w", portsAnnotation, item, err)
		}
		target, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no port: %w", portsAnnotation, item, err)
		}
		ports = append(ports, m{"name": "port-" + from, "port": port, "targetPort": target})
	}
	return ports, nil
}
