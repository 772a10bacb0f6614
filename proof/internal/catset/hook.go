package catset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file is the hook of CatSets as it is seen from outside: questions and answers in Metacontroller's form.

// Question is what a sync hook is sent. A decorator's has other names for the same.
type Question struct {
	Parent   *unstructured.Unstructured
	Children map[string]map[string]*unstructured.Unstructured
	Related  map[string]map[string]*unstructured.Unstructured
	// Attached says that it comes from a decorator. Finalizing says that the finalize hook is asked, what to leave of a
	// parent that goes: nothing. The asker's URL tells.
	Attached, Finalizing bool
	// Only is the kind of children that whoever asks has, empty if it has all. The asker's URL tells.
	Only string
}

var errNoObject = errors.New("no question: it is about no object")

// Read reads the body of a request. It returns an error if that is no question.
func Read(body []byte) (*Question, error) {
	var q struct {
		Parent      *unstructured.Unstructured                       `json:"parent"`
		Object      *unstructured.Unstructured                       `json:"object"`
		Children    map[string]map[string]*unstructured.Unstructured `json:"children"`
		Attachments map[string]map[string]*unstructured.Unstructured `json:"attachments"`
		Related     map[string]map[string]*unstructured.Unstructured `json:"related"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("no question: %w", err)
	}
	switch {
	case q.Object != nil:
		return &Question{Parent: q.Object, Children: q.Attachments, Attached: true}, nil
	case q.Parent != nil:
		return &Question{Parent: q.Parent, Children: q.Children, Related: q.Related}, nil
	}
	return nil, errNoObject
}

// Answer is the right answer.
func (q *Question) Answer() map[string]any {
	if q.Finalizing {
		return map[string]any{"attachments": []any{}, "finalized": len(q.Children["Pod.v1"]) == 0}
	}
	pods := make([]client.Object, 0, len(q.Children["Pod.v1"]))
	for _, pod := range q.Children["Pod.v1"] {
		pods = append(pods, pod)
	}
	children := []any{}
	for _, child := range Answer(q.Parent) {
		if q.Only == "" || q.Only == child.GetKind() {
			children = append(children, child.Object)
		}
	}
	if q.Only != "" && q.Only != "Pod" {
		return map[string]any{"children": children}
	}
	if q.Attached {
		return map[string]any{"annotations": Annotations(q.Parent), "attachments": children}
	}
	status := Status(pods)
	if stepped(q.Parent) {
		status["step"] = nextStep(q.Parent)
	}
	return map[string]any{"status": status, "children": children}
}

// Note is what the rules are to know of the question, which was asked after the write of that version.
func (q *Question) Note(rv uint64, failed bool) check.Note {
	told, versions := []client.Object{}, []string{}
	for _, children := range q.Children {
		for _, child := range children {
			told, versions = append(told, child), append(versions, child.GetResourceVersion())
		}
	}
	if LimitsOf(q.Parent) == Approved {
		versions = append(versions, q.permit().GetResourceVersion())
	}
	slices.Sort(versions)
	return check.Note{
		RV: rv, Parent: q.Parent.GetUID(), Sent: q.Parent, Told: told, Failed: failed,
		Question: strings.Join(append([]string{q.Parent.GetResourceVersion()}, versions...), " "),
	}
}
