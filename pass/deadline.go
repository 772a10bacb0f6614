package pass

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/rollout"
)

// This file says when a rollout has failed because it does not get on, as a Deployment's does after its
// progressDeadlineSeconds. What it goes by is in the message of a condition, which is written together with the
// counters that the same progress changes: a manager that starts, or becomes the leader, goes on where the last one
// ended.

const (
	// ProgressDeadlineAnnotation says on a parent after how long without progress its rollout has failed: a duration of
	// one second at least, such as "10m". "0" means never, whatever the default is.
	ProgressDeadlineAnnotation = "cairn.dev/progress-deadline"
	// Stalled is the condition of a parent with a deadline: True when its rollout has failed. That is the condition which
	// kstatus, and with it Flux and kubectl plugins, takes for a failure.
	Stalled = "Stalled"
	// ProgressDeadlineExceeded is the reason of Stalled, and of Updated, when it has (Deployments).
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// rolledBack is the reason of Stalled, True, of a parent that was brought back because its rollout failed: what was
// asked for has not come about. It stays until the next edit.
const rolledBack = "RolledBack"

// Reasons of Stalled while it is False. Only in the first one does the time run.
const (
	phases           = "Rollout"
	phaseProgressing = "RolloutProgressing"
	phaseComplete    = "RolloutComplete" // what falls later is no rollout
	phaseHeld        = "RolloutHeld"     // by a partition: all that may be done is done
	phasePaused      = "RolloutPaused"   // nobody expects it to get on
)

// invalidDeadline is the reason of Stalled, which is Unknown, and of an event about an annotation that says no
// duration.
const invalidDeadline = "InvalidProgressDeadline"

// Rollout is how far the rollout of a parent is, for [Pass.NoteRollout].
type Rollout struct {
	// Plan is what was planned, nil if nothing could be: then it is as far as it was.
	Plan *rollout.Plan
	// Revision is the name of the revision that the spec asks for, empty if that could not be recorded.
	Revision string
	// Updated is the condition of that type.
	Updated metav1.Condition
	// Stopped says that it is paused, or that children are replaced by hand only.
	Stopped bool
	// Deadline is after how long without progress it has failed, unless [ProgressDeadlineAnnotation] says so. Zero means
	// [Config.ProgressDeadline].
	Deadline time.Duration
	// MinReady is how long children have to be ready until they are available. A deadline that is not longer would end
	// every rollout, so that it counts as none.
	MinReady time.Duration
	// Blocker says in one clause why the rollout does not get on. It is called once, when the rollout has failed. If it is
	// nil or returns nothing, the message of Updated stands in.
	Blocker func() string
}

// RolloutConditions are the conditions of a rollout.
type RolloutConditions struct {
	Updated metav1.Condition
	// Stalled is nil for a parent without a deadline.
	Stalled *metav1.Condition
}

// Set sets them in a list, which it changes. Of a parent that has no deadline any more it removes [Stalled].
func (c RolloutConditions) Set(conditions *[]metav1.Condition) {
	SetCondition(conditions, c.Updated)
	if c.Stalled != nil {
		SetCondition(conditions, *c.Stalled)
	} else if was := find(*conditions, Stalled); was != nil && IsOurs(was.Reason, was.Message) {
		meta.RemoveStatusCondition(conditions, Stalled)
	}
}

// IsOurs reports whether a condition [Stalled] is one of this package, by its reason and its message.
func IsOurs(reason, message string) bool {
	return reason == invalidDeadline || parseProgress(reason, message) != nil
}

// rolloutMemory is what is remembered of a rollout.
type rolloutMemory struct {
	// progress is nil if the rollout has no deadline, or if its progress is not known.
	progress *progress
	// invalid is what was last said of the annotation of the deadline.
	invalid string
	// refused is the last undo that was not made.
	refused *refusal
}

// progress is how far a rollout with a deadline got.
type progress struct {
	// revision is where it goes, done the most of each count that it had reached, and at when it reached that, in whole
	// seconds.
	revision string
	done     rollout.Progress
	at       time.Time
	// held is how many units are held.
	held  int
	phase string
	// good is the last revision before that was complete, empty if none is known. What a revision notes of it may be lost
	// when the status that says so is overwritten before the next revision could be recorded.
	good string
	// failed is what it waited for when it failed, empty if it has not.
	failed string
}

// String is the message of [Stalled].
func (s progress) String() string {
	phase, before := strings.ToLower(strings.TrimPrefix(s.phase, phases)), ""
	if s.good != "" {
		before = "; before: " + s.good
	}
	return fmt.Sprintf("%s: %s, %d gone, %d made, %d ready, %d available, %d held%s; last progress at %s",
		s.revision, phase, s.done.Gone, s.done.Made, s.done.Ready, s.done.Available, s.held, before, s.at.UTC().Format(time.RFC3339))
}

// told is what String says, and what may follow.
var told = regexp.MustCompile(`^(.+): (\w+), (\d+) gone, (\d+) made, (\d+) ready, (\d+) available, (\d+) held` +
	`(?:; before: ([^; ]+))?; last progress at (\S+Z)(?:; (.*))?$`)

// parseProgress reads a condition [Stalled] back. It returns nil if it is somebody else's.
func parseProgress(reason, message string) *progress {
	m := told.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, m[9])
	if err != nil {
		return nil
	}
	var n [5]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+3]) // digits
	}
	s := &progress{
		revision: m[1], done: rollout.Progress{Gone: n[0], Made: n[1], Ready: n[2], Available: n[3]}, held: n[4], at: at, good: m[8],
		phase: phases + strings.ToUpper(m[2][:1]) + m[2][1:],
	}
	if reason == ProgressDeadlineExceeded {
		s.failed = m[10]
	}
	return s
}

