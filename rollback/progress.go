package rollback

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/rollout"
)

// This file says when a rollout has failed because it makes no progress, as a Deployment's does after its
// progressDeadlineSeconds. How far it got is stored in a condition, together with the counters that the same progress
// changes: a manager that starts, or becomes the leader, goes on where the last one ended.

const (
	// ProgressDeadlineAnnotation says on a parent after how long without progress its rollout has failed: a duration of
	// one second at least, such as "10m". "0" means never, whatever the default is.
	ProgressDeadlineAnnotation = "cairn.dev/progress-deadline"
	// Stalled is the type of the condition of a parent with a progress deadline: True when its rollout has failed. That is
	// the condition which kstatus, and with it Flux and kubectl plugins, takes for a failure.
	Stalled = "Stalled"
)

// Reasons of [Stalled]. While it is False the reason is the phase of the rollout; the time runs only in the first.
const (
	phases           = "Rollout"
	phaseProgressing = phases + "Progressing"
	phaseComplete    = phases + "Complete" // what falls later is no rollout
	phaseHeld        = phases + "Held"     // by a partition: all that may be done is done
	phasePaused      = phases + "Paused"   // nobody expects it to make progress

	// ProgressDeadlineExceeded is the reason when the rollout has failed (Deployments).
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// RolledBack is the reason when the parent was rolled back automatically: what a user has asked for has not come
	// about. It stays until the next edit.
	RolledBack = "RolledBack"
	// InvalidProgressDeadline is the reason, and Stalled is Unknown, when the deadline cannot be used.
	InvalidProgressDeadline = "InvalidProgressDeadline"
)

// Deadline returns that of a parent: what its annotation says, or else fallback. Zero is none. The error says why there
// is none although somebody asks for one. One that is not longer than minReady, for which children have to be ready
// until they are available, would end every rollout.
func Deadline(annotations map[string]string, fallback, minReady time.Duration) (time.Duration, error) {
	d := fallback
	if text, says := annotations[ProgressDeadlineAnnotation]; says {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d != 0 && d < time.Second {
			return 0, fmt.Errorf("annotation %s: %q is no duration of one second at least, such as 10m, so there is no deadline",
				ProgressDeadlineAnnotation, text)
		}
	}
	if d > 0 && d <= minReady {
		return 0, fmt.Errorf("the progress deadline %s is not longer than minReadySeconds, %s, so that every rollout would fail: there is none",
			d, minReady)
	}
	return d, nil
}

// Seen is what a controller has observed of a rollout.
type Seen struct {
	// Revision is the name of the revision to which it goes.
	Revision string
	// Updated says that all children come from it, Paused that nobody replaces any, OnDelete that only users do, and Held
	// that children are held at an older revision and nothing else is left to be done.
	Updated, Paused, OnDelete, Held bool
	Plan                            rollout.Plan
	// Note is what the parent says of the last automatic rollback, nil for nothing.
	Note *Note
	Now  time.Time
	// Deadline is that of the parent.
	Deadline time.Duration
}

// Progress is how far a rollout with a deadline got.
type Progress struct {
	// Revision is the name of the revision to which it goes, Done the most of each count that it had reached, and At when
	// it reached that, in whole seconds.
	Revision string
	Done     rollout.Progress
	At       time.Time
	// Of is how many units there were then, or more since; Held is how many are held.
	Of, Held int
	// Undone is the name of the revision that the last automatic rollback has left, empty if there was none: it is not
	// rolled back again. Back says that the parent was not edited since.
	Undone string
	Back   bool
	// Failed is why it has failed, empty if it has not.
	Failed string

	phase string
}

// Next is how far it is now. was is nil for a rollout of which nothing is known.
//
// It makes progress when more is done than ever was: a pod that crashes and starts again is no progress. It begins when
// the spec asks for another revision, or for more of the same: it was paused, or a partition was lowered.
func (s Seen) Next(was *Progress) *Progress {
	is := &Progress{Revision: s.Revision, Done: s.Plan.Done, At: wholeSecond(s.Now), Of: s.Plan.Total, Held: s.Plan.Held}
	is.noteRollback(was, s.Note)
	if was == nil || was.Revision != is.Revision {
		is.phase = s.phase(is, s.Plan.Available > 0)
		return is
	}
	if had := was.Done.Min(s.Plan.Total); is.Done.Max(had) == had { // it was scaled down, perhaps
		is.Done, is.Of, is.Failed = had, max(is.Of, was.Of), was.Failed
		if was.At.Before(is.At) { // else it is by the clock of another leader
			is.At = was.At
		}
	} else {
		is.Done = is.Done.Max(had)
	}
	is.phase = s.phase(is, was.phase == phaseComplete)
	switch {
	case was.phase == phasePaused && is.phase != phasePaused, was.phase == phaseHeld && !is.Over() && is.Held < was.Held:
		is.At, is.Done, is.Of, is.Failed = wholeSecond(s.Now), s.Plan.Done, s.Plan.Total, ""
	case was.Over() && !is.Over():
		is.phase = was.phase
	}
	if is.Over() || !is.expired(s) {
		is.Failed = ""
	}
	return is
}

