package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// This file says whether what a parent asks for has come about, and if not, why, in one sentence. Where a controller of
// ours reports, its conditions and what can be seen of the children count; elsewhere it is what the parent's own
// controller reports (reported.go).

// State is whether what a parent asks for has come about.
type State string

// The states.
const (
	// Done: there is nothing to wait for.
	Done State = "Done"
	// InProgress: it has not come about yet, and may do so without anybody's help.
	InProgress State = "InProgress"
	// Failed: its controller has given up, or goes on only after an edit or a deletion.
	Failed State = "Failed"
	// Unknown: its status does not tell.
	Unknown State = "Unknown"
)

// States are all states, from the best to the worst.
var States = []State{Done, Unknown, InProgress, Failed}

// Text returns the state as sentences say it of an object: "is in progress".
func (s State) Text() string {
	switch s {
	case Done:
		return "is done"
	case Failed:
		return "has failed"
	case Unknown:
		return "is in an unknown state"
	default:
		return "is in progress"
	}
}

// verdict is a state and its reason.
type verdict struct {
	state  State
	reason string
}

func inProgress(format string, args ...any) verdict {
	return verdict{InProgress, fmt.Sprintf(format, args...)}
}

// Complete reports whether there is nothing to wait for: the state is [Done].
func (s *Status) Complete() bool { return s.State == Done }

// counted reports whether the headline says how many children are updated.
func (s *Status) counted() bool {
	return s.Children != "" && !s.terminating && !s.Runs && (s.Rolled > 0 || len(s.Shares) > 0)
}

// StateText returns the state as the headline says it.
func (s *Status) StateText() string {
	if s.State == Done && s.counted() {
		return "rolled out"
	}
	return s.State.Text()
}

// Headline says in one line which object it is about, its state, and how many of its children are updated and
// available, or the reason.
func (s *Status) Headline() string { return s.subject() + s.progress() }

// Line is the headline with the reason, where there is something to wait for.
func (s *Status) Line() string { return s.subject() + s.Message() }

func (s *Status) subject() string {
	out := s.Parent.String()
	if s.Controller != "" {
		out += ", run by CompositeController " + s.Controller + ","
	}
	return out + " " + s.StateText() + ": "
}

// progress says how many children are updated and available or, where they are not counted, the reason.
func (s *Status) progress() string {
	switch {
	case s.Children == "" || s.terminating || s.Runs && s.State != Done:
		return s.Reason
	case s.Runs:
		return fmt.Sprintf("%d of %d %s come from the current revision", s.Updated, s.Total, s.Children)
	case !s.counted():
		return fmt.Sprintf("%d/%d %s available", s.Available, max(s.Total, s.Wanted), s.Children)
	}
	out := fmt.Sprintf("%d/%d %s updated, %d/%d available",
		s.Updated, max(s.Rolled, s.Wanted), s.Children, s.Available, max(s.Total, s.Wanted))
	if s.Wanted > 0 && s.Total > s.Wanted {
		out = fmt.Sprintf("%d/%d %s updated, %d/%d available, %d exist",
			min(s.Updated, s.Wanted), s.Wanted, s.Children, min(s.Available, s.Wanted), s.Wanted, s.Total)
	}
	if s.State == Done && s.held() {
		out += "; " + s.Reason
	}
	return out
}

// Message is what a line says behind the state: how far it is, and what it waits for.
func (s *Status) Message() string {
	progress := s.progress()
	if s.State == Done || strings.HasSuffix(progress, s.Reason) {
		return progress
	}
	return progress + "; " + s.Reason
}

// settle fills in the state of a parent, and why. blocker is the child that keeps it most, nil if none does.
func (s *Status) settle(parent *unstructured.Unstructured, blocker *Wait) {
	v := s.verdict(parent)
	if blocker != nil && !s.lags && !s.terminating {
		why := blocker.Child + ": " + strings.TrimSuffix(blocker.For, ".")
		if more := len(s.Waits) - 1; more > 0 {
			why += fmt.Sprintf(" (and %d more)", more)
		}
		switch v.state {
		case Failed:
			v.reason = strings.TrimSuffix(v.reason, ".") + "; " + why
		case InProgress, Unknown:
			v = verdict{InProgress, why}
		case Done:
		}
	}
	s.State, s.Reason = v.state, strings.Join(strings.Fields(v.reason), " ") // a message may have several lines
}

func (s *Status) verdict(parent *unstructured.Unstructured) verdict {
	if s.terminating = parent.GetDeletionTimestamp() != nil; s.terminating {
		return inProgress("%s", terminating(parent, time.Time{}))
	}
	updated := s.condition(Reported[0])
	switch {
	case s.rolledBack != nil && !s.lags: // the spec is not what the user asked for, even if all children are available
		return verdict{Failed, "rolled back: " + s.rolledBack.String()}
	case s.Runs && s.Update == nil && s.empty:
		return scheduled(parent, s.now)
	case s.Runs:
		return s.recorded()
	case updated != nil && !s.without || s.Controller != "" || ours(updated):
		return s.rolled(updated)
	case s.Update != nil && s.childless && !reports(parent) && !s.unreported(parent):
		return s.recorded()
	}
	v := reportedBy(parent)
	switch {
	case v.state.settled() && s.unreported(parent):
		return inProgress("no controller has reported on it yet")
	case v.state.settled() && !s.without:
		return s.beside(v, parent)
	}
	return v
}

// settled reports whether a status names nothing to wait for.
func (s State) settled() bool { return s == Done || s == Unknown }