// over reports whether the time has stopped.
func (s progress) over() bool { return s.phase != phaseProgressing }

// next is how far it is now. was is nil for a rollout that nothing is known of.
//
// It gets on when more is done than ever was: a pod that crashes and starts again is no progress. It begins when the
// spec asks for another revision, or for more of the same: it was paused, or a partition was lowered.
func (r Rollout) next(was *progress, generation int64, now time.Time) *progress {
	if r.Plan == nil {
		return was
	}
	is := &progress{
		revision: cmp.Or(r.Revision, fmt.Sprintf("generation %d", generation)),
		done:     r.Plan.Done, at: wholeSecond(now), held: r.Plan.Held,
	}
	begins := was == nil || was.revision != is.revision
	is.phase = r.phase(begins)
	if was != nil {
		is.good = was.good
	}
	switch {
	case begins, was.phase == phasePaused && is.phase != phasePaused, was.phase == phaseHeld && !is.over() && is.held < was.held:
		return is
	case was.over() && !is.over():
		is.phase = was.phase
	}
	had := was.done.Min(r.Plan.Total) // it was scaled down
	if is.done = is.done.Max(had); is.done == had {
		is.failed = was.failed
		if was.at.Before(is.at) { // else it is by the clock of another leader
			is.at = was.at
		}
	}
	return is
}

// phase is the reason of [Stalled] that it has by itself. begins says that nothing was done for this revision yet: then
// one that is complete but for pods that are down was complete before.
func (r Rollout) phase(begins bool) string {
	updated := r.Updated.Status == metav1.ConditionTrue
	switch {
	case r.Stopped:
		return phasePaused
	case updated && (begins || r.Plan.Available >= r.Plan.Total):
		return phaseComplete
	case stateOf(false, *r.Plan, r.Updated) == held:
		return phaseHeld
	default:
		return phaseProgressing
	}
}

// wholeSecond rounds up, so that no deadline is early.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// deadline is that of the parent, zero if it has none.
func (p *Pass) deadline(r Rollout) (time.Duration, error) {
	d := cmp.Or(r.Deadline, p.controller.ProgressDeadline)
	if text, says := p.Parent.GetAnnotations()[ProgressDeadlineAnnotation]; says {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d != 0 && d < time.Second {
			return 0, fmt.Errorf("annotation %s: %q is no duration of one second at least, such as 10m, so there is no deadline",
				ProgressDeadlineAnnotation, text)
		}
	}
	if d > 0 && d <= r.MinReady {
		return 0, fmt.Errorf("the progress deadline %s is not longer than minReadySeconds, %s, so that every rollout would fail: there is none",
			d, r.MinReady)
	}
	return d, nil
}

