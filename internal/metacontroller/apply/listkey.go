package apply

import "fmt"

// This file guesses which lists are maps by a key. There is no schema to read: children are of any kind, and custom
// resources rarely declare list types.

// listKeys are the fields that make items of a list distinct by convention, the first one that fits wins. The order is
// Metacontroller's, and is a contract: it decides which items of other writers survive in a list.
var listKeys = [...]string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"}

// listKey returns the field by which the items of lists are told apart, or an empty string if there is none: every item
// of every list must be an object that has the field.
//
// Beyond Metacontroller's rule, no list may have two items with the same value. A Service with port 53 for TCP and for
// UDP would otherwise end up with one of them twice (metacontroller#371); here it is merged by name instead.
func listKey(lists ...[]any) string {
	items := 0
	for _, l := range lists {
		items += len(l)
	}
	if items == 0 {
		return ""
	}
	for _, key := range listKeys {
		if allDistinct(lists, key) {
			return key
		}
	}
	return ""
}

// allDistinct reports whether every item of every list has the key, and no list has a value of it twice.
func allDistinct(lists [][]any, key string) bool {
	for _, l := range lists {
		seen := make(map[string]struct{}, len(l))
		for _, item := range l {
			o, ok := item.(map[string]any)
			if !ok {
				return false
			}
			if _, ok := o[key]; !ok {
				return false
			}
			seen[keyOf(o, key)] = struct{}{}
		}
		if len(seen) != len(l) {
			return false
		}
	}
	return true
}

// keyOf returns the value of an item's key as text, so that 80 and "80" are one.
func keyOf(item any, key string) string {
	value := object(item)[key]
	if s, ok := value.(string); ok {
		return s
	}
	return fmt.Sprint(value)
}

// byKey returns the items of a list of objects by their key.
func byKey(l []any, key string) map[string]any {
	m := make(map[string]any, len(l))
	for _, item := range l {
		m[keyOf(item, key)] = item
	}
	return m
}
