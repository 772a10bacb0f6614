package layout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// storedKey is a key of ours in the metadata or status of an object. Keys of other groups, sandbox.cairn.dev say, are
// not stored by what is released.
var storedKey = regexp.MustCompile(`"(cairn\.dev/[A-Za-z-]+)`)

// goFiles returns the paths of the Go files of the root module that are part of a program.
func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, f := range readFiles(t) {
		first, _, _ := strings.Cut(f.path, "/")
		if !f.test() && !f.generated && !slices.Contains([]string{"sandbox", "proof", "examples"}, first) && !slices.Contains(forTests, f.room()) {
			out = append(out, f.path)
		}
	}
	slices.Sort(out)
	return out
}

// TestVersioningListsWhatIsStored sees that VERSIONING.md names every key that the code can store.
func TestVersioningListsWhatIsStored(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "VERSIONING.md"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, name := range goFiles(t) {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range storedKey.FindAllStringSubmatch(string(src), -1) {
			keys[found[1]] = name
		}
	}
	delete(keys, "cairn.dev/formats") // an annotation of a flag of the command line
	if len(keys) < 15 {
		t.Fatalf("%d keys are too few: the test looks past them", len(keys))
	}
	for key, name := range keys {
		if !strings.Contains(string(page), "`"+key) {
			t.Errorf("%s: VERSIONING.md does not list %s", name, key)
		}
	}
}