// NoteRollout notes how far the rollout of the parent is, for the metrics and, if it has a deadline, for that: a pass
// is made when it ends. It returns the conditions to be stored.
func (p *Pass) NoteRollout(r Rollout) RolloutConditions {
	deadline, err := p.deadline(r)
	m, out := p.memory, RolloutConditions{Updated: r.Updated}
	stalled := metav1.Condition{Type: Stalled, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(p.Now())}
	if err != nil {
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionUnknown, invalidDeadline, err.Error()
		if m.progress, out.Stalled = nil, &stalled; m.invalid != err.Error() {
			m.invalid = err.Error()
			p.Warn(nil, invalidDeadline, "Roll", "%v", err)
		}
	}
	if m.progress == nil && deadline > 0 {
		m.progress = storedProgress(p.Parent)
	}
	was := m.progress
	m.progress = r.next(was, p.Parent.GetGeneration(), p.Now())
	switch {
	case deadline == 0:
		m.progress = nil
	case was != nil && was.revision != m.progress.revision:
		m.progress.good = lastComplete(p.Parent)
	}
	if is := m.progress; is != nil {
		out.Updated = p.expire(is, deadline, r)
		stalled.Reason, stalled.Message = is.phase, is.String()
		if is.failed != "" {
			stalled.Status, stalled.Reason = metav1.ConditionTrue, ProgressDeadlineExceeded
			stalled.Message += "; " + is.failed
		}
		if back := history.RolledBackOf(p.Parent); back.Stands(p.Parent, is.revision) {
			stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, rolledBack, is.String()+"; "+back.String()
		}
		out.Stalled = &stalled
	}
	if r.Plan != nil {
		p.measure(*r.Plan, r.Updated, m.progress != nil && m.progress.failed != "")
	}
	return out
}

// expire finds out whether the time is over, and returns the condition [Updated] that says so.
func (p *Pass) expire(s *progress, deadline time.Duration, r Rollout) metav1.Condition {
	left := s.at.Add(deadline).Sub(p.Now())
	if s.over() || left > 0 {
		s.failed = ""
		if !s.over() {
			p.RequeueAfter(left)
		}
		return r.Updated
	}
	first := s.failed == ""
	if first {
		why := r.Updated.Message
		if r.Blocker != nil {
			why = cmp.Or(r.Blocker(), why)
		}
		s.failed = fmt.Sprintf("no progress for %s: %s", deadline, Cut(strings.Join(strings.Fields(why), " "), maxMessage/2))
	}
	if r.Revision != "" {
		p.failure = &Failure{
			Client: p.controller.Client, Live: p.controller.Live, Parent: p.Parent, Now: p.Now(),
			Revision: r.Revision, Reason: s.failed, Available: s.done.Available, Complete: s.good,
		}
	}
	c := r.Updated
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, ProgressDeadlineExceeded, s.failed+p.notUndone()
	if !strings.HasSuffix(s.failed, ": "+r.Updated.Message) {
		c.Message += "; " + r.Updated.Message
	}
	if first {
		p.Warn(nil, ProgressDeadlineExceeded, "Roll", "%s", c.Message)
	}
	return c
}

// lastComplete is the last revision of which the status of a parent says that a rollout to it was complete, empty if
// there is none. What was not stored does not count: nobody else could know.
func lastComplete(parent runtime.Object) string {
	switch s := storedProgress(parent); {
	case s == nil:
		return ""
	case s.phase == phaseComplete:
		return s.revision
	default:
		return s.good
	}
}

// storedProgress is what the status of a parent says, nil if it says nothing.
func storedProgress(parent runtime.Object) *progress {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	if err != nil {
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(tree, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == Stalled {
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			return parseProgress(reason, message)
		}
	}
	return nil
}
