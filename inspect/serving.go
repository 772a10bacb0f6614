package inspect

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says whether a child is available, as the controllers define it: it exists, is not terminating, and has
// passed the checks of its kind for long enough. The time is an argument.

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
		return terminating(m.object, now)
	}
	state := m.ready.Of(m.object, time.Time{}, now)
	switch {
	case state.Failed != "":
		return m.explained(state)
	case state.Stale:
		return "its controller has not observed its latest spec"
	case state.Left > 0:
		return fmt.Sprintf("it has passed its checks for %s, and must for %s", state.Passed.Truncate(time.Second), m.ready.MinReady)
	}
	return ""
}

// explained says why a child fails a check: of a pod that is not ready, who keeps it from being so; of others, and
// where it is about another condition, which check it is, in Metacontroller's words, and then what the object says.
func (m member) explained(state readiness.State) string {
	why, found := state.Failed, state.Found
	if blocker := podBlocker(m.object); blocker != "" && (found == nil || found.Type == string(corev1.PodReady)) {
		return blocker
	}
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
