package hosting

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain takes the brake off the handlers of errors that nobody returns. It remembers, for the whole process, when
// the last one was, and sleeps for a moment after that: for a test whose clock stands in another year the moment is
// decades long, and what ticks each second meanwhile, such as client-go's mutation detector, ticks for as long.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // it is there for that; what stays is the one that logs
	os.Exit(m.Run())
}
