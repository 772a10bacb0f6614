package revision

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// This file finds out what the revisions of a parent hold where nobody says it.

// notVersioned are the fields of an object that no revision brings back: what it is, and what others say of it. Some
// controllers store the whole object.
var notVersioned = []string{"apiVersion", "kind", "metadata", "status"}

// Inferred describes what revisions of one parent hold, by their data: for the logs of controllers that follow the
// convention of apps/v1 ControllerRevisions (data is a part of the parent, as a patch) and say nowhere which part. It
// is the fields of spec, and those beside spec; of what has a $patch directive deeper down, what it marks, as a whole.
// A directive at spec itself does not make it all of spec: a SidecarSet's revisions hold the containers, and not the
// selector. What one of the revisions holds, all do: a field that another one lacks, or has as null, was absent when
// that was taken, and going back removes it.
//
// normalize may be nil. Data that is no object is left out. The error says that nothing is held that could be brought
// back.
func Inferred(normalize Normalizer, data ...[]byte) (*Target, error) {
	var paths []Path
	var errs []error
	for _, d := range data {
		tree, err := decodeObject(d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		paths = append(paths, held(tree, nil)...)
	}
	switch {
	case len(paths) == 0 && len(errs) > 0:
		return nil, fmt.Errorf("no field of the object is in its revisions: %w", errors.Join(errs...))
	case len(paths) == 0:
		return nil, errors.New("no field of the object is in its revisions")
	}
	slices.SortFunc(paths, slices.Compare[Path]) // what contains others comes before them
	var outer []Path
	for _, p := range paths {
		if !slices.ContainsFunc(outer, func(q Path) bool { return q.contains(p) }) {
			outer = append(outer, p)
		}
	}
	return &Target{paths: outer, marked: true, normalize: normalize}, nil
}

// held returns the paths of what a tree holds.
func held(tree map[string]any, at Path) (out []Path) {
	for _, field := range slices.Sorted(maps.Keys(tree)) {
		path := append(slices.Clone(at), field)
		object, _ := tree[field].(map[string]any)
		switch {
		case field == directiveKey, at == nil && slices.Contains(notVersioned, field):
		case at == nil && field == "spec" && object != nil, object[directiveKey] == nil && hasDirective(object):
			out = append(out, held(object, path)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

// withoutNulls returns v without the fields that are null: in a patch they are absent.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			if e != nil {
				out[key] = withoutNulls(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for n := range v {
			out[n] = withoutNulls(v[n])
		}
		return out
	default:
		return v
	}
}

// hasDirective reports whether an object has a directive anywhere below it.
func hasDirective(object map[string]any) bool {
	for _, value := range object {
		if child, ok := value.(map[string]any); ok && (child[directiveKey] != nil || hasDirective(child)) {
			return true
		}
	}
	return false
}
