package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file says whether a child is available, as the controllers define it: it exists, is not terminating, and has
// passed the checks of its kind for long enough. The time is an argument.

// nameOf returns a child as conditions and events name it.
func nameOf(m object.Member) string {
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// unavailableReason says why a child is not available, empty if it is.
func unavailableReason(m object.Member, now time.Time) string {
	switch {
	case m.Object == nil:
		return "it does not exist"
	case m.Object.GetDeletionTimestamp() != nil:
		return terminating(m.Object, now)
	}
	state := m.Ready.Of(m.Object, time.Time{}, now)
	switch {
	case state.Failed != "":
		return explained(m, state)
	case state.Stale:
		return "its controller has not observed its latest spec"
	case state.Left > 0:
		return fmt.Sprintf("it has passed its checks for %s, and must for %s", state.Passed.Truncate(time.Second), m.Ready.MinReady)
	}
	return ""
}

// explained says why a child fails a check: of a pod that is not ready, who keeps it from being so; of others, and
// where it is about another condition, which check it is, in Metacontroller's words, and then what the object says.
func explained(m object.Member, state readiness.State) string {
	why, found := state.Failed, state.Found
	if blocker := podBlocker(m.Object); blocker != "" && (found == nil || found.Type == string(corev1.PodReady)) {
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
