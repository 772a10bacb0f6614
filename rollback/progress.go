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

// This file decides when a rollout has failed because it makes no progress, as a Deployment's does after its
// progressDeadlineSeconds. The progress is stored in a condition, in the status write that updates the counters. A
// manager that starts, or becomes the leader, continues from there.

const (
	// ProgressDeadlineAnnotation sets the time without progress after which the rollout of a parent has failed. It is a
	// duration of at least one second, such as "10m". "0" means never, and overrides the default.
	ProgressDeadlineAnnotation = "cairn.dev/progress-deadline"
	// Stalled is a condition of parents with a progress deadline. It is True when the rollout has failed. kstatus, and
	// with it Flux and kubectl plugins, treats it as a failure.
	Stalled = "Stalled"
)

// Reasons of [Stalled]. While it is False, the reason is the phase of the rollout. The deadline runs only in the first
// phase.
const (
	phases           = "Rollout"
	phaseProgressing = phases + "Progressing"
	phaseComplete    = phases + "Complete" // a pod that fails later is not part of the rollout
	phaseHeld        = phases + "Held"     // by a partition: all permitted updates are done
	phasePaused      = phases + "Paused"   // no progress is expected

	// ProgressDeadlineExceeded is the reason when the rollout has failed (Deployments).
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// RolledBack is the reason when the parent was rolled back automatically: the user's change is not in effect. It stays
	// until the next edit.
	RolledBack = "RolledBack"
	// InvalidProgressDeadline is the reason, and Stalled is Unknown, when the deadline cannot be used.
	InvalidProgressDeadline = "InvalidProgressDeadline"
)

// Deadline returns the progress deadline of a parent: its annotation, or else fallback. Zero means no deadline. An
// error means that the requested deadline is not usable: the annotation is invalid, or the deadline is not longer than
// minReady, the time until a ready child is available, so that every rollout would fail.
func Deadline(annotations map[string]string, fallback, minReady time.Duration) (time.Duration, error) {
	d := fallback
	if text, says := annotations[ProgressDeadlineAnnotation]; says {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d != 0 && d < time.Second {
			return 0, fmt.Errorf("annotation %s: invalid duration %q (minimum 1s): deadline ignored",
				ProgressDeadlineAnnotation, text)
		}
	}
	if d > 0 && d <= minReady {
		return 0, fmt.Errorf("the progress deadline %s is not longer than minReadySeconds (%s), so every rollout would fail: deadline ignored",
			d, minReady)
	}
	return d, nil
}

// Seen is the observation of a rollout by its controller.
type Seen struct {
	// Revision is the name of the revision that is rolled out.
	Revision string
	// Updated means that all children come from it. Paused means that no child is replaced; OnDelete, only when a user
	// deletes it. Held means that only children that a partition holds at an older revision are left.
	Updated, Paused, OnDelete, Held bool
	Plan                            rollout.Plan
	// Note is the record of the last automatic rollback, nil if there is none.
	Note *Note
	Now  time.Time
	// Deadline is the parent's progress deadline.
	Deadline time.Duration
}

// Progress is the progress of a rollout with a deadline.
type Progress struct {
	// Revision is the name of the revision that is rolled out. Done is the maximum that each count has reached, and At is
	// the time at which the last one rose, in whole seconds.
	Revision string
	Done     rollout.Progress
	At       time.Time
	// Of is the highest number of units since then. Held is the number of held units.
	Of, Held int
	// Undone is the name of the failed revision of the last automatic rollback, empty if there was none. It is not rolled
	// back again. Back means that the parent has not been edited since; Unnoted, that admission has removed its note.
	Undone        string
	Back, Unnoted bool
	// Failed is the reason of the failure, empty if the rollout has not failed.
	Failed string

	phase string
	// to is the revision to which this process has rolled the parent back, empty if it has not. It is not stored.
	to string
}

// Next returns the progress after this observation. was is the previous progress, nil if it is not known.
//
// A rollout makes progress when a count exceeds its previous maximum, so a pod that crashes and restarts does not
// count. The deadline starts again when the spec asks for another revision, a pause ends, or a partition is lowered. If
// the parent of a held rollout is scaled up, the first child of the new revision starts it too.
func (s Seen) Next(was *Progress) *Progress {
	is := &Progress{Revision: s.Revision, Done: s.Plan.Done, At: wholeSecond(s.Now), Of: s.Plan.Total, Held: s.Plan.Held}
	is.noteRollback(was, s.Note)
	if was == nil || was.Revision != is.Revision {
		is.phase = s.phase(is, s.Plan.Available > 0)
		return is
	}
	if had := was.Done.Min(s.Plan.Total); is.Done.Max(had) == had { // it was scaled down, perhaps
		is.Done, is.Of, is.Failed = had, max(is.Of, was.Of), was.Failed
		if was.At.Before(is.At) { // otherwise another leader's clock was ahead
			is.At = was.At
		}
	} else {
		is.Done = is.Done.Max(had)
	}
	is.phase = s.phase(is, was.phase == phaseComplete)
	resumed := was.phase == phaseHeld && !is.Over() && (is.Held < was.Held || was.Done.Made == 0)
	switch {
	case resumed, was.phase == phasePaused && is.phase != phasePaused:
		is.At, is.Done, is.Of, is.Failed = wholeSecond(s.Now), s.Plan.Done, s.Plan.Total, ""
	case was.Over() && !is.Over():
		is.phase = was.phase
	}
	if is.Over() || !is.expired(s) {
		is.Failed = ""
	}
	return is
}

