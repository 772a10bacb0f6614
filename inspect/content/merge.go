package content

import (
	"encoding/json"
	"reflect"
	"slices"

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
	return merger{hashes: hashes}.fields(trees[0], trees[1], trees[2]), nil
}

// Follow returns a manifest with the fields changed that differ between two states of the object that it describes. If
// the manifest lacks a field, Follow adds it only where before lacks it as well. If both states have it, it is a
// default, or belongs to another manager. Follow changes none of its arguments. An error means that a state is not
// JSON.
func Follow(manifest map[string]any, before, after any) (map[string]any, error) {
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
	return merger{follows: true}.fields(trees[0], trees[1], trees[2]), nil
}

// merger merges trees, and changes none of them.
type merger struct {
	hashes []string
	// follows is true for [Follow].
	follows bool
}

func (m merger) value(live, from, to any) any {
	if m.same(from, to) {
		return live
	}
	if l, f, t := tree(live), tree(from), tree(to); l != nil && f != nil && t != nil {
		return m.fields(l, f, t)
	}
	l, okL := live.([]any)
	f, okF := from.([]any)
	t, okT := to.([]any)
	if okL && okF && okT {
		if key := keyOf(l, f, t); key != nil {
			return m.elements(l, f, t, key)
		}
	}
	return to
}

func (m merger) fields(live, from, to map[string]any) map[string]any {
	out := map[string]any{}
	for field, value := range live {
		is, kept := to[field]
		was, had := from[field]
		switch {
		case kept && had:
			out[field] = m.value(value, was, is)
		case kept:
			out[field] = is
		case !had:
			out[field] = value
		}
	}
	for field, is := range to {
		if _, there := live[field]; there {
			continue
		}
		if was, had := from[field]; !had {
			out[field] = is
		} else if more := m.missing(was, is, nil); more != nil {
			out[field] = more
		}
	}
	return out
}

// missing returns what of is to add where live has nothing, and both from and to have something; nil is nothing. With
// it go the fields of key, which name an element.
func (m merger) missing(was, is any, key []string) any {
	switch {
	case m.same(was, is):
		return nil
	case !m.follows:
		return is
	}
	if w, i := tree(was), tree(is); w != nil && i != nil {
		out := m.fields(nil, w, i)
		if len(out) == 0 {
			return nil
		}
		for _, field := range key {
			if name, has := i[field]; has {
				out[field] = name
			}
		}
		return out
	}
	w, okW := was.([]any)
	i, okI := is.([]any)
	if key := keyOf(w, i); okW && okI && key != nil {
		if out := m.elements(nil, w, i, key); len(out) > 0 {
			return out
		}
	}
	return nil
}

// elements merges lists whose elements have names: in the order of to, and then those that neither revision has.
func (m merger) elements(live, from, to []any, key []string) []any {
	has, was, is := byName(live, key), byName(from, key), byName(to, key)
	var out []any
	for _, e := range to {
		name := selector(tree(e), key)
		before, had := was[name]
		now, there := has[name]
		switch {
		case there && had:
			out = append(out, m.value(now, before, e))
		case there, !had:
			out = append(out, e)
		default:
			if more := m.missing(before, e, key); more != nil {
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
		for field, value := range x {
			if other, has := y[field]; !has || !m.same(value, other) {
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