// phase is the one that the counts tell. complete says that the rollout was complete before: then pods that are down do
// not change that.
//
// With no children desired nothing is complete: nobody knows whether they would start. Nor is a rollout complete only
// because fewer are desired, before the deadline has passed: it may be the ones that failed that are not desired any
// more.
func (s Seen) phase(is *Progress, complete bool) string {
	p := s.Plan
	switch {
	case s.Paused, p.Total == 0 && !complete, s.OnDelete && p.Done.Available >= p.Done.Made:
		return phasePaused
	case s.Updated && complete, s.Updated && p.Available >= p.Total && (is.Of <= p.Total || is.expired(s)):
		return phaseComplete
	case s.Held:
		return phaseHeld
	default:
		return phaseProgressing
	}
}

// Over reports whether the time does not run.
func (is *Progress) Over() bool { return is.phase != phaseProgressing }

// Left is the time until the rollout fails, zero or less if it has, or would if [Progress.Over] were not true.
func (is *Progress) Left(s Seen) time.Duration { return is.At.Add(s.Deadline).Sub(s.Now) }

// Complete reports whether all children were updated and available.
func (is *Progress) Complete() bool { return is.phase == phaseComplete }

func (is *Progress) expired(s Seen) bool { return is.Left(s) <= 0 }

// noteRollback finds out whether the parent was rolled back automatically: it goes from one revision of the note to the
// other. To return to the second one later, on purpose, is an edit like others.
func (is *Progress) noteRollback(was *Progress, note *Note) {
	switch {
	case was == nil:
		if note != nil && note.To == is.Revision {
			is.Undone, is.Back = note.From, true
		}
	case was.Revision == is.Revision:
		is.Undone, is.Back = was.Undone, was.Back && note != nil
	case note != nil && note.From == was.Revision && note.To == is.Revision:
		is.Undone, is.Back = note.From, true
	default:
		is.Undone = was.Undone
	}
}

// wholeSecond rounds up, so that no deadline is early.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// Condition is [Stalled]. note is as in [Seen]; at is its transition time if its status changes.
func (is *Progress) Condition(note *Note, at metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: Stalled, Status: metav1.ConditionFalse, Reason: is.phase, LastTransitionTime: at}
	switch {
	case is.Back && note != nil:
		c.Status, c.Reason = metav1.ConditionTrue, RolledBack
		c.Message = cut(note.String()) + "; if that is well, remove annotation " + NoteAnnotation
	case is.Failed != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ProgressDeadlineExceeded, is.Failed
	default:
		c.Message = sentences[is.phase]
	}
	c.Message += " [" + is.values() + "]"
	return c
}

// cut cuts a text that a user may have written.
func cut(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

var sentences = map[string]string{
	phaseProgressing: "the rollout makes progress", phaseComplete: "the rollout is complete",
	phaseHeld: "the rest of the rollout is held", phasePaused: "the rollout is paused",
}

// values are read back by parse.
func (is *Progress) values() string {
	d := is.Done
	out := fmt.Sprintf("revision=%s phase=%s gone=%d made=%d ready=%d available=%d of=%d held=%d since=%s", is.Revision,
		strings.TrimPrefix(is.phase, phases), d.Gone, d.Made, d.Ready, d.Available, is.Of, is.Held, is.At.UTC().Format(time.RFC3339))
	if is.Undone != "" {
		out += " undone=" + is.Undone
	}
	if is.Back {
		out += " back=true"
	}
	return out
}

// ProgressOf reads what the status of a parent says: see [Progress.Condition]. It returns nil if that says nothing.
func ProgressOf(parent runtime.Object) *Progress {
	c := stored(parent, Stalled)
	return parse(c.Reason, c.Message)
}

// IsOurs reports whether a condition is one of this package, by its type, reason and message: the controller of a
// parent may have one of the same type.
func IsOurs(kind, reason, message string) bool {
	switch kind {
	case Stalled:
		return reason == InvalidProgressDeadline || parse(reason, message) != nil
	case LastGood:
		return reason == allAvailable
	default:
		return false
	}
}

// parse returns nil for a condition of somebody else.
func parse(reason, message string) *Progress {
	sentence, values := tail(message)
	at, err := time.Parse(time.RFC3339, values["since"])
	if err != nil || values["revision"] == "" {
		return nil
	}
	number := func(key string) int {
		n, bad := strconv.Atoi(values[key])
		if bad != nil {
			err = bad
		}
		return n
	}
	is := &Progress{
		Revision: values["revision"], At: at, Of: number("of"), Held: number("held"),
		Done: rollout.Progress{
			Gone: number("gone"), Made: number("made"), Ready: number("ready"), Available: number("available"),
		},
		Undone: values["undone"], Back: values["back"] == "true", phase: phases + values["phase"],
	}
	if _, known := sentences[is.phase]; err != nil || !known {
		return nil
	}
	if reason == ProgressDeadlineExceeded {
		is.Failed = sentence
	}
	return is
}
