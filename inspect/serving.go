package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says whether a child is available, as the controllers define it: it exists, is not terminating, and has passed the
// checks of its kind for long enough. The time is an argument.

// String returns a child as conditions and events name it.
func (m member) String() string {
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// lacks says why a child is not available, empty if it is.
func (m member) lacks(now time.Time) string {
	switch {
	case m.object == nil:
		return "it does not exist"
	case m.object.GetDeletionTimestamp() != nil:
		return "it is terminating"
	}
	state := m.ready.Of(m.object, time.Time{}, now)
	switch {
	case state.Failed != "":
		return explained(state)
	case state.Stale:
		return "its controller has not observed its latest spec"
	case state.Left > 0:
		return fmt.Sprintf("it has passed its checks for %s, and must for %s", state.Passed.Truncate(time.Second), m.ready.MinReady)
	}
	return ""
}

// explained says why an object fails a check: in Metacontroller's words, and then in those of the object.
func explained(state readiness.State) string {
	why, found := state.Failed, state.Found
	if found == nil {
		return why
	}
	if found.Reason != "" && !strings.Contains(why, " condition reason is ") {
		why += ", " + found.Reason
	}
	if found.Message != "" {
		why += ": " + found.Message
	}
	return why
}
