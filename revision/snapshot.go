package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"sync"
)

// This file takes snapshots, reads stored ones and restores them. Numbers are decoded as json.Number throughout, so
// that an integer above 2^53 survives; the built-in controllers go through float64 and lose it.

// directiveKey marks a subtree of a strategic merge patch that replaces what is there instead of merging into it.
const directiveKey = "$patch"

// Snapshot is the target object state of a parent at one moment. It is immutable and safe for concurrent use: compare,
// restore and store it as often as needed. Make one with [Target.Snapshot] or [Target.Decode].
type Snapshot struct {
	target *Target
	// data is all that is kept of the content: in memory, its decoded form takes ten times as much.
	data []byte
	// taken says that the data were made from a parent, and hold nothing but what the target covers.
	taken bool
	// partial says that the stored data hold more than the covered subtrees.
	partial bool

	// plain and normal are what rules E1 and E2 compare: the canonical bytes, before and after the normalizer.
	plain  []byte
	normal func() ([]byte, error)
}

// Snapshot takes the target object state of parent, which is a typed object, a map[string]any, or anything else that
// encoding/json turns into an object (proposal, "Creating a Revision"). The data is what the controller stores: the
// covered subtrees, keys sorted, as encoding/json writes them. parent is only read.
//
// An error means that parent cannot be encoded or that a subtree which must be an object is none. Such a parent cannot
// have come through an API server of its kind; report it and do not act on the parent.
func (t *Target) Snapshot(parent any) (*Snapshot, error) {
	root, err := toTree(parent)
	if err != nil {
		return nil, fmt.Errorf("read the parent as JSON: %w", err)
	}
	tree := map[string]any{}
	for _, path := range t.paths {
		value, ok := lookup(root, path)
		if !ok {
			if t.directive {
				return nil, fmt.Errorf("the parent has no %s", path)
			}
			continue
		}
		if _, isObject := value.(map[string]any); t.directive && !isObject {
			return nil, fmt.Errorf("%s of the parent is %s, not an object", path, kindOf(value))
		}
		if err := place(tree, path, value); err != nil {
			return nil, err
		}
	}
	tree = t.strip(tree)
	data, err := t.encode(tree)
	if err != nil {
		return nil, err
	}
	if _, shared := parent.(map[string]any); shared {
		// The parent's own maps stay with the parent, and whatever Go types they hold become plain JSON.
		if tree, err = decodeObject(data); err != nil {
			return nil, err
		}
	}
	if err := t.unmark(tree); err != nil {
		return nil, err
	}
	s := &Snapshot{target: t, data: data, taken: true, partial: t.partial}
	if s.plain, err = canonical(tree); err != nil {
		return nil, err
	}
	s.plain = same(s.plain, data)
	s.normal = sync.OnceValues(func() ([]byte, error) { return s.normalized(s.content()) })
	return s, nil
}

// Decode reads stored data as a snapshot (proposal, "Reconstructing the History"). It accepts every format that this
// target ever had: with or without a $patch directive, with creationTimestamp null, with more fields than today's type.
//
// The error is an [*UndecodableError]. The caller keeps such a revision, reports it, and never starts a rollout because
// of it (rule E6).
func (t *Target) Decode(data []byte) (*Snapshot, error) {
	covered, partial, err := t.covered(data)
	if err != nil {
		return nil, &UndecodableError{Err: err}
	}
	s := &Snapshot{target: t, data: bytes.Clone(data), partial: partial}
	if s.plain, err = canonical(covered); err != nil {
		return nil, &UndecodableError{Err: err}
	}
	s.plain = same(s.plain, s.data)
	normal, err := s.normalized(covered)
	if err != nil {
		return nil, &UndecodableError{Err: err}
	}
	s.normal = func() ([]byte, error) { return normal, nil }
	return s, nil
}

// covered decodes stored data, and returns the covered subtrees and whether there is more than them in the data.
func (t *Target) covered(data []byte) (covered map[string]any, partial bool, err error) {
	tree, err := decodeObject(data)
	if err != nil {
		return nil, false, err
	}
	if err := t.unmark(tree); err != nil {
		return nil, false, err
	}
	// What lies outside the covered paths is no part of the history, whoever wrote it there: it is neither compared nor
	// restored. It may tell two revisions apart for those who did.
	covered = t.only(tree)
	if !says(covered) && says(tree) {
		if foreign := held(tree, nil); len(foreign) > 0 {
			return nil, false, fmt.Errorf("it holds %s, and nothing of %s", foreign[0], t.paths[0])
		}
	}
	partial = t.partial || !reflect.DeepEqual(tree, covered)
	if t.marked {
		covered = withoutNulls(covered).(map[string]any)
	}
	return covered, partial, nil
}

// unmark removes the directives. It fails if there is nothing that could have one.
func (t *Target) unmark(tree map[string]any) error {
	for _, path := range t.paths {
		value, ok := lookup(tree, path)
		subtree, isObject := value.(map[string]any)
		switch {
		case isObject:
			if t.directive || t.marked {
				delete(subtree, directiveKey)
			}
		case t.directive && !ok:
			return fmt.Errorf("it has no %s", path)
		case t.directive:
			return fmt.Errorf("its %s is %s, not an object", path, kindOf(value))
		}
	}
	return nil
}

