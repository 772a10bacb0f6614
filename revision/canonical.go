package revision

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// This file brings content into canonical form: canonical is rule E1, Typed makes the normalizer of rule E2. What is
// dropped here is dropped from every comparison, so each rule says why it never hides a change.

// canonical returns the canonical bytes of tree (rule E1): keys sorted, creationTimestamp: null dropped, every number
// in one form. List order counts. It never changes tree. The $patch directive is not there any more: Decode removes it
// from the subtree that it belongs to, and a field of that name anywhere deeper is content.
//
// Dropping the null is safe because it cannot be set: the API server sets creation timestamps itself. Kubernetes before
// 1.34 wrote it into every template (kubernetes#134773).
func canonical(tree map[string]any) ([]byte, error) {
	v, err := canonicalValue(tree)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func canonicalValue(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if k == "creationTimestamp" && e == nil {
				continue
			}
			c, err := canonicalValue(e)
			if err != nil {
				return nil, err
			}
			out[k] = c
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			c, err := canonicalValue(e)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	case json.Number:
		return canonicalNumber(v.String())
	case float64:
		return canonicalNumber(strconv.FormatFloat(v, 'g', -1, 64))
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case nil, bool, string:
		return v, nil
	default:
		return nil, fmt.Errorf("a %T is no decoded JSON", v)
	}
}

// canonicalNumber writes 1, 1.0 and 1e0 alike. Integers keep all their digits, whatever their size; anything else is
// compared as the float64 that the API server would store, written as encoding/json writes it, so that a float64 in
// memory and the same number read back from stored data are one.
func canonicalNumber(s string) (json.Number, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return json.Number(strconv.FormatInt(n, 10)), nil
	}
	if n, ok := new(big.Int).SetString(s, 10); ok {
		return json.Number(n.String()), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", fmt.Errorf("number %s: %w", s, err)
	}
	if f == 0 { // also -0
		return "0", nil
	}
	b, err := json.Marshal(f)
	return json.Number(b), err
}

// Typed returns the normalizer of a kind that has a Go type (rule E2): the tree is decoded into a zero T, nil and empty
// lists and maps are made the same, and the result is encoded again. That drops fields the type no longer has, writes
// equal quantities alike (1Gi and 1073741824) and gives every struct today's shape. A pointer to an empty struct
// (emptyDir: {}) is a choice and stays.
//
// Defaults are not filled in: the API server is the only authority on them (rule E3).
func Typed[T any]() Normalizer {
	return func(tree map[string]any) (map[string]any, error) {
		if probe, found := withoutHugeExponents(tree); found {
			var obj T
			if err := retype(probe, &obj); err != nil {
				return nil, fmt.Errorf("after taking out what could be a quantity with a huge exponent: %w", err)
			}
		}
		var obj T
		if err := retype(tree, &obj); err != nil {
			return nil, err
		}
		dropEmpty(reflect.ValueOf(&obj).Elem())
		b, err := json.Marshal(&obj)
		if err != nil {
			return nil, err
		}
		return decodeObject(b)
	}
}

// retype decodes tree into obj.
func retype(tree, obj any) error {
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, obj)
}

// hugeExponent matches text that would be a quantity of thousands of digits. Reading 1e999999999 as one would take all
// memory, and any user who may create a revision may write it.
var hugeExponent = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?[0-9]{4,}$`)

// withoutHugeExponents returns v with every such text replaced by one that is no quantity, and whether there was any.
// Only a type can tell a quantity from an image tag: if it takes the replacements, none of them was one.
func withoutHugeExponents(v any) (any, bool) {
	var found bool
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			c, in := withoutHugeExponents(e)
			out[k], found = c, found || in
		}
		return out, found
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			c, in := withoutHugeExponents(e)
			out[i], found = c, found || in
		}
		return out, found
	case string:
		if hugeExponent.MatchString(strings.TrimSpace(v)) {
			return "none", true
		}
	}
	return v, false
}

// dropEmpty sets every empty slice and map below v to nil, and gives every quantity below v the one format.
func dropEmpty(v reflect.Value) {
	if v.CanSet() && v.Type() == reflect.TypeFor[resource.Quantity]() {
		// 1Gi and 1073741824 are one value, and so they are for the API server when it decides about a generation.
		q := v.Addr().Interface().(*resource.Quantity)
		*q = *resource.NewDecimalQuantity(*q.AsDec(), resource.DecimalSI)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dropEmpty(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				dropEmpty(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Len() == 0 && v.CanSet() {
			v.SetZero()
			return
		}
		for i := range v.Len() {
			dropEmpty(v.Index(i))
		}
	case reflect.Map:
		dropEmptyMap(v)
	default: // scalars, and arrays, which the API does not have
	}
}

// dropEmptyMap handles maps apart, because map values cannot be changed in place.
func dropEmptyMap(v reflect.Value) {
	if v.Len() == 0 && v.CanSet() {
		v.SetZero()
		return
	}
	for _, key := range v.MapKeys() {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		dropEmpty(value)
		v.SetMapIndex(key, value)
	}
}
