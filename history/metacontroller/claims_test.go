package metacontroller

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file checks who claims whom.

func pod(name string) Child { return Child{GroupKind: schema.GroupKind{Kind: "Pod"}, Name: name} }

func claims(children ...Child) *Claims {
	c := &Claims{}
	for _, child := range children {
		c.Add(child)
	}
	return c
}

// TestStoredClaims: what Metacontroller wrote in random order is read as one set and written in one order.
func TestStoredClaims(t *testing.T) {
	for name, c := range map[string]struct{ stored, want string }{
		"none":         {`null`, `null`},
		"a kind alone": {`[{"apiGroup":"","kind":"Pod","names":[]}]`, `null`},
		"one":          {`[{"apiGroup":"","kind":"Pod","names":["a"]}]`, `[{"apiGroup":"","kind":"Pod","names":["a"]}]`},
		"in any order": {
			`[{"apiGroup":"apps","kind":"StatefulSet","names":["z"]},{"apiGroup":"","kind":"Service","names":["b"]},{"apiGroup":"","kind":"Pod","names":["c-10","c-1","c-2"]}]`,
			`[{"apiGroup":"","kind":"Pod","names":["c-1","c-10","c-2"]},{"apiGroup":"","kind":"Service","names":["b"]},{"apiGroup":"apps","kind":"StatefulSet","names":["z"]}]`,
		},
		"twice": {
			`[{"apiGroup":"","kind":"Pod","names":["b","b"]},{"apiGroup":"","kind":"Pod","names":["a","b"]}]`,
			`[{"apiGroup":"","kind":"Pod","names":["a","b"]}]`,
		},
		"one kind of two groups": {
			`[{"apiGroup":"b","kind":"Cat","names":["x"]},{"apiGroup":"a","kind":"Cat","names":["x"]}]`,
			`[{"apiGroup":"a","kind":"Cat","names":["x"]},{"apiGroup":"b","kind":"Cat","names":["x"]}]`,
		},
		"of a parent in no namespace": {
			`[{"apiGroup":"","kind":"Pod","names":["b/x","a/y","a/x"]},{"apiGroup":"","kind":"Node","names":["n"]}]`,
			`[{"apiGroup":"","kind":"Node","names":["n"]},{"apiGroup":"","kind":"Pod","names":["a/x","a/y","b/x"]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []v1alpha1.ControllerRevisionChildren
			if err := json.Unmarshal([]byte(c.stored), &stored); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(ReadClaims(stored).Stored())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChildrenOfNamespaces(t *testing.T) {
	c := ReadClaims([]v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: []string{"a/x", "x"}}})
	want := []Child{pod("x"), {GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "a", Name: "x"}}
	if diff := cmp.Diff(want, c.Sorted()); diff != "" {
		t.Error(diff)
	}
}

func TestMoveToItself(t *testing.T) {
	c := claims(pod("a"))
	c.Move(pod("a"), c)
	if !c.Has(pod("a")) {
		t.Error("it is gone")
	}
}

func TestSettle(t *testing.T) {
	newest, older, oldest := claims(pod("a")), claims(pod("a"), pod("b")), claims(pod("a"), pod("b"), pod("c"))
	Settle(newest, older, oldest)
	for i, c := range []struct{ got, want *Claims }{{newest, claims(pod("a"))}, {older, claims(pod("b"))}, {oldest, claims(pod("c"))}} {
		if !c.got.Equal(c.want) {
			t.Errorf("%d: %v, want %v", i, c.got.Sorted(), c.want.Sorted())
		}
	}
}

// TestClaims runs revisions through random moves, beside a map that says for each child where it is.
func TestClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []*Claims{{}, {}, {}}
		where := map[Child]*Claims{}
		child := rapid.Custom(func(t *rapid.T) Child {
			return Child{
				GroupKind: schema.GroupKind{Group: rapid.SampledFrom([]string{"", "apps"}).Draw(t, "group"), Kind: rapid.SampledFrom([]string{"Pod", "Set"}).Draw(t, "kind")},
				Namespace: rapid.SampledFrom([]string{"", "n"}).Draw(t, "namespace"), Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"move": func(t *rapid.T) {
				it, to := child.Draw(t, "child"), rapid.SampledFrom(all).Draw(t, "to")
				if from := where[it]; from != nil {
					from.Move(it, to)
				} else {
					to.Add(it)
				}
				where[it] = to
			},
			"remove": func(t *rapid.T) {
				it := child.Draw(t, "child")
				for _, c := range all {
					c.Remove(it)
				}
				delete(where, it)
			},
			"store and read": func(t *rapid.T) {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "revision")
				before := all[i].Clone()
				read := ReadClaims(all[i].Stored())
				if !read.Equal(before) {
					t.Fatalf("%v became %v", before.Sorted(), read.Sorted())
				}
				for it, c := range where {
					if c == all[i] {
						where[it] = read
					}
				}
				all[i] = read
			},
			"": func(t *rapid.T) {
				count := 0
				for _, c := range all {
					count += c.Len()
					if !slices.IsSortedFunc(c.Sorted(), Child.Compare) {
						t.Fatalf("out of order: %v", c.Sorted())
					}
				}
				for it, c := range where {
					if !c.Has(it) {
						t.Fatalf("%v is not where it was moved", it)
					}
				}
				if count != len(where) {
					t.Fatalf("%d claims for %d children", count, len(where))
				}
			},
		})
	})
}

// TestACopyIsApart: a plan may change its claims and be dropped.
func TestACopyIsApart(t *testing.T) {
	c := claims(pod("a"))
	other := c.Clone()
	other.Add(pod("b"))
	other.Remove(pod("a"))
	if !c.Equal(claims(pod("a"))) {
		t.Errorf("%v", c.Sorted())
	}
	empty := (&Claims{}).Clone()
	empty.Add(pod("a"))
	if !empty.Equal(c) {
		t.Errorf("a copy of nothing: %v", empty.Sorted())
	}
}
