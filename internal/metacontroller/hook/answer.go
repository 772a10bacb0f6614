package hook

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"
)

// This file reads answers of sync and finalize hooks.

// Presence tells apart three things that most decoders do not.
type Presence string

// What a field of an answer can be.
const (
	Absent Presence = "absent"
	Null   Presence = "null"
	Given  Presence = "given"
)

// Answer is the answer of a sync or finalize hook. Callers with the same question share it: it must not be changed.
type Answer struct {
	// Status is what it wants the parent's status to be. Absent is fine. For a decorator, absent and null leave the
	// status as it is.
	Status         map[string]any
	StatusPresence Presence
	// Children are the children, or attachments, that there should be, in the hook's order, with their namespace filled
	// in.
	Children []*unstructured.Unstructured
	// ChildrenPresence is Absent only if that can do no harm: the controller declares no kind of child, or a finalize hook
	// says that it is done, and the garbage collector deletes the children. Nothing may be deleted because of it. It is
	// Null for a list that a Go program left nil, which means "none" like an empty list.
	ChildrenPresence Presence
	// Labels and Annotations are what a decorator wants on its object; nil for a key deletes it.
	Labels, Annotations map[string]*string
	// ResyncAfter is after what time the hook asks to be called again even if nothing changes, 0 for never.
	ResyncAfter time.Duration
	// Finalized is true if a finalize hook has nothing left to do.
	Finalized bool

	kept any
}

// keeping guards the field kept of all answers.
var keeping sync.Mutex

// Keep keeps what was made of the answer for as long as the answer is remembered ([Memory] is bounded; what callers
// keep elsewhere is not). It replaces what was kept before.
func (a *Answer) Keep(made any) {
	keeping.Lock()
	defer keeping.Unlock()
	a.kept = made
}

// Kept returns what was kept last, nil if nothing was.
func (a *Answer) Kept() any {
	keeping.Lock()
	defer keeping.Unlock()
	return a.kept
}

// Form is what an answer has to look like. It is a function of its fields; whatever the bytes, it returns an answer or
// a failure.
type Form struct {
	Hook Kind
	Type Type
	// Strict refuses unknown and duplicate fields.
	Strict bool
	// Namespace is the parent's, empty if the parent is cluster-scoped.
	Namespace string
	// Kinds are the kinds that children may have.
	Kinds []ChildKind
}

// Decode reads the body of an answer. Errors are a *[Error] without a URL.
func (f Form) Decode(body []byte) (*Answer, error) {
	fields, err := f.fields(body)
	if err != nil {
		return nil, f.failure(Malformed, err)
	}
	answer := &Answer{}
	for _, read := range []func(map[string]any, *Answer) error{readStatus, readDecorations, readResync, readFinalized} {
		if err := read(fields, answer); err != nil {
			return nil, f.failure(Malformed, err)
		}
	}
	if failure := f.readChildren(fields, answer); failure != nil {
		return nil, failure
	}
	return answer, nil
}

func (f Form) failure(reason Reason, err error) *Error {
	return &Error{Hook: f.Hook, Reason: reason, Err: err}
}

// fields decodes the outer object, and checks its keys.
func (f Form) fields(body []byte) (map[string]any, error) {
	var fields map[string]any
	duplicates, err := json.UnmarshalStrict(body, &fields)
	if err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %s", brief(err))
	}
	if fields == nil {
		return nil, errors.New("the answer is null")
	}
	known := map[string]bool{"status": true, "resyncAfterSeconds": true, "finalized": true, f.Type.childrenField(): true}
	if f.Type == Decorator {
		known["labels"], known["annotations"] = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case known[name]:
		case f.Strict:
			return nil, fmt.Errorf("the answer has an unknown field %s", short(name))
		default:
			delete(fields, name) // fields for the other type of controller are ignored as well
		}
	}
	if f.Strict && len(duplicates) > 0 {
		return nil, fmt.Errorf("the answer has a %s", brief(duplicates[0]))
	}
	return fields, nil
}

func readStatus(fields map[string]any, a *Answer) (err error) {
	a.Status, a.StatusPresence, err = objectField(fields, "status")
	return err
}

func readDecorations(fields map[string]any, a *Answer) (err error) {
	if a.Labels, err = deletableField(fields, "labels"); err != nil {
		return err
	}
	a.Annotations, err = deletableField(fields, "annotations")
	return err
}

func readResync(fields map[string]any, a *Answer) error {
	seconds := 0.0
	switch n := fields["resyncAfterSeconds"].(type) {
	case nil:
	case int64:
		seconds = float64(n)
	case float64:
		seconds = n
	default:
		return fmt.Errorf("resyncAfterSeconds is %s, not a number", typeName(n))
	}
	switch {
	case seconds <= 0:
	case seconds >= math.MaxInt64/float64(time.Second):
		a.ResyncAfter = math.MaxInt64
	default:
		// Not 0, which means never.
		a.ResyncAfter = max(time.Duration(seconds*float64(time.Second)), 1)
	}
	return nil
}

func readFinalized(fields map[string]any, a *Answer) error {
	switch b := fields["finalized"].(type) {
	case nil:
	case bool:
		a.Finalized = b
	default:
		return fmt.Errorf("finalized is %s, not true or false", typeName(b))
	}
	return nil
}

// objectField returns a field that is an object, null or absent.
func objectField(fields map[string]any, name string) (map[string]any, Presence, error) {
	value, there := fields[name]
	switch o := value.(type) {
	case map[string]any:
		return o, Given, nil
	case nil:
		if there {
			return nil, Null, nil
		}
		return nil, Absent, nil
	default:
		return nil, Given, fmt.Errorf("%s is %s, not an object", name, typeName(o))
	}
}

// deletableField returns a field whose values are strings, or null for what is to be deleted.
func deletableField(fields map[string]any, name string) (map[string]*string, error) {
	o, presence, err := objectField(fields, name)
	if err != nil || presence != Given {
		return nil, err
	}
	values := make(map[string]*string, len(o))
	for _, key := range slices.Sorted(maps.Keys(o)) {
		switch v := o[key].(type) {
		case nil:
			values[key] = nil
		case string:
			values[key] = &v
		default:
			return nil, fmt.Errorf("%s: %s is %s, not a string or null", name, short(key), typeName(v))
		}
	}
	return values, nil
}

// typeName names the type of a decoded value in terms of JSON.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	default:
		return "a number"
	}
}
