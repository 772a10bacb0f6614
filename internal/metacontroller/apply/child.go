package apply

import (
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// This file applies what a hook asked for to one child.

// LastApplied is the annotation that keeps what was applied last, as compact JSON. Metacontroller reads and writes the
// same one, so that a cluster can be handed over without touching a child.
const LastApplied = "metacontroller.k8s.io/last-applied-configuration"

// systemFields of metadata belong to the API server. They are ignored in a hook's answer, so that a hook may return the
// objects that it was sent.
var systemFields = [...]string{
	"selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields",
}

// Result says what applying a desired child to an observed one comes to.
type Result struct {
	// Object is what the child should be, complete, with the annotation and the observed resourceVersion: the body of an
	// update. It shares memory with what it was made of and may not be written to.
	Object map[string]any
	// Changed is true if Object differs from what was observed, in content or in what it says was applied last.
	Changed bool
	// Content is true if more than the annotation differs. A child that only lacks the right annotation need not be
	// recreated: its content is as desired.
	Content bool
	// Reapplied is true if this very desired child was applied before. A difference in content is then drift, or what the
	// API server makes of the desired child: defaults, admission. Tell them apart with [Served] before acting on it.
	Reapplied bool
}

// Child applies desired, as a hook answered it, to the observed child. served is what the API server makes of desired,
// see [Served], or nil if that is not known. It returns an error only if desired cannot be encoded.
//
// An annotation that cannot be read counts as absent: it was edited, and this apply writes it again.
func Child(observed, desired, served map[string]any) (Result, error) {
	desired = Own(desired)
	text, err := json.Marshal(desired)
	if err != nil {
		return Result{}, err
	}
	var last map[string]any
	written := annotation(observed)
	if written != "" {
		last = decode(written)
	}
	want := desired
	if served != nil {
		want = project(desired, served)
	}
	merged, _ := Merge(observed, last, want)
	merged = resetSystemFields(merged, observed)

	r := Result{Object: merged}
	r.Content = len(r.Differences(observed, 1)) > 0
	r.Reapplied = written == string(text) || last != nil && equal(last, desired)
	if r.Reapplied {
		// Equal in content, if not in bytes: no reason to write, and keep says so.
		text = []byte(written)
	}
	r.Object = annotated(merged, string(text))
	r.Changed = r.Content || written != string(text)
	return r, nil
}

// New returns a child as it is created: what the hook answered, with the annotation that remembers it. The caller adds
// the ControllerRef to a copy afterwards, because that is ours and not part of what was applied.
func New(desired map[string]any) (map[string]any, error) {
	desired = Own(desired)
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	return annotated(desired, string(text)), nil
}

// annotation returns what the child says was applied last, an empty string if it says nothing.
func annotation(child map[string]any) string {
	text, _ := object(object(child["metadata"])["annotations"])[LastApplied].(string)
	return text
}

// decode reads the annotation. The same decoder reads hook answers, so integers stay integers.
func decode(text string) map[string]any {
	var last map[string]any
	if utiljson.Unmarshal([]byte(text), &last) != nil {
		return nil
	}
	return last
}

// Own returns what a hook may set of a child: without the annotation, which a hook that returns what it was sent would
// otherwise nest in itself on every pass, and without the API server's fields. A null stays: Go programs write it for
// unset fields (creationTimestamp), and the annotation has it too. desired is only read; the result shares memory with
// it.
func Own(desired map[string]any) map[string]any {
	metadata := object(desired["metadata"])
	for _, field := range systemFields {
		if metadata[field] != nil {
			metadata = shallow(metadata, 0)
			delete(metadata, field)
			desired = shallow(desired, 0)
			desired["metadata"] = metadata
		}
	}
	annotations := object(metadata["annotations"])
	if _, there := annotations[LastApplied]; !there {
		return desired
	}
	annotations = shallow(annotations, 0)
	delete(annotations, LastApplied)
	metadata = shallow(metadata, 0)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	} else {
		metadata["annotations"] = annotations
	}
	desired = shallow(desired, 0)
	desired["metadata"] = metadata
	return desired
}

// resetSystemFields returns merged with status and the fields of the API server as they were observed.
func resetSystemFields(merged, observed map[string]any) map[string]any {
	if !equal(merged["status"], observed["status"]) {
		merged = reset(merged, observed, "status")
	}
	was := object(observed["metadata"])
	metadata := object(merged["metadata"])
	for _, field := range systemFields {
		if !equal(metadata[field], was[field]) {
			metadata = reset(metadata, was, field)
		}
	}
	if metadata == nil {
		return merged
	}
	merged = shallow(merged, 0)
	merged["metadata"] = metadata
	return merged
}

// reset returns a copy of o whose field is as it was.
func reset(o, was map[string]any, field string) map[string]any {
	o = shallow(o, 1)
	if value, there := was[field]; there {
		o[field] = value
	} else {
		delete(o, field)
	}
	return o
}

// annotated returns child with the annotation, copying only when it has to.
func annotated(child map[string]any, text string) map[string]any {
	if annotation(child) == text {
		return child
	}
	metadata := shallow(object(child["metadata"]), 1)
	annotations := shallow(object(metadata["annotations"]), 1)
	annotations[LastApplied] = text
	metadata["annotations"] = annotations
	child = shallow(child, 1)
	child["metadata"] = metadata
	return child
}
