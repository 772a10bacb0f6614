package apply

// This file is the three-way merge on decoded JSON. A result shares unchanged parts with its arguments, so it must not
// be changed.

import "maps"

// Merge returns observed, with what last and desired say about it brought in, and whether that differs from observed:
//
//   - objects: keys that last has and desired has not are dropped; keys of desired are merged one by one; all others
//     stay
//   - lists whose items have a key in common (see [listKey]) are merged as objects by that key, in the order in which
//     they were observed, new ones after them; other lists are taken from desired
//   - anything else is taken from desired
//
// An observed object is never replaced by something that is no object: it only loses the keys of last. A null is the
// same as no field at all, and numbers are compared by value, because the API server does not keep these differences:
// a hook that writes 1.0, or null, would otherwise differ for ever.
//
// The result shares memory with the arguments; none of the four may be written to afterwards.
func Merge(observed, last, desired map[string]any) (merged map[string]any, changed bool) {
	return mergeObject(observed, last, desired)
}

// mergeValue merges under one key. observed is nil if it has no such key.
func mergeValue(observed, last, desired any) (any, bool) {
	switch o := observed.(type) {
	case map[string]any:
		return mergeObject(o, object(last), object(desired))
	case []any:
		d, ok := desired.([]any)
		if !ok && desired != nil {
			// Metacontroller writes null here, and the desired value on the next pass. This says it at once, and the
			// API server says what is wrong with it.
			return desired, true
		}
		return mergeList(o, list(last), d)
	default:
		if equal(observed, desired) {
			return observed, false
		}
		return desired, true
	}
}

// mergeObject copies observed when the first difference is found, and not before.
func mergeObject(observed, last, desired map[string]any) (merged map[string]any, changed bool) {
	merged = observed
	own := func() {
		if !changed {
			merged, changed = shallow(observed, len(desired)), true
		}
	}
	for key := range last {
		if _, wanted := desired[key]; wanted {
			continue
		}
		if _, there := observed[key]; there {
			own()
			delete(merged, key)
		}
	}
	for key, want := range desired {
		value, differs := mergeValue(observed[key], last[key], want)
		if differs {
			own()
			merged[key] = value
		}
	}
	return merged, changed
}

// mergeList merges two lists of objects by a key, and replaces all others.
func mergeList(observed, last, desired []any) (any, bool) {
	key := listKey(observed, last, desired)
	if key == "" {
		if equal(observed, desired) {
			return observed, false
		}
		if desired == nil {
			return nil, true // the field is null, not a list that is nil
		}
		return desired, true
	}
	lasts, wants := byKey(last, key), byKey(desired, key)
	merged := make([]any, 0, len(observed)+len(desired))
	changed := false
	for _, item := range observed {
		name := keyOf(item, key)
		want, wanted := wants[name]
		was, applied := lasts[name]
		switch {
		case wanted:
			value, differs := mergeValue(item, was, want)
			merged, changed = append(merged, value), changed || differs
			delete(wants, name)
		case applied:
			changed = true
		default:
			merged = append(merged, item)
		}
	}
	for _, item := range desired {
		if name := keyOf(item, key); wants[name] != nil {
			merged, changed = append(merged, item), true
		}
	}
	if !changed {
		return observed, false
	}
	return merged, true
}

// object returns v if it is an object, and nil for anything else.
func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// list returns v if it is a list, and nil for anything else.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// shallow copies one level of an object, with room for more keys.
func shallow(o map[string]any, more int) map[string]any {
	c := make(map[string]any, len(o)+more)
	maps.Copy(c, o)
	return c
}
