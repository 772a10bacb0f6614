package apply

import "encoding/json"

// This file says when two values of decoded JSON are the same for the API server.

// Equal reports whether two desired children, or parts of them, are the same for the API server.
func Equal(a, b map[string]any) bool { return same(a, b) || equal(a, b) }

// equal compares decoded JSON: numbers by value whatever their Go type, a null like a field that is not there. List
// order counts, and an empty list or object is not the same as none: for some fields that is a choice.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalObjects(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case nil:
		return b == nil
	default:
		return equalNumbers(a, b)
	}
}

func equalObjects(x, y map[string]any) bool {
	for key, value := range x {
		if !equal(value, y[key]) {
			return false
		}
	}
	for key, value := range y {
		if _, ok := x[key]; !ok && value != nil {
			return false
		}
	}
	return true
}

// equalNumbers compares integers as integers, so that 2^53+1 is not 2^53.
func equalNumbers(a, b any) bool {
	x, ok := integer(a)
	y, also := integer(b)
	if ok && also {
		return x == y
	}
	if ok == also { // neither is one
		f, isFloat := a.(float64)
		g, isFloatToo := b.(float64)
		return isFloat && isFloatToo && f == g
	}
	return false
}

// integer returns the value of a number without a fraction that fits an int64.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		i := int64(n)
		return i, float64(i) == n && n < 1<<63 && n >= -1<<63
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	default:
		return 0, false
	}
}
