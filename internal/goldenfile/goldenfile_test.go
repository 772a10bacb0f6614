package goldenfile_test

import (
	"testing"

	"github.com/cairn-dev/cairn/internal/goldenfile"
)

// noting notes that a test has failed.
type noting struct {
	testing.TB

	failed bool
}

func (n *noting) Errorf(string, ...any) { n.failed = true }

func TestCheck(t *testing.T) {
	for text, fails := range map[string]bool{"as it was\n": false, "as it is\n": true} {
		n := &noting{TB: t}
		goldenfile.Check(n, "a.golden", text)
		if n.failed != fails {
			t.Errorf("%q: failed is %v", text, n.failed)
		}
	}
}
