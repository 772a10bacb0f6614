package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// This file reads and writes one field of an object by its path: spec.template.spec.containers[0].image. In brackets
// stands an index, or a key that has dots or slashes in it, such as that of a label.

// steps splits a path. Everything is a string; an index is one that a list understands.
func steps(path string) ([]string, error) {
	var out []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, closed := strings.Cut(rest, "]")
			if !closed {
				return nil, fmt.Errorf("%q has no ]", path)
			}
			out, path = append(out, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		out, path = append(out, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	if len(out) == 0 {
		return nil, errors.New("an empty path")
	}
	return out, nil
}

// getPath returns what is at a path, nil if there is nothing.
func getPath(tree any, path string) (any, error) {
	keys, err := steps(path)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		switch at := tree.(type) {
		case map[string]any:
			tree = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no index of a list", path, key)
			}
			if i < 0 || i >= len(at) {
				return nil, nil //nolint:nilnil // there is nothing, which is an answer
			}
			tree = at[i]
		default:
			return nil, nil //nolint:nilnil // as above
		}
	}
	return tree, nil
}

// setPath puts a value at a path, and makes the maps on the way. Nil takes away what is there.
func setPath(tree map[string]any, path string, value any) error {
	keys, err := steps(path)
	if err != nil {
		return err
	}
	var at any = tree
	for i, key := range keys {
		last := i == len(keys)-1
		switch parent := at.(type) {
		case map[string]any:
			if value == nil && (last || parent[key] == nil) {
				delete(parent, key)
				return nil
			}
			if last {
				parent[key] = value
			} else if parent[key] == nil {
				parent[key] = map[string]any{}
			}
			at = parent[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(parent) {
				return fmt.Errorf("%s: there is no element %s", path, key)
			}
			if last {
				parent[n] = value
			}
			at = parent[n]
		default:
			return fmt.Errorf("%s: %s is no map and no list", path, strings.Join(keys[:i], "."))
		}
	}
	return nil
}

// text is a value as a script writes it. Nothing is "".
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

// same reports whether a value is what a script wrote. What is missing is 0, false, none, - and "" as well.
func same(value any, want string) bool {
	have := text(value)
	if have == want {
		return true
	}
	return have == "" && (want == "0" || want == "false" || want == "none" || want == "-")
}