// beside is the verdict on parents of other controllers, which report v, and on what can be seen of their children.
func (s *Status) beside(v verdict, parent *unstructured.Unstructured) verdict {
	_, says, _ := unstructured.NestedFieldNoCopy(parent.Object, "status", "observedGeneration")
	switch {
	case s.childless && s.Update == nil:
		return s.recorded()
	case s.Updated < s.Rolled && !says && !partitioned(parent.Object["spec"]):
		// What is reported may be about an older spec.
		return inProgress("%d of %d %s are updated", s.Updated, s.Rolled, s.Children)
	case s.Available < s.Wanted:
		return inProgress("%d of %d %s are available, though the status says that all are", s.Available, s.Wanted, s.Children)
	case v.state == Unknown && s.Total > 0 && s.Available == s.Total && s.Updated == s.Rolled:
		return verdict{Done, "every child is what the spec asks for, and available"}
	}
	return v
}

// fresh is how long a controller is given to report on a new object.
const fresh = 30 * time.Second

// unreported reports whether a controller may have yet to look at an object: of the built-in kinds it is known which
// have a status.
func (s *Status) unreported(o *unstructured.Unstructured) bool {
	_, specified := o.Object["spec"]
	return specified && !reports(o) && !scheme.Scheme.IsGroupRegistered(o.GroupVersionKind().Group) &&
		s.now.Sub(o.GetCreationTimestamp().Time) < fresh
}

// recorded is the verdict on parents whose children are not replaced, or not known: the spec is a revision, or will be.
func (s *Status) recorded() verdict {
	switch {
	case s.Update == nil:
		return inProgress("it is recorded in no revision as it is now")
	case s.Runs:
		return verdict{Done, fmt.Sprintf("it is recorded as %s, from which its next %s come", s.Update, s.Children)}
	}
	return verdict{Done, fmt.Sprintf("it is recorded as %s, which does not say what is made from it", s.Update)}
}

// scheduled is the verdict on a CronJob without revisions: no controller records it.
func scheduled(parent *unstructured.Unstructured, now time.Time) verdict {
	text, _, _ := unstructured.NestedString(parent.Object, "spec", "schedule")
	zone, _, _ := unstructured.NestedString(parent.Object, "spec", "timeZone")
	if _, err := time.LoadLocation(zone); err != nil {
		return verdict{Failed, fmt.Sprintf("its time zone %q is not known", zone)}
	}
	schedule, err := cron.ParseStandard(text)
	switch {
	case err != nil:
		return verdict{Failed, fmt.Sprintf("its schedule %q is invalid: %v", text, err)}
	case schedule.Next(now).IsZero():
		return verdict{Failed, fmt.Sprintf("its schedule %q has no date in the next years", text)}
	}
	if why := suspended(parent); why != "" {
		return verdict{Done, why}
	}
	return verdict{Done, fmt.Sprintf("it runs at %q, and no controller records it", text)}
}

// stuck are the reasons of the condition Updated that do not pass by themselves (docs/workloads.md).
var stuck = []string{"InvalidStrategy", "SelectingAll", "CurrentRevisionLost", "RevisionLost", "ProgressDeadlineExceeded"}

// rolled is the verdict on parents of our controllers: the controller has said of the spec as it is now that the
// rollout is over, every child of a kind that is rolled out belongs to the revision that the parent asks for, and every
// child is available.
func (s *Status) rolled(updated *Condition) verdict {
	said := updated != nil && updated.Status == "True" || updated == nil && s.Rolled == 0
	switch {
	case s.lags:
		return inProgress("%s", unseen)
	case said && s.Updated == s.Rolled && s.allAvailable():
		return verdict{Done, "every child is what the spec asks for, and available"}
	case updated == nil:
		return inProgress("its controller has not said yet how far the rollout is")
	case updated.Status != "True" && slices.Contains(stuck, updated.Reason):
		return verdict{Failed, updated.Reason + ": " + updated.Message}
	case s.held() && s.allAvailable():
		_, why, _ := strings.Cut(updated.Message, "; ")
		return verdict{Done, why}
	case updated.Status == "True" && !s.allAvailable():
		all := max(s.Total, s.Wanted)
		return inProgress("%d of %d children are not available", all-s.Available, all)
	}
	return inProgress("%s: %s", updated.Reason, updated.Message)
}

// ours reports whether a controller of ours wrote a condition. Other controllers have one of that type, too:
// MachineConfigPool of OpenShift.
func ours(updated *Condition) bool {
	return updated != nil && (updated.Reason == "OnLatestRevision" || strings.HasPrefix(updated.Reason, "Rollout") ||
		slices.Contains(stuck, updated.Reason))
}

// allAvailable reports whether there are as many available children as the parent asks for, and no others.
func (s *Status) allAvailable() bool { return s.Available == s.Total && s.Available >= s.Wanted }

// held reports whether its controller has done all updates that the strategy permits. kubectl rollout status does not
// wait for the others either.
func (s *Status) held() bool {
	updated := s.condition(Reported[0])
	return updated != nil && updated.Reason == "RolloutHeld"
}

func (s *Status) condition(kind string) *Condition {
	for n := range s.Conditions {
		if s.Conditions[n].Type == kind {
			return &s.Conditions[n]
		}
	}
	return nil
}

// terminating says what the end of an object waits for. now is zero where that is not asked.
func terminating(o *unstructured.Unstructured, now time.Time) string {
	out := "it is terminating"
	if f := o.GetFinalizers(); len(f) > 0 {
		out += ", and waits for its finalizers: " + strings.Join(f, ", ")
	}
	// The deletion timestamp is the end of the grace period.
	if late := now.Sub(o.GetDeletionTimestamp().Time).Truncate(time.Second); !now.IsZero() && late >= overdue {
		out += fmt.Sprintf("; its grace period ended %s ago", late)
	}
	return out
}

// overdue is how long after its grace period an object is no news.
const overdue = 10 * time.Second
