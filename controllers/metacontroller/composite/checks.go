package composite

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history/metacontroller"
)

// This file says whether a child is available, in Metacontroller's words. It is pure. The rule is package readiness's.

// health is what a rollout knows of a child.
type health struct {
	// failing says what the child lacks, in Metacontroller's words; empty if it passes every check.
	failing string
	// left is how long it still has to pass them; zero if that is over, or if it fails.
	left time.Duration
}

// available reports whether the child is available.
func (h health) available() bool { return h.failing == "" && h.left == 0 }

// changes are when children were changed in place, by UID, as far as this process remembers. Conditions do not tell:
// many do not change with the child, which would then seem to have passed its checks for long.
type changes map[types.UID]time.Time

// healthOf looks at one child that exists and is not terminating. changed is when it was changed in place, zero if that
// is not known.
func healthOf(key metacontroller.Child, child *unstructured.Unstructured, s strategy, changed, now time.Time) health {
	state := s.ready.Of(child, changed, now)
	switch {
	case state.Failed != "":
		return health{failing: fmt.Sprintf("child %s failed status check: %s", key, state.Failed)}
	case state.Stale:
		return health{failing: fmt.Sprintf("child %s with RollingInPlace update strategy hasn't observed latest spec", key)}
	default:
		return health{left: state.Left}
	}
}
