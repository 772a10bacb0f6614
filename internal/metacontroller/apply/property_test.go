package apply_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// fields are few, so that the three sides of a merge often meet.
var fields = []string{"name", "port", "a", "b", "c"}

func value(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Map(rapid.Int64Range(0, 2), func(n int64) any { return n }),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "y"}), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars,
		rapid.Map(tree(depth-1), func(m map[string]any) any { return m }),
		rapid.Map(tree(depth-1), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.SliceOfN(item(depth-1), 0, 3), func(l []any) any { return l }),
	)...)
}

func tree(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom(fields), value(depth), 0, len(fields))
}

// item is an object that has a name, as most items of lists do.
func item(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		m := tree(depth).Draw(t, "item")
		m["name"] = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "item name")
		return m
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		observed, last, desired := tree(3).Draw(t, "observed"), tree(3).Draw(t, "last"), tree(3).Draw(t, "desired")
		before := []any{runtime.DeepCopyJSON(observed), runtime.DeepCopyJSON(last), runtime.DeepCopyJSON(desired)}
		merged, changed := apply.Merge(observed, last, desired)

		if diff := cmp.Diff(before, []any{observed, last, desired}); diff != "" {
			t.Fatalf("an argument was written to:\n%s", diff)
		}
		if want := naive(observed, last, desired); !cmp.Equal(want, any(merged)) {
			t.Fatalf("-naive +got\n%s", cmp.Diff(want, any(merged)))
		}
		if changed == cmp.Equal(observed, merged) {
			t.Fatalf("changed is %t", changed)
		}
		if again, changed := apply.Merge(merged, desired, desired); changed {
			t.Fatalf("applied twice is not applied once:\n%s", cmp.Diff(merged, again))
		}
		checkFields(t, "", observed, last, desired, merged)
	})
}

// checkFields is what a user is promised of objects, without any of the algorithm: what nobody applied stays, what is
// not asked for any more goes, what is asked for is there.
func checkFields(t *rapid.T, path string, observed, last, desired, merged map[string]any) {
	for key, value := range merged {
		if _, wanted := desired[key]; wanted {
			continue
		}
		if was, there := observed[key]; !there || !cmp.Equal(was, value) {
			t.Fatalf("%s.%s: nobody asked for %v", path, key, value)
		}
		if _, applied := last[key]; applied {
			t.Fatalf("%s.%s was applied, is not asked for, and is still there", path, key)
		}
	}
	for key, was := range observed {
		_, wanted := desired[key]
		_, applied := last[key]
		if _, there := merged[key]; !wanted && !applied && (!there || !cmp.Equal(was, merged[key])) {
			t.Fatalf("%s.%s belongs to somebody else and changed", path, key)
		}
	}
	for key, want := range desired {
		got, there := merged[key]
		if !there {
			t.Fatalf("%s.%s is asked for and not there", path, key)
		}
		o, isObject := observed[key].(map[string]any)
		switch want := want.(type) {
		case map[string]any:
			l, _ := last[key].(map[string]any)
			if m, ok := got.(map[string]any); ok && isObject {
				checkFields(t, path+"."+key, o, l, want, m)
			}
		case []any:
		default:
			if !isObject && !cmp.Equal(want, got) {
				t.Fatalf("%s.%s is %v, and %v is asked for", path, key, got, want)
			}
		}
	}
}

// naive says what Merge says, without sharing and without a thought for cost.
func naive(observed, last, desired any) any {
	d, isObject := desired.(map[string]any)
	l, _ := last.(map[string]any)
	switch o := observed.(type) {
	case map[string]any:
		out := runtime.DeepCopyJSON(o)
		if !isObject {
			d = nil
		}
		for key := range l {
			if _, ok := d[key]; !ok {
				delete(out, key)
			}
		}
		for key := range d {
			out[key] = naive(o[key], l[key], d[key])
		}
		return out
	case []any:
		dl, isList := desired.([]any)
		ll, _ := last.([]any)
		key := naiveKey(o, ll, dl)
		if !isList || key == "" {
			return desired
		}
		out := []any{}
		for _, x := range o {
			name := fmt.Sprint(x.(map[string]any)[key])
			switch {
			case find(dl, key, name) != nil:
				out = append(out, naive(x, find(ll, key, name), find(dl, key, name)))
			case find(ll, key, name) == nil:
				out = append(out, x)
			}
		}
		for _, x := range dl {
			if find(o, key, fmt.Sprint(x.(map[string]any)[key])) == nil {
				out = append(out, x)
			}
		}
		return out
	default:
		return desired
	}
}

func naiveKey(lists ...[]any) string {
	all := slices.Concat(lists...)
	for _, key := range []string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"} {
		fits := len(all) > 0
		for _, x := range all {
			m, ok := x.(map[string]any)
			fits = fits && ok && m[key] != nil
		}
		for _, l := range lists {
			names := map[string]bool{}
			for _, x := range l {
				m, _ := x.(map[string]any)
				names[fmt.Sprint(m[key])] = true
			}
			fits = fits && len(names) == len(l)
		}
		if fits {
			return key
		}
	}
	return ""
}

// find returns an item of a list of objects, nil if there is none.
func find(l []any, key, name string) any {
	for _, x := range l {
		if fmt.Sprint(x.(map[string]any)[key]) == name {
			return x
		}
	}
	return nil
}
