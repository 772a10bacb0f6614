package revision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/revision"
)

// TestIdentified: two revisions with different content never have the same hash, and their names decide.
func TestIdentified(t *testing.T) {
	tail := strings.Repeat("x", 63)
	in := func(name, label, content string, more ...option) revision.Revision {
		r := stored(name, 1, content, more...)
		r.Hash, r.UID = label, types.UID("u-"+name[:1])
		return r
	}
	for name, c := range map[string]struct {
		all  []revision.Revision
		want string // the hashes, with * behind those that are not written
	}{
		"none":                         {nil, ""},
		"as it should be":              {[]revision.Revision{in("web-a", "a", "A"), in("web-b", "b", "B")}, "a b"},
		"no label":                     {[]revision.Revision{in("web-a", "", "A"), in("web-b", "b", "B")}, "web-a* b"},
		"a copy has the same content":  {[]revision.Revision{in("web-a", "a", "A"), in("copy", "a", "A")}, "a a"},
		"what is unknown is not other": {[]revision.Revision{in("web-a", "a", "A"), in("odd", "a", "?")}, "a a"},
		"planted":                      {[]revision.Revision{in("planted", "a", "B"), in("web-a", "a", "A")}, "planted* a"},
		"planted, beside one that goes": {
			[]revision.Revision{in("web-a", "a", "A", deleting), in("planted", "a", "B")}, "a planted*",
		},
		"its name ends alike":       {[]revision.Revision{in("other-a", "a", "B"), in("web-a", "a", "A")}, "other-a* a"},
		"its name is the hash":      {[]revision.Revision{in("a", "a", "B"), in("web-a", "a", "A")}, "a-u-a* a"},
		"labelled by its name":      {[]revision.Revision{in("old", "old", "A"), in("planted", "old", "B")}, "old planted*"},
		"nobody has a better right": {[]revision.Revision{in("one", "a", "A"), in("two", "a", "B")}, "one* two*"},
		"its name is taken":         {[]revision.Revision{in("one", "", "A"), in("web-b", "one", "B")}, "one-u-o* one"},
		"its name is free again":    {[]revision.Revision{in("web-a", "", "A"), in("x", "web-a", "B"), in("y", "web-a", "C")}, "web-a* x* y*"},
		"two names end alike": {
			[]revision.Revision{in("1"+tail, "", "A"), in("2"+tail, "", "B")}, (tail + "-u-1")[4:] + "* " + (tail + "-u-2")[4:] + "*",
		},
	} {
		for range 2 { // nothing changes if it is asked about its own answer
			c.all = revision.Identified(func(hash string) string { return revision.Name("web", hash) }, c.all)
			var got []string
			for _, r := range c.all {
				hash := r.Hash
				if r.Unlabelled {
					hash += "*"
				}
				got = append(got, hash)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), c.want)
			}
		}
	}
}
