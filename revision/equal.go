package revision

import (
	"bytes"
	"encoding/json"
	"slices"
)

// This file compares two snapshots. Rules E1 and E2 are decided here; E0 needs the stamp (resolve.go), E3 needs the API
// server, and this file says when asking it can make sense at all.

// Rule names the rule by which a revision was found to be equivalent to the parent, in the order in which they are
// tried. It goes into events and logs.
type Rule string

// The equivalence rules of the design. A later one is only tried where the earlier ones say "different".
const (
	// RuleNone: no rule makes them equal.
	RuleNone Rule = ""
	// RuleStamp (E0): the revision was taken from this very parent at this very generation, and no value contradicts it.
	RuleStamp Rule = "E0"
	// RuleBytes (E1): the canonical bytes are equal.
	RuleBytes Rule = "E1"
	// RuleNormal (E2): equal after both went through today's type.
	RuleNormal Rule = "E2"
	// RuleServer (E3): the API server changes nothing when asked to restore it.
	RuleServer Rule = "E3"
)

// Compare says by which rule, E1 or E2, two snapshots of one target are equal, and [RuleNone] if by neither. It is
// reflexive, symmetric and transitive.
func Compare(a, b *Snapshot) Rule {
	if bytes.Equal(a.data, b.data) || bytes.Equal(a.plain, b.plain) {
		return RuleBytes
	}
	na, errA := a.normal()
	nb, errB := b.normal()
	if errA == nil && errB == nil && bytes.Equal(na, nb) {
		return RuleNormal
	}
	return RuleNone
}

// Askable reports whether two snapshots that [Compare] finds different could still be equal for the API server, so that
// rule E3 is worth a request: they differ only in fields that one of them has and the other has not. That is what a new
// default, a removed field or a mirrored one (serviceAccount and serviceAccountName) looks like. A value that both have
// and that differs, or a list of another length, was edited; no default explains it.
//
// Snapshots of different fields are not: the server would only be asked about what the older one holds.
func Askable(a, b *Snapshot) bool {
	if !a.target.Covers(b.target) {
		return false
	}
	na, errA := a.normal()
	nb, errB := b.normal()
	if errA != nil || errB != nil {
		return false
	}
	ta, errA := decodeObject(na)
	tb, errB := decodeObject(nb)
	return errA == nil && errB == nil && agree(ta, tb)
}

// duplicates reports whether two stored snapshots are one too many. Being equal is not enough: what today's type does
// not have is dropped from a comparison, and may be all that tells two apart for the release that recorded them.
func duplicates(a, b *Snapshot) bool {
	if a.partial || b.partial {
		return false
	}
	rule := Compare(a, b)
	return rule == RuleBytes || rule == RuleNormal && a.Known() && b.Known()
}

// differ reports whether two snapshots certainly hold different content. It is false if today's type does not have all
// fields of one of them.
func differ(a, b *Snapshot) bool {
	return !a.partial && !b.partial && a.Known() && b.Known() && Compare(a, b) == RuleNone
}

// Known reports whether today's type has all fields of s. Of one that has others, what is restored from it is a part.
func (s *Snapshot) Known() bool {
	normal, err := s.normal()
	if err != nil {
		return false
	}
	p, errPlain := decodeObject(s.plain)
	n, errNormal := decodeObject(normal)
	return errPlain == nil && errNormal == nil && has(n, p)
}

// has reports whether tree has a value wherever other has one that says something.
func has(tree, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		object, ok := tree.(map[string]any)
		for k, v := range other {
			if says(v) && (!ok || object[k] == nil || !has(object[k], v)) {
				return false
			}
		}
	case []any:
		list, ok := tree.([]any)
		for i, v := range other {
			if says(v) && (!ok || i >= len(list) || !has(list[i], v)) {
				return false
			}
		}
	}
	return true
}

// says reports whether a value is there: no null, no zero, and nothing that holds only those.
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		return v != "0"
	case map[string]any:
		for _, e := range v {
			if says(e) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, says)
	default:
		return true
	}
}

// agree reports whether no value that both canonical trees have is different.
func agree(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for k, va := range a {
			if vb, both := b[k]; both && !agree(va, vb) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !agree(a[i], b[i]) {
				return false
			}
		}
		return true
	default: // numbers too: they are canonical
		return a == b
	}
}
