package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// This file says which part of a parent is versioned. Reading and writing that part is in snapshot.go; nothing here
// knows a kind by name.

// Path names one subtree of an object: its field names from the root, for instance {"spec", "template"}. A path has no
// list indices: Metacontroller's fieldPaths have none either.
type Path []string

// ParsePath splits a dotted field path ("spec.template") as Metacontroller's revisionHistory.fieldPaths does: no
// escaping, no list indices. It returns an error for an empty path or an empty field name; the caller should show it to
// the author of the path.
func ParsePath(s string) (Path, error) {
	if s == "" {
		return nil, errors.New("a field path must name at least one field, for instance spec.template")
	}
	p := Path(strings.Split(s, "."))
	if slices.Contains(p, "") {
		return nil, fmt.Errorf("field path %q has an empty field name", s)
	}
	return p, nil
}

// String returns the dotted form of p, the inverse of [ParsePath].
func (p Path) String() string { return strings.Join(p, ".") }

// contains reports whether q is p or lies below it.
func (p Path) contains(q Path) bool {
	if len(q) < len(p) {
		return false
	}
	for i := range p {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

// Normalizer brings the covered subtrees of a parent into the one form that all equal contents share: defaults that are
// known locally are filled in, fields the type does not know are dropped, quantities are in canonical form. It gets a
// tree that it may change, as decoded by encoding/json with numbers kept as [json.Number], and returns the tree to
// compare. An error means that the tree is no object of the kind at all.
//
// [Typed] makes one for a Go type.
type Normalizer func(tree map[string]any) (map[string]any, error)

// Target describes the target object state of a kind: the part of a parent that decides what its children look like
// (Controller History proposal, "Target Object State"). It is a value that the caller builds once for a kind and
// shares; it is safe for concurrent use because nothing changes it.
type Target struct {
	paths     []Path
	directive bool
	// marked says that stored subtrees may have a $patch directive, which says nothing.
	marked    bool
	normalize Normalizer
	// ignored lie inside of paths.
	ignored []Path
	// partial says that the data hold more than paths: see [Target.As].
	partial bool
	// masked says that values that look like secrets are left out.
	masked bool
}

// StrategicMerge describes a kind whose revisions are strategic merge patches that replace one subtree: the format that
// Kubernetes writes for DaemonSet and StatefulSet, {"spec":{"template":{…,"$patch":"replace"}}}. The subtree must be an
// object in every parent. normalize may be nil: contents are then compared as plain JSON.
func StrategicMerge(normalize Normalizer, path Path) *Target {
	return &Target{paths: []Path{path}, directive: true, normalize: normalize}
}

// FieldPaths describes a kind whose revisions hold exactly the listed subtrees and nothing else: the format of
// Metacontroller's parentPatch and of recorded kinds. A path that a parent does not have is absent from its snapshot,
// and restoring that snapshot removes it. It returns an error if a path is empty or lies inside another one, because a
// restore could then not tell which of the two is meant.
func FieldPaths(normalize Normalizer, paths ...Path) (*Target, error) {
	if len(paths) == 0 {
		return nil, errors.New("a target needs at least one field path")
	}
	for i, p := range paths {
		if len(p) == 0 {
			return nil, errors.New("a field path must name at least one field, for instance spec.template")
		}
		for j, q := range paths {
			if i != j && p.contains(q) {
				return nil, fmt.Errorf("field path %s lies inside field path %s; name the outer one only", q, p)
			}
		}
	}
	return &Target{paths: paths, normalize: normalize}, nil
}

// Without returns a target that leaves fields out: they are neither recorded nor compared, and a restore leaves them as
// they are. Each has to lie inside of a covered subtree; the error says which one does not, and is for the author of
// the path.
func (t *Target) Without(ignored ...Path) (*Target, error) {
	for _, p := range ignored {
		inside := slices.ContainsFunc(t.paths, func(covered Path) bool { return covered.contains(p) && len(p) > len(covered) })
		if !inside {
			return nil, fmt.Errorf("field path %s lies inside of none of the recorded ones, so there is nothing to ignore", p)
		}
	}
	out := *t
	out.ignored = slices.Concat(t.ignored, ignored)
	return &out, nil
}

// As returns the target by which to read a revision that was recorded as another one: the paths of a kind change with a
// release of its controller, or with an edit of a policy. It covers what both cover and ignores what either ignores, so
// that nothing is restored or removed that the revision does not know of.
//
// The error says that a path of the revision is covered no more while another one is new. That is how a path looks
// which was renamed: what the revision holds is then neither nothing nor what the parent has, and the caller keeps the
// revision as one that cannot be read.
func (t *Target) As(recorded *Target) (*Target, error) {
	if t.Covers(recorded) {
		return t, nil
	}
	out := *t
	out.paths = nil
	var gone, added []Path
	for _, p := range recorded.paths {
		both := nested(p, t.paths)
		if len(both) == 0 {
			gone = append(gone, p)
		}
		out.paths = append(out.paths, both...)
	}
	for _, p := range t.paths {
		if len(nested(p, recorded.paths)) == 0 {
			added = append(added, p)
		}
	}
	if len(gone) > 0 && len(added) > 0 {
		return nil, fmt.Errorf("it holds %s, which is not versioned any more, and not %s, which is now", gone[0], added[0])
	}
	out.ignored = nil
	for _, p := range slices.Concat(t.ignored, recorded.ignored) {
		if slices.ContainsFunc(out.paths, func(covered Path) bool { return covered.contains(p) }) {
			out.ignored = append(out.ignored, p)
		}
	}
	out.masked = t.masked || recorded.masked
	out.partial = len(gone) > 0 || slices.ContainsFunc(recorded.paths, func(p Path) bool {
		return !slices.ContainsFunc(out.paths, func(q Path) bool { return slices.Equal(p, q) })
	})
	return &out, nil
}

// Covers reports whether two targets are of the same fields.
func (t *Target) Covers(other *Target) bool {
	return t == other || samePaths(t.paths, other.paths) && samePaths(t.ignored, other.ignored) && t.masked == other.masked
}

func samePaths(a, b []Path) bool {
	within := func(a, b []Path) bool {
		return !slices.ContainsFunc(a, func(p Path) bool {
			return !slices.ContainsFunc(b, func(q Path) bool { return slices.Equal(p, q) })
		})
	}
	return within(a, b) && within(b, a)
}

// nested returns, for each of paths that lies inside of p or around it, the inner one of the two.
func nested(p Path, paths []Path) []Path {
	var out []Path
	for _, q := range paths {
		switch {
		case p.contains(q):
			out = append(out, q)
		case q.contains(p):
			out = append(out, p)
		}
	}
	return out
}

// Ignored returns the fields that are left out, in the order in which they were given. The caller must not change them.
func (t *Target) Ignored() []Path { return t.ignored }

// strip returns tree, or a copy of it, without the ignored fields, and with marks in place of secrets.
func (t *Target) strip(tree map[string]any) map[string]any {
	if len(t.ignored) == 0 && !t.masked {
		return tree
	}
	out := deepCopy(tree).(map[string]any)
	for _, p := range t.ignored {
		remove(out, p)
	}
	if t.masked {
		hide(out)
	}
	return out
}

// wanted returns what the subtree at path is to be in root so that it has the content of tree: nothing if ok is false.
// What is ignored, and what looks like a secret, stays as it is in root. The error is a [*MissingSecretError].
func (t *Target) wanted(root, tree map[string]any, path Path) (value any, ok bool, err error) {
	value, ok = lookup(tree, path)
	if ok && t.masked {
		live, _ := lookup(root, path)
		if value, err = fill(path.String(), deepCopy(value), live); err != nil {
			return nil, false, err
		}
	}
	if len(t.ignored) == 0 {
		return value, ok, nil
	}
	out := map[string]any{}
	if ok {
		_ = place(out, path, deepCopy(value)) // cannot fail: out is empty
	}
	for _, p := range t.ignored {
		if kept, there := lookup(root, p); there && path.contains(p) {
			_ = place(out, p, deepCopy(kept)) // where something else is in the way by now, that stays
		}
	}
	value, ok = lookup(out, path)
	return value, ok, nil
}

// Paths returns the covered subtrees, in the order in which they were given. The caller must not change them.
func (t *Target) Paths() []Path { return t.paths }

// lookup returns the value at path, and whether there is one. A null counts as a value.
func lookup(tree map[string]any, path Path) (any, bool) {
	for i, field := range path {
		v, ok := tree[field]
		if !ok {
			return nil, false
		}
		if i == len(path)-1 {
			return v, true
		}
		if tree, ok = v.(map[string]any); !ok {
			return nil, false
		}
	}
	return nil, false
}

// place puts value at path, making the objects above it. It fails if something that is no object is in the way.
func place(tree map[string]any, path Path, value any) error {
	for _, field := range path[:len(path)-1] {
		v, ok := tree[field]
		if !ok {
			child := map[string]any{}
			tree[field] = child
			tree = child
			continue
		}
		child, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("field %s of path %s is %s, not an object", field, path, kindOf(v))
		}
		tree = child
	}
	tree[path[len(path)-1]] = value
	return nil
}

// remove deletes the value at path, leaving the objects above it in place.
func remove(tree map[string]any, path Path) {
	for _, field := range path[:len(path)-1] {
		child, ok := tree[field].(map[string]any)
		if !ok {
			return
		}
		tree = child
	}
	delete(tree, path[len(path)-1])
}

// kindOf names the JSON type of v for error messages.
func kindOf(v any) string {
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
		return "a boolean"
	case json.Number, float64, int64:
		return "a number"
	default:
		return fmt.Sprintf("a %T", v)
	}
}
