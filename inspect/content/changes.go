package content

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// This file says in words what differs between two contents. It is pure.
//
// Elements of a list are compared by what they are called, where all have a name of their own. The elements show which
// field is the name; nothing is known of kinds. Their order counts as well. Init containers run in it, a
// variable may use those before it, and pods are replaced for any other order.

// Change is one field that differs.
type Change struct {
	// Path names the field, as short as it can be told from the other changes: containers[name="web"].image.
	Path string
	// Before and After are its values as JSON, texts without quotes; empty if it was absent.
	Before, After string
}

// String returns the change as a table shows it: containers[name="web"].image: nginx:1.28 → nginx:1.29.
func (c Change) String() string {
	switch {
	case c.Before == "":
		return "+" + c.Path + ": " + c.After
	case c.After == "":
		return "-" + c.Path + ": " + c.Before
	}
	return c.Path + ": " + c.Before + " → " + c.After
}

// names are the fields that tell elements of a list apart, the likeliest first (the merge keys of Kubernetes' own
// types).
var names = [][]string{
	{"name"},
	{"key"},
	{"id"},
	{"containerPort", "protocol"},
	{"port", "protocol"},
	{"mountPath"},
	{"devicePath"},
	{"topologyKey"},
	{"ip"},
	{"type"},
}

// step is one step down: a field, or an element of a list.
type step struct {
	field string
	// selector names the element, as in [name="web"], and is empty for a field.
	selector string
}

// difference is a change with its whole path.
type difference struct {
	path          []step
	before, after any
	was, is       bool
}

// changes compares two contents.
func compareContents(before, after map[string]any) []Change {
	var found []difference
	compare(nil, before, after, &found)
	out := make([]Change, len(found))
	for i, d := range found {
		out[i] = Change{Path: shortest(found, i)}
		if d.was {
			out[i].Before = shown(d.before)
		}
		if d.is {
			out[i].After = shown(d.after)
		}
	}
	return out
}

func compare(path []step, before, after any, found *[]difference) {
	if reflect.DeepEqual(before, after) {
		return
	}
	if a, b := tree(before), tree(after); a != nil && b != nil {
		compareFields(path, a, b, found)
		return
	}
	a, okA := before.([]any)
	b, okB := after.([]any)
	if okA && okB && compareElements(path, a, b, found) {
		return
	}
	*found = append(*found, difference{path: slices.Clone(path), before: before, after: after, was: true, is: true})
}

func tree(v any) map[string]any {
	out, _ := v.(map[string]any)
	return out
}

func compareFields(path []step, a, b map[string]any, found *[]difference) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		was, inA := a[field]
		is, inB := b[field]
		at := append(slices.Clip(path), step{field: field})
		if inA && inB {
			compare(at, was, is, found)
			continue
		}
		*found = append(*found, difference{path: at, before: was, after: is, was: inA, is: inB})
	}
}

// compareElements compares the elements of two lists by their names. It reports false if they have none.
func compareElements(path []step, a, b []any, found *[]difference) bool {
	key := keyOf(a, b)
	if key == nil {
		return false
	}
	was, is := byName(a, key), byName(b, key)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, inA := was[name]
		after, inB := is[name]
		at := append(slices.Clip(path), step{selector: name})
		if inA && inB {
			compare(at, before, after, found)
			continue
		}
		*found = append(*found, difference{path: at, before: before, after: after, was: inA, is: inB})
	}
	if before, after := common(a, is, key), common(b, was, key); !slices.Equal(before, after) {
		at := append(slices.Clip(path), step{selector: "[order]"})
		*found = append(*found, difference{path: at, before: strings.Join(before, " "), after: strings.Join(after, " "), was: true, is: true})
	}
	return true
}

// common returns the names of the elements of a list that another one has as well, in their order.
func common(list []any, other map[string]any, key []string) []string {
	var out []string
	for _, e := range list {
		if name := selector(tree(e), key); other[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// keyOf returns the fields by which all elements of both lists can be told apart, nil if there are none.
func keyOf(lists ...[]any) []string {
	for _, key := range names {
		if !slices.ContainsFunc(lists, func(list []any) bool { return !distinct(list, key) }) {
			return key
		}
	}
	return nil
}

func distinct(list []any, key []string) bool {
	if slices.ContainsFunc(list, func(e any) bool { return tree(e) == nil || selector(tree(e), key) == "" }) {
		return false
	}
	return len(byName(list, key)) == len(list)
}

func byName(list []any, key []string) map[string]any {
	out := map[string]any{}
	for _, e := range list {
		out[selector(tree(e), key)] = e
	}
	return out
}

// selector names an element by the fields of key that it has, empty if it lacks the first. The protocol TCP is left
// out: it is the default, which manifests leave out and objects have.
func selector(element map[string]any, key []string) string {
	var parts []string
	for i, field := range key {
		v, ok := element[field]
		if !ok && i == 0 || tree(v) != nil {
			return ""
		}
		if ok && (field != "protocol" || v != "TCP") {
			parts = append(parts, fmt.Sprintf("%s=%s", field, quoted(v)))
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// shown is a value in one line: a text as it is, anything else as JSON.
func shown(v any) string {
	if text, ok := v.(string); ok && text != "" && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	return quoted(v)
}

// shortest returns the end of the path of found[i] that is no end of another one's: from its last element of a list on,
// or its last two fields.
func shortest(found []difference, i int) string {
	path := found[i].path
	from := max(0, len(path)-2) //nolint:mnd // a field, and what it is of
	for at, s := range slices.Backward(path) {
		if s.selector != "" {
			from = max(0, at-1)
			break
		}
	}
	for from > 0 && !unique(found, i, written(path[from:]), len(path)-from) {
		from--
	}
	return written(path[from:])
}

// unique reports whether no other path ends in that text.
func unique(found []difference, i int, text string, steps int) bool {
	for j, d := range found {
		if j != i && len(d.path) >= steps && written(d.path[len(d.path)-steps:]) == text {
			return false
		}
	}
	return true
}

func written(path []step) string {
	var out strings.Builder
	for i, s := range path {
		switch {
		case s.selector != "":
			out.WriteString(s.selector)
		case strings.ContainsAny(s.field, `./"[]`):
			fmt.Fprintf(&out, "[%q]", s.field)
		case i > 0:
			out.WriteString("." + s.field)
		default:
			out.WriteString(s.field)
		}
	}
	return out.String()
}
