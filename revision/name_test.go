package revision_test

// Names and hashes: valid wherever they are used, whatever the parent is called, and never changing silently (the
// golden hashes are in format_test.go).

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// objectNames generates valid object names of any length up to 253 bytes, with long runs of dashes for a cut to hit.
func objectNames() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		label := rapid.StringMatching(`[a-z0-9](-{0,30}[a-z0-9]{1,3}){0,20}`)
		name := label.Draw(t, "name")
		for length := rapid.IntRange(0, 253).Draw(t, "length"); len(name) < length; {
			name += "." + label.Draw(t, "label")
		}
		name = strings.TrimRight(name[:min(len(name), 253)], ".-")
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Fatalf("the test made the invalid name %q: %v", name, errs)
		}
		return name
	})
}

func counts() *rapid.Generator[*int32] { return rapid.Ptr(rapid.Int32(), true) }

// naiveHash is FNV-32a and the safe encoding, written down once more.
func naiveHash(data []byte, count *int32) string {
	if count != nil {
		data = append(append([]byte{}, data...), strconv.Itoa(int(*count))...)
	}
	h := uint32(2166136261)
	for _, b := range data {
		h = (h ^ uint32(b)) * 16777619
	}
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	var out strings.Builder
	for _, digit := range []byte(strconv.FormatUint(uint64(h), 10)) {
		out.WriteByte(alphabet[int(digit)%len(alphabet)])
	}
	return out.String()
}

func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		count := counts().Draw(t, "count")
		hash := revision.Hash(data, count)
		if want := naiveHash(data, count); hash != want {
			t.Fatalf("got %s, want %s", hash, want)
		}
		if len(hash) < 1 || len(hash) > 10 || strings.ContainsAny(hash, "aeiou013.-") {
			t.Fatalf("%q may hold a word", hash)
		}
		if errs := validation.IsValidLabelValue(hash); len(errs) > 0 {
			t.Fatalf("%q is no label value: %v", hash, errs)
		}
	})
}

// After a collision the next count must give another name; so must the step from none to 0.
func TestHashChangesWithTheCollisionCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		seen := map[string]bool{revision.Hash(data, nil): true}
		for count := range int32(20) {
			hash := revision.Hash(data, &count)
			if seen[hash] {
				t.Fatalf("count %d gives the hash of an earlier one, %s", count, hash)
			}
			seen[hash] = true
		}
	})
}

func TestNameIsValidForEveryObjectName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := objectNames().Draw(t, "prefix")
		hash := revision.Hash(rapid.SliceOf(rapid.Byte()).Draw(t, "data"), counts().Draw(t, "count"))
		name := revision.Name(prefix, hash)
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Fatalf("%q is no object name: %v", name, errs)
		}
		kept, found := strings.CutSuffix(name, "-"+hash)
		if !found || !strings.HasPrefix(prefix, kept) {
			t.Fatalf("%q is not made of %q and %q", name, prefix, hash)
		}
		if lost := prefix[len(kept):min(len(prefix), 223)]; strings.Trim(lost, ".-") != "" || len(prefix) <= 223 && lost != "" {
			t.Fatalf("%q lost %q of %q", name, lost, prefix)
		}
	})
}

func TestName(t *testing.T) {
	long := strings.Repeat("a", 222)
	for _, c := range []struct{ prefix, want string }{
		{"agent", "agent-hash"},
		{"a.b", "a.b-hash"},
		{long + "b", long + "b-hash"}, // 223: not cut
		{long + "bc", long + "b-hash"},
		{long + ".c", long + "-hash"}, // "a.-hash" is no object name
		{long + "-c", long + "-hash"},
		{long[:220] + "--.c", long[:220] + "-hash"},
		{long[:220] + "--b", long[:220] + "--b-hash"},
		{strings.Repeat("a", 253), long + "a-hash"},
	} {
		if got := revision.Name(c.prefix, "hash"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.prefix, got, c.want)
		}
	}
}

// A revision without a hash label is pointed at by its name, or by the end of it, which holds the hash.
func TestLabelValueIsValidForEveryObjectName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := objectNames().Draw(t, "name")
		value := revision.LabelValue(name)
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 || value == "" {
			t.Fatalf("%q is no label value for %q: %v", value, name, errs)
		}
		if !strings.HasSuffix(name, value) || len(name) <= 63 && value != name {
			t.Fatalf("%q is not the end of %q", value, name)
		}
		if len(name) > 63 && strings.Trim(name[len(name)-63:len(name)-len(value)], ".-") != "" {
			t.Fatalf("%q is too short for %q", value, name)
		}
	})
}

func TestLabelValue(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range []struct{ name, want string }{
		{"agent-hash", "agent-hash"},
		{long + "bcd", long + "bcd"},
		{"x" + long + "bcd", long + "bcd"},
		{"x.-" + long + "b", long + "b"},
	} {
		if got := revision.LabelValue(c.name); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