// content decodes the covered subtrees, without directives. The caller may change them.
func (s *Snapshot) content() map[string]any {
	var tree map[string]any
	var err error
	if s.taken {
		if tree, err = decodeObject(s.data); err == nil {
			err = s.target.unmark(tree)
		}
	} else {
		tree, _, err = s.target.covered(s.data)
	}
	if err != nil {
		panic(fmt.Sprintf("revision: data that were decoded before: %v", err))
	}
	return tree
}

// UndecodableError says that the data of a stored revision is no snapshot of its kind.
type UndecodableError struct {
	// Revision is the name of the revision object, empty if only data was given.
	Revision string
	// Err is what was wrong with the data.
	Err error
}

// Error says which revision cannot be read, and why.
func (e *UndecodableError) Error() string {
	if e.Revision == "" {
		return fmt.Sprintf("the revision's data cannot be read: %v", e.Err)
	}
	return fmt.Sprintf("the data of revision %s cannot be read: %v", e.Revision, e.Err)
}

// Unwrap returns what was wrong with the data.
func (e *UndecodableError) Unwrap() error { return e.Err }

// normalized returns what rule E2 compares, of the covered subtrees.
func (s *Snapshot) normalized(tree map[string]any) ([]byte, error) {
	if s.target.normalize == nil {
		return s.plain, nil
	}
	// The normalizer gets the canonical form, so that what E1 finds equal is equal under E2 too.
	canon, err := canonicalValue(tree)
	if err != nil {
		return nil, err
	}
	normal, err := s.target.normalize(canon.(map[string]any))
	if err != nil {
		return nil, err
	}
	out, err := canonical(s.target.only(normal))
	return same(out, s.plain), err
}

// same returns a, as b if the two are equal: one of them is kept, and not both.
func same(a, b []byte) []byte {
	if bytes.Equal(a, b) {
		return b
	}
	return a
}

// only keeps the covered subtrees of tree: a normalizer may add siblings, which are not versioned.
func (t *Target) only(tree map[string]any) map[string]any {
	out := map[string]any{}
	for _, path := range t.paths {
		if value, ok := lookup(tree, path); ok {
			_ = place(out, path, value) // cannot fail: out holds nothing but what place put there
		}
	}
	return t.strip(out)
}

// encode writes tree as this target stores it. The tree itself stays free of directives.
func (t *Target) encode(tree map[string]any) ([]byte, error) {
	if !t.directive {
		return json.Marshal(tree)
	}
	out := tree
	for _, path := range t.paths {
		subtree, _ := lookup(tree, path)
		marked := maps.Clone(subtree.(map[string]any))
		if marked == nil {
			marked = map[string]any{}
		}
		marked[directiveKey] = "replace"
		out = map[string]any{}
		if err := place(out, path, marked); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// Carried returns s as what an older revision was made into: it is compared and restored like any other, and is no
// duplicate of one, because the stored data hold something else.
func (s *Snapshot) Carried() *Snapshot {
	out := *s
	out.partial = true
	return &out
}

// Data returns the bytes to store. The caller must not change them.
func (s *Snapshot) Data() []byte { return s.data }

// Into decodes the covered subtrees into the zero value that into points to, leaving all else at zero. It is how a
// typed controller gets the template of a stored revision. Decoding over a populated object would keep fields that the
// snapshot does not have (kubernetes#78853), so a non-zero target is refused.
func (s *Snapshot) Into(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("cannot decode a snapshot into %T: need a pointer", into)
	}
	if !v.Elem().IsZero() {
		return fmt.Errorf("cannot decode a snapshot into a %T that is not zero: fields removed since would survive", into)
	}
	return json.Unmarshal(s.plain, into) // canonical, because encoding/json reads 30.0 into no integer
}

// Restore returns a copy of parent whose covered subtrees are those of s: replaced as a whole, and removed where s has
// none, so that a field added since is removed. parent is as in [Target.Snapshot] and is only read. Taking a snapshot
// of the result gives s again. The error may be a [*MissingSecretError].
func (s *Snapshot) Restore(parent any) (map[string]any, error) {
	root, err := toTree(parent)
	if err != nil {
		return nil, fmt.Errorf("read the parent as JSON: %w", err)
	}
	root = deepCopy(root).(map[string]any)
	tree := s.content()
	for _, path := range s.target.paths {
		value, ok, err := s.target.wanted(root, tree, path)
		if err != nil {
			return nil, err
		}
		if !ok {
			remove(root, path)
			continue
		}
		if err := place(root, path, deepCopy(value)); err != nil {
			return nil, fmt.Errorf("restore %s: %w", path, err)
		}
	}
	return root, nil
}

// toTree returns parent as decoded JSON. A map is used as it is, so callers must not change what they get.
func toTree(parent any) (map[string]any, error) {
	if m, ok := parent.(map[string]any); ok {
		return m, nil
	}
	b, err := json.Marshal(parent)
	if err != nil {
		return nil, err
	}
	return decodeObject(b)
}

// decodeObject parses b as one JSON object with numbers kept as they are written.
func decodeObject(b []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, errors.New("it is null, not an object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the object")
	}
	return tree, nil
}

// deepCopy copies decoded JSON.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = deepCopy(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = deepCopy(e)
		}
		return out
	default:
		return v
	}
}
