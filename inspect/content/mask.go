package content

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/revision"
)

// This file hides values that nobody should read over somebody's shoulder or in a log: those of Secrets, and those of
// environment variables that are called like passwords, tokens or keys. What is compared and what is restored is never
// masked.

const (
	hiddenValue = "***"
	// Two values that differ are shown as kubectl diff shows those of Secrets.
	hiddenBefore, hiddenAfter = "*** (before)", "*** (after)"
)

// Masker hides secrets in what is shown of one object.
type Masker struct {
	// whole says that the object is a Secret, off that the user wants to see everything.
	Whole, Off bool
}

// Secret reports whether all values of a kind are secrets.
func Secret(gk schema.GroupKind) bool { return gk == schema.GroupKind{Kind: "Secret"} }

// Unified is the diff of two contents with secrets masked, so that it shows which of them differ. It is empty only if
// nothing differs.
func (m Masker) Unified(titleA string, a []byte, titleB string, b []byte) (string, error) {
	a, b, err := m.Two(a, b)
	if err != nil {
		return "", err
	}
	return Unified(titleA, a, titleB, b)
}

// Changes are what differs between two contents, in words, with secrets masked.
func (m Masker) Changes(a, b []byte) []Change {
	a, b, err := m.Two(a, b)
	if err != nil {
		return nil
	}
	before, errA := decoded(a)
	after, errB := decoded(b)
	if errA != nil || errB != nil {
		return nil // contents that were shown before are JSON
	}
	return compareContents(before, after)
}

// One returns a content with secrets masked.
func (m Masker) One(content []byte) ([]byte, error) {
	if m.Off {
		return content, nil
	}
	tree, err := decoded(content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(m.hide(tree, nil, hiddenValue, hiddenValue, false))
}

// Two returns two contents with secrets masked.
func (m Masker) Two(a, b []byte) (maskedA, maskedB []byte, err error) {
	if m.Off {
		return a, b, nil
	}
	before, err := decoded(a)
	if err != nil {
		return nil, nil, err
	}
	after, err := decoded(b)
	if err != nil {
		return nil, nil, err
	}
	if maskedA, err = json.Marshal(m.hide(before, after, hiddenValue, hiddenBefore, true)); err != nil {
		return nil, nil, err
	}
	maskedB, err = json.Marshal(m.hide(after, before, hiddenValue, hiddenAfter, true))
	return maskedA, maskedB, err
}

func decoded(content []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.UseNumber()
	var tree map[string]any
	err := dec.Decode(&tree)
	return tree, err
}

// hide returns tree with secrets replaced: by same where other has the same value, by differs where it has another one
// or none.
func (m Masker) hide(tree, other map[string]any, same, differs string, compared bool) map[string]any {
	word := func(value, beside any) any {
		if compared && !reflect.DeepEqual(value, beside) {
			return differs
		}
		return same
	}
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		beside := other[key]
		switch {
		case m.Whole && (key == "data" || key == "stringData"):
			values, _ := value.(map[string]any)
			others, _ := beside.(map[string]any)
			hidden := make(map[string]any, len(values))
			for name, one := range values {
				hidden[name] = word(one, others[name])
			}
			out[key] = hidden
		case key == "env":
			out[key] = m.environment(value, beside, word)
		default:
			out[key] = m.within(value, beside, same, differs, compared)
		}
	}
	return out
}

// within hides what is inside of a value.
func (m Masker) within(value, beside any, same, differs string, compared bool) any {
	switch value := value.(type) {
	case map[string]any:
		others, _ := beside.(map[string]any)
		return m.hide(value, others, same, differs, compared)
	case []any:
		others, _ := beside.([]any)
		out := make([]any, len(value))
		for i, one := range value {
			var other any
			if i < len(others) {
				other = others[i]
			}
			out[i] = m.within(one, other, same, differs, compared)
		}
		return out
	}
	return value
}

// environment hides the values of variables that are called like secrets. They are compared by name, wherever they
// stand.
func (m Masker) environment(value, beside any, word func(value, beside any) any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	others := map[any]any{}
	if list, ok := beside.([]any); ok {
		for _, one := range list {
			if variable, ok := one.(map[string]any); ok {
				others[variable["name"]] = variable["value"]
			}
		}
	}
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = one
		variable, ok := one.(map[string]any)
		if !ok {
			continue
		}
		name, _ := variable["name"].(string)
		if _, literal := variable["value"].(string); literal && revision.SecretVariable(name) {
			hidden := maps.Clone(variable)
			hidden["value"] = word(variable["value"], others[variable["name"]])
			out[i] = hidden
		}
	}
	return out
}