// phase derives the phase from the counts. complete means that the rollout was complete before; unavailable pods do not
// change that.
//
// A rollout is not complete with no desired children, because nothing has shown that they would start. When the desired
// count falls, the rollout is not complete before the deadline has passed: the failed children may be the ones that
// are no longer desired.
func (s Seen) phase(is *Progress, complete bool) string {
	p := s.Plan
	switch {
	case s.Paused, p.Total == 0 && !complete:
		return phasePaused
	case s.Updated && complete, s.Updated && p.Available >= p.Total && (is.Of <= p.Total || is.expired(s)):
		return phaseComplete
	case s.OnDelete && p.Done.Available >= p.Done.Made:
		return phasePaused
	case s.Held:
		return phaseHeld
	default:
		return phaseProgressing
	}
}

// Over reports whether the deadline does not run.
func (is *Progress) Over() bool { return is.phase != phaseProgressing }

// Left returns the time until the deadline. It is zero or negative after the deadline, also while [Progress.Over] is
// true.
func (is *Progress) Left(s Seen) time.Duration { return is.At.Add(s.Deadline).Sub(s.Now) }

// Complete reports whether all children were updated and available.
func (is *Progress) Complete() bool { return is.phase == phaseComplete }

func (is *Progress) expired(s Seen) bool { return is.Left(s) <= 0 }

// noteRollback detects an automatic rollback: the rollout went from one revision of the note to the other. A later edit
// that returns to the second revision is an ordinary edit.
func (is *Progress) noteRollback(was *Progress, note *Note) {
	switch {
	case was == nil:
		if note != nil && note.To == is.Revision {
			is.Undone, is.Back = note.From, true
		}
	case was.Revision == is.Revision:
		is.Undone, is.Unnoted = was.Undone, was.Unnoted && note == nil
		is.Back = was.Back && (note != nil || is.Unnoted)
	case note != nil && note.From == was.Revision && note.To == is.Revision:
		is.Undone, is.Back = note.From, true
	case note == nil && was.to == is.Revision:
		is.Undone, is.Back, is.Unnoted = was.Revision, true, true
	default:
		is.Undone = was.Undone
	}
}

// RolledBack records that this process has rolled the parent back from is.Revision to the revision named to, because
// admission may have removed the note.
func (is *Progress) RolledBack(to string) { is.Undone, is.to = is.Revision, to }

// LastRollback returns the record of the last automatic rollback if the parent has not been edited since, and nil
// otherwise. note is the note of the parent. If admission has removed it, only the names of the two revisions are
// known.
func (is *Progress) LastRollback(note *Note) *Note {
	switch {
	case is == nil || !is.Back:
		return nil
	case is.Unnoted:
		return &Note{From: is.Undone, To: is.Revision, Reason: "admission has removed annotation " + NoteAnnotation + ", which had the reason"}
	default:
		return note
	}
}

// wholeSecond rounds up, so that no deadline is early.
func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// Condition returns the condition [Stalled]. note is as in [Seen]; at is its transition time.
func (is *Progress) Condition(note *Note, at metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: Stalled, Status: metav1.ConditionFalse, Reason: is.phase, LastTransitionTime: at}
	last := is.LastRollback(note)
	switch {
	case last != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, RolledBack, cut(last.String())
		if !is.Unnoted {
			c.Message += "; to acknowledge it, remove annotation " + NoteAnnotation
		}
	case is.Failed != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ProgressDeadlineExceeded, is.Failed
	default:
		c.Message = sentences[is.phase]
	}
	c.Message += " [" + is.values() + "]"
	return c
}

// cut bounds a text that may come from a user.
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

// values are the inverse of parse.
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
	if is.Unnoted {
		out += " unnoted=true"
	}
	return out
}

// ProgressOf parses the condition [Stalled] of a parent. It returns nil if there is none, or an invalid one.
func ProgressOf(parent runtime.Object) *Progress {
	c := stored(parent, Stalled)
	return parse(c.Reason, c.Message)
}

// IsOurs reports whether this package wrote a condition with that type, reason and message. Other controllers use the
// type [Stalled] too.
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

// parse returns nil for a condition that this package did not write.
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
		Undone: values["undone"], Back: values["back"] == "true", Unnoted: values["unnoted"] == "true", phase: phases + values["phase"],
	}
	if _, known := sentences[is.phase]; err != nil || !known {
		return nil
	}
	if reason == ProgressDeadlineExceeded {
		is.Failed = sentence
	}
	return is
}
