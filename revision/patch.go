package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// This file writes a restore as a JSON patch: for undo, and for asking the API server what a restore would change.

// RestorePatch returns the JSON patch (RFC 6902) that makes the covered subtrees of parent those of s: replaced as a
// whole, removed where s has none. It carries uid and resourceVersion as preconditions, so the API server answers 409
// if parent is not the object, or not the version, that the caller looked at. parent is as in [Target.Snapshot].
//
// A merge patch would not do: it keeps what the snapshot lacks, and calls that equal.
//
// It returns an error if parent has nothing to put a subtree into, or no UID and resourceVersion.
func (s *Snapshot) RestorePatch(parent any) ([]byte, error) {
	root, err := toTree(parent)
	if err != nil {
		return nil, fmt.Errorf("read the parent as JSON: %w", err)
	}
	ops := make([]patchOp, 0, len(s.target.paths)+2) //nolint:mnd // the two preconditions
	for _, field := range []string{"uid", "resourceVersion"} {
		path := Path{"metadata", field}
		value, ok := lookup(root, path)
		if !ok || value == "" {
			return nil, errors.New("the parent has no " + path.String() + "; read it from the API server first")
		}
		ops = append(ops, patchOp{"op": "replace", "path": pointer(path), "value": value})
	}
	tree := s.content()
	for _, path := range s.target.paths {
		value, wanted, err := s.target.wanted(root, tree, path)
		if err != nil {
			return nil, err
		}
		_, present := lookup(root, path)
		switch {
		case wanted:
			if above, ok := lookup(root, path[:len(path)-1]); len(path) > 1 && (!ok || !isObject(above)) {
				return nil, fmt.Errorf("the parent has no object %s to restore %s into", path[:len(path)-1], path)
			}
			ops = append(ops, patchOp{"op": "add", "path": pointer(path), "value": value})
		case present:
			ops = append(ops, patchOp{"op": "remove", "path": pointer(path)})
		}
	}
	return json.Marshal(ops)
}

// patchOp is one operation: a map, because a value of null must be written and no value must not.
type patchOp map[string]any

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// pointer returns path as a JSON pointer (RFC 6901).
func pointer(path Path) string {
	var b strings.Builder
	for _, field := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(field))
	}
	return b.String()
}
