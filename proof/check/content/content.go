// Package content compares what objects say. What was asked for must be there; what is there beyond that came from
// defaults and admission.
//
// What may not come in: which object it is, and what a kind means by a field.
package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Missing says what of want is not in have, as a path and two values, "" if all of it is. Fields that want leaves empty
// ask for nothing. An element of a list may be anywhere in the other.
func Missing(path string, want, have any) string {
	switch want := want.(type) {
	case nil:
		return ""
	case map[string]any:
		have, _ := have.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(want)) {
			if s := Missing(path+"."+k, want[k], have[k]); s != "" {
				return s
			}
		}
		return ""
	case []any:
		have, _ := have.([]any)
		for i, v := range want {
			if s := missingElement(fmt.Sprintf("%s[%d]", path, i), v, have); s != "" {
				return s
			}
		}
		return ""
	default:
		if reflect.ValueOf(want).IsZero() && have == nil || fmt.Sprint(want) == fmt.Sprint(have) {
			return ""
		}
		return fmt.Sprintf("%s should be %v and is %v", path, want, have)
	}
}

// missingElement says what of an element no element of have holds. An element with a name is compared with its
// namesake.
func missingElement(path string, want any, have []any) string {
	first := fmt.Sprintf("%s should be there and is not", path)
	for _, other := range have {
		s := Missing(path, want, other)
		if s == "" {
			return ""
		}
		if a, ok := want.(map[string]any); ok {
			if b, ok := other.(map[string]any); ok && a["name"] != nil && a["name"] == b["name"] {
				first = s
			}
		}
	}
	return first
}

// Tree returns an object or a part of one as its JSON tree.
func Tree(o any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	return out
}

// Canonical is o as JSON, keys sorted, empty values left out.
func Canonical(o any) string {
	encoded, err := json.Marshal(Prune(Tree(o)))
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// Prune leaves out what is empty: nil, {} and [] ask for the same.
func Prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, field := range v {
			if p := Prune(field); p != nil {
				out[k] = p
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = Prune(v[i])
		}
		return out
	default:
		return v
	}
}

// Same reports whether two versions of an object have the same content at a path. Spec, status and data of Go types
// are compared as they are, because this is asked at every write.
func Same(a, b client.Object, path ...string) bool {
	if fieldA, fieldB := Field(a, path), Field(b, path); fieldA != nil && fieldB != nil {
		return sameBytes(fieldA, fieldB) || apiequality.Semantic.DeepEqual(fieldA, fieldB)
	}
	return reflect.DeepEqual(At(Tree(a), path), At(Tree(b), path))
}

// Encoder is a type with a fast encoding, in which nil and empty are the same and maps are sorted.
type Encoder interface{ Marshal() ([]byte, error) }

// sameBytes reports whether two values have the same encoding. It is much faster than comparing them; those that differ
// may mean the same all the same.
func sameBytes(a, b any) bool {
	encodesA, okA := a.(Encoder)
	encodesB, okB := b.(Encoder)
	if !okA || !okB {
		return false
	}
	bytesA, errA := encodesA.Marshal()
	bytesB, errB := encodesB.Marshal()
	return errA == nil && errB == nil && bytes.Equal(bytesA, bytesB)
}

// goNames are the fields of Go types that are compared as they are.
var goNames = map[string]string{"spec": "Spec", "status": "Status", "data": "Data"}

// Field returns such a field of a Go type, by pointer, nil for anything else.
func Field(o client.Object, path []string) any {
	name := goNames[path[0]]
	v := reflect.Indirect(reflect.ValueOf(o))
	if len(path) > 1 || name == "" || v.Kind() != reflect.Struct {
		return nil
	}
	if f := v.FieldByName(name); f.IsValid() {
		return f.Addr().Interface()
	}
	return nil
}

// At is what is at a path of a tree, nil if there is nothing.
func At(v any, path []string) any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

// Negative lists the numbers below zero in a tree.
func Negative(path string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, Negative(strings.TrimPrefix(path+"."+k, "."), v[k])...)
		}
		return out
	case float64:
		if v < 0 {
			return []string{fmt.Sprintf("%s is %v", path, v)}
		}
	}
	return nil
}
