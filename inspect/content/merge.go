package content

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/cairn-dev/cairn/revision"
)

// This file brings back what differs between two revisions, and nothing else, into an object that has less than either:
// of a kind of others the controller fills in defaults, and adds fields of its own, in what it keeps. It is pure.

// Merge returns live with what to has otherwise than from. hashes are texts in which revisions differ by themselves, as
// controllers write them into what they add: one counts as any other.
func Merge(live, from, to *revision.Snapshot, hashes []string) (map[string]any, error) {
	var trees [3]map[string]any
	for n, s := range []*revision.Snapshot{live, from, to} {
		raw, err := JSON(s)
		if err == nil {
			trees[n], err = decoded(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return merger{hashes: hashes}.fields(trees[0], trees[1], trees[2], nil), nil
}

// Follow returns a manifest with the fields changed that differ between two states of the object that it describes.
// theirs are the fields of other managers in the state before. kubectl removes a field that the last applied manifest
// has and the next manifest lacks. It removes a map or a list with the fields of other managers in it. So Follow adds a
// field to the manifest in two cases only: before lacks the field, or before has a default there. Follow changes none
// of its arguments. An error means that a state is not JSON.
func Follow(manifest map[string]any, before, after any, theirs *fieldpath.Set) (map[string]any, error) {
	var trees [3]map[string]any
	for n, v := range []any{manifest, before, after} {
		raw, err := json.Marshal(v)
		if err == nil {
			trees[n], err = decoded(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return merger{follows: true}.fields(trees[0], trees[1], trees[2], theirs), nil
}

// merger merges trees, and changes none of them. theirs, in its methods, are the fields of other managers from there on
// down, nil for [Merge].
type merger struct {
	hashes []string
	// follows is true for [Follow].
	follows bool
}

func (m merger) value(live, from, to any, theirs *fieldpath.Set) any {
	if m.same(from, to) {
		return live
	}
	if l, f, t := tree(live), tree(from), tree(to); l != nil && f != nil && t != nil {
		return m.fields(l, f, t, theirs)
	}
	l, okL := live.([]any)
	f, okF := from.([]any)
	t, okT := to.([]any)
	if okL && okF && okT {
		if key := keyOf(l, f, t); key != nil {
			return m.elements(l, f, t, key, theirs)
		}
	}
	return to
}

func (m merger) fields(live, from, to map[string]any, theirs *fieldpath.Set) map[string]any {
	out := map[string]any{}
	for field, now := range live {
		is, kept := to[field]
		was, had := from[field]
		switch {
		case m.follows && now == nil && (kept || had): // null in a manifest means absent
		case kept && had:
			switch merged := m.value(now, was, is, below(theirs, field)); {
			case !m.follows || !blank(merged) || blank(is):
				out[field] = merged
			case blank(now):
				out[field] = now
			} // else kubectl would remove a list or map that has entries of others
		case kept:
			out[field] = is
		case !had:
			out[field] = now
		}
	}
	for field, is := range to {
		if now, there := live[field]; there && (now != nil || !m.follows) {
			continue
		}
		was, had := from[field]
		if more := m.missing(was, is, had, owned(theirs, field)); more != nil {
			out[field] = more
		}
	}
	return out
}

// missing returns what to add of is where live has nothing; nil is nothing. had means that the state before has was
// there, owned that was belongs to another manager.
func (m merger) missing(was, is any, had, owned bool) any {
	_, list := was.([]any)
	switch {
	case had && m.same(was, is):
		return nil
	case !m.follows || !had || blank(was):
		return is
	case owned || list || tree(was) != nil:
		return nil
	}
	return is
}

// blank reports whether a value is an empty map or list, as the API server adds them by default.
func blank(v any) bool {
	fields, isMap := v.(map[string]any)
	list, isList := v.([]any)
	return isMap && len(fields) == 0 || isList && len(list) == 0
}

// owned reports whether fields contain a field itself.
func owned(fields *fieldpath.Set, field string) bool {
	return fields != nil && fields.Members.Has(fieldpath.PathElement{FieldName: &field})
}

// below returns the fields below a field.
func below(fields *fieldpath.Set, field string) *fieldpath.Set {
	if fields == nil {
		return nil
	}
	return fields.WithPrefix(fieldpath.PathElement{FieldName: &field})
}

// belowElement returns the fields below the element of a list.
func belowElement(fields *fieldpath.Set, element map[string]any) (out *fieldpath.Set) {
	if fields == nil {
		return nil
	}
	fields.Children.Iterate(func(at fieldpath.PathElement) {
		other := func(k value.Field) bool { return fmt.Sprint(element[k.Name]) != fmt.Sprint(k.Value.Unstructured()) }
		if at.Key != nil && !slices.ContainsFunc(*at.Key, other) {
			out = fields.WithPrefix(at)
		}
	})
	return out
}

// elements merges lists whose elements have names: in the order of to, and then those that neither revision has.
func (m merger) elements(live, from, to []any, key []string, theirs *fieldpath.Set) []any {
	has, was, is := byName(live, key), byName(from, key), byName(to, key)
	var out []any
	for _, e := range to {
		name := selector(tree(e), key)
		before, had := was[name]
		now, there := has[name]
		switch {
		case there && had:
			out = append(out, m.value(now, before, e, belowElement(theirs, tree(before))))
		case there:
			out = append(out, e)
		default:
			if more := m.missing(before, e, had, true); more != nil {
				out = append(out, more)
			}
		}
	}
	for _, e := range live {
		name := selector(tree(e), key)
		if was[name] == nil && is[name] == nil {
			out = append(out, e)
		}
	}
	return out
}

// same reports whether two values are equal, but for the hashes in them.
func (m merger) same(a, b any) bool {
	if x, y := tree(a), tree(b); x != nil && y != nil {
		if len(x) != len(y) {
			return false
		}
		for field, v := range x {
			if other, has := y[field]; !has || !m.same(v, other) {
				return false
			}
		}
		return true
	}
	x, okX := a.([]any)
	y, okY := b.([]any)
	if okX && okY {
		return slices.EqualFunc(x, y, m.same)
	}
	s, okS := a.(string)
	t, okT := b.(string)
	if okS && okT && slices.Contains(m.hashes, s) && slices.Contains(m.hashes, t) {
		return true
	}
	return reflect.DeepEqual(a, b)
}
