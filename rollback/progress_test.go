package rollback

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/rollout"
)

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// course is a rollout with a deadline of a minute, observed several times.
type course struct {
	is   *Progress
	seen Seen
}

// at observes it so many seconds after the start, with so many units, of which so many were made and are available.
func (c *course) at(seconds int, revision string, total, made, available int) *course {
	s := c.seen
	s.Revision, s.Updated, s.Now, s.Deadline = revision, made == total, start.Add(time.Duration(seconds)*time.Second), time.Minute
	s.Plan = rollout.Plan{
		Total: total, Updated: made, Available: available,
		Done: rollout.Progress{Gone: made, Made: made, Ready: available, Available: available},
	}
	c.is = s.Next(c.is)
	return c
}

func (c *course) phase() string { return strings.TrimPrefix(c.is.phase, phases) }

// TestWhatCompletesNothing: fewer children that are desired, or none at all.
func TestWhatCompletesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		play func(c *course)
		want string
	}{
		"all are available":                   {func(c *course) { c.at(0, "b", 3, 1, 0).at(9, "b", 3, 3, 3) }, "Complete"},
		"none are desired":                    {func(c *course) { c.at(0, "b", 0, 0, 0) }, "Paused"},
		"none any more":                       {func(c *course) { c.at(0, "b", 3, 1, 0).at(9, "b", 0, 0, 0) }, "Paused"},
		"some again":                          {func(c *course) { c.at(0, "b", 3, 1, 0).at(9, "b", 0, 0, 0).at(100, "b", 3, 3, 0) }, "Progressing"},
		"none, and all again":                 {func(c *course) { c.at(0, "b", 0, 0, 0).at(9, "b", 3, 3, 3) }, "Complete"},
		"it was complete, then none":          {func(c *course) { c.at(0, "b", 3, 3, 3).at(9, "b", 0, 0, 0).at(99, "b", 3, 3, 0) }, "Complete"},
		"fewer":                               {func(c *course) { c.at(0, "b", 5, 2, 1).at(9, "b", 1, 1, 1) }, "Progressing"},
		"fewer, and still":                    {func(c *course) { c.at(0, "b", 5, 2, 1).at(9, "b", 1, 1, 1).at(30, "b", 1, 1, 1) }, "Progressing"},
		"fewer, for as long as the deadline":  {func(c *course) { c.at(0, "b", 5, 2, 1).at(9, "b", 1, 1, 1).at(60, "b", 1, 1, 1) }, "Complete"},
		"fewer, and then it makes progress":   {func(c *course) { c.at(0, "b", 5, 2, 1).at(9, "b", 3, 2, 1).at(20, "b", 3, 3, 3) }, "Complete"},
		"the deadline is new, all are down":   {func(c *course) { c.at(0, "b", 3, 3, 0) }, "Progressing"},
		"the deadline is new, one is down":    {func(c *course) { c.at(0, "b", 3, 3, 2) }, "Complete"},
		"OnDelete, and the new ones are fine": {func(c *course) { c.seen.OnDelete = true; c.at(0, "b", 3, 1, 1) }, "Paused"},
		"OnDelete, and all are fine":          {func(c *course) { c.seen.OnDelete = true; c.at(0, "b", 3, 3, 3) }, "Complete"},
		"OnDelete, and a new one is broken":   {func(c *course) { c.seen.OnDelete = true; c.at(0, "b", 3, 1, 0) }, "Progressing"},
		"paused, and a new one is broken":     {func(c *course) { c.seen.Paused = true; c.at(0, "b", 3, 1, 0) }, "Paused"},
	} {
		t.Run(name, func(t *testing.T) {
			var played course
			c.play(&played)
			if got := played.phase(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestBackOnPurpose: the note of a rollback is about the edit that it was, and about none that follows.
func TestBackOnPurpose(t *testing.T) {
	c := &course{}
	c.at(0, "b", 3, 1, 0)
	c.seen.Note = &Note{From: "b", To: "a"}
	if c.at(1, "a", 3, 1, 1); !c.is.Back || c.is.Undone != "b" {
		t.Errorf("rolled back: %+v", c.is)
	}
	if c.at(2, "c", 3, 1, 1).at(3, "c", 3, 3, 3); c.is.Back {
		t.Errorf("edited: %+v", c.is)
	}
	if c.at(4, "a", 3, 3, 3); c.is.Back || c.is.Undone != "b" {
		t.Errorf("back on purpose: %+v", c.is)
	}
	c = &course{seen: Seen{Note: &Note{From: "b", To: "a"}}}
	if c.at(0, "a", 3, 3, 3); !c.is.Back {
		t.Errorf("the status is lost: %+v", c.is)
	}
	c.seen.Note = nil
	if c.at(1, "a", 3, 3, 3); c.is.Back {
		t.Errorf("somebody says that it is well: %+v", c.is)
	}
}

// TestAdmissionRemovesTheNote: a rollback without its note is known until the next edit.
func TestAdmissionRemovesTheNote(t *testing.T) {
	c := &course{}
	c.at(0, "b", 3, 1, 0)
	c.is.RolledBack("a")
	for _, second := range []int{1, 2} {
		c.at(second, "a", 3, 3, 3)
		c.is = ProgressOf(daemonSet(c.is.Condition(nil, metav1.Time{}))) // another process
		if got := c.is.LastRollback(nil); got == nil || got.From != "b" || got.To != "a" {
			t.Errorf("after %d s: %+v", second, c.is)
		}
	}
	if c.at(3, "c", 3, 1, 1); c.is.LastRollback(nil) != nil || c.is.Undone != "b" {
		t.Errorf("edited: %+v", c.is)
	}
	c = &course{}
	c.at(0, "b", 3, 1, 0)
	c.is.RolledBack("a")
	if c.at(1, "c", 3, 1, 0); c.is.Back {
		t.Errorf("edited before the rollback was seen: %+v", c.is)
	}
}

// TestScaledUpWhileHeld: the first child of a held rollout starts the deadline, a later one does not.
func TestScaledUpWhileHeld(t *testing.T) {
	for before, want := range map[int]string{0: "Progressing", 1: "Held"} {
		c := &course{seen: Seen{Held: true}}
		c.at(0, "b", 3, before, before)
		c.seen.Held = false
		if c.at(9, "b", 4, before+1, before); c.phase() != want {
			t.Errorf("with %d children before: %s, want %s", before, c.phase(), want)
		}
	}
}

// TestNotesOfOthers: the note of another object is ignored, and the reason cannot add a line.
func TestNotesOfOthers(t *testing.T) {
	parent := &metav1.ObjectMeta{UID: "mine"}
	for text, want := range map[string]string{
		`{"parent":"mine","from":"web-2","fromRevision":2,"to":"web-1","reason":"a\nb"}`: "revision 2 (web-2) failed: a b; back to revision web-1",
		`{"from":"web-2","to":"web-1","reason":"before"}`:                                "revision web-2 failed: before; back to revision web-1",
		`{"parent":"another","from":"web-2","to":"web-1"}`:                               "",
		`{"parent":"mine"}`: "", `no JSON`: "",
	} {
		parent.Annotations = map[string]string{NoteAnnotation: text}
		got := ""
		if note := NoteOf(parent); note != nil {
			got = note.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzProgressIsReadBack(f *testing.F) {
	f.Add("web-7c9d", 1, 2, 3, 4, 5, 6, int64(1772600767), 0, "web-5d4f", true, "no progress for 10m: pod web-x [main]: crashed")
	f.Add("generation/7", 0, 0, 0, 0, 0, 0, int64(0), 3, "", false, "")
	f.Fuzz(func(t *testing.T, revision string, gone, made, ready, available, of, held int, at int64, phase int, undone string, back bool, failed string) {
		if strings.ContainsAny(revision+undone, "= ]") || strings.Join(strings.Fields(revision+undone), "") != revision+undone || revision == "" {
			t.Skip() // the API server accepts no such name
		}
		is := Progress{
			Revision: revision, Done: rollout.Progress{Gone: gone, Made: made, Ready: ready, Available: available}, Of: of, Held: held,
			At: time.Unix(at%(1<<33), 0).UTC(), Undone: undone, Back: back && undone != "", Failed: failed,
			phase: []string{phaseProgressing, phaseComplete, phaseHeld, phasePaused}[uint(phase)%4],
		}
		if is.At.Year() < 0 || is.At.Year() > 9999 {
			t.Skip()
		}
		for _, note := range []*Note{nil, {From: undone, To: revision, Reason: failed}} {
			c := is.Condition(note, metav1.Time{})
			got := ProgressOf(daemonSet(c))
			want := is
			if c.Reason == RolledBack {
				want.Failed = ""
			}
			if got == nil || *got != want {
				t.Errorf("%q is read as\n%+v, want\n%+v", c.Message, got, want)
			}
			if !IsOurs(c.Type, c.Reason, c.Message) {
				t.Errorf("%q is not ours", c.Message)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	f := Failure{Revision: "web-2", Made: 1, To: revisionNamed("web-1")}
	for name, c := range map[string]struct {
		asks string
		is   Progress
		note *Note
		f    func(*Failure)
		want string
	}{
		"as it is":                {asks: Undo},
		"anyway":                  {asks: UndoAnyway},
		"a mistake":               {asks: "undo!", want: `annotation cairn.dev/on-deadline: invalid value "undo!", must be undo or undo-anyway`},
		"nothing was created":     {asks: Undo, f: func(f *Failure) { f.Made = 0 }, want: "no child was created from revision web-2"},
		"nothing is good":         {asks: Undo, f: func(f *Failure) { f.To = Revision{} }, want: "condition LastGood names no other revision as the last good one"},
		"again":                   {asks: Undo, is: Progress{Undone: "web-2"}, want: "revision web-2 was asked for again after it was rolled back"},
		"again, as the note says": {asks: Undo, note: &Note{From: "web-2"}, want: "revision web-2 was asked for again"},
		"after another one":       {asks: Undo, is: Progress{Undone: "web-0"}, note: &Note{From: "web-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := f
			if c.f != nil {
				c.f(&f)
			}
			err := f.Check(c.asks, c.is, c.note)
			_, refused := errors.AsType[*RefusedError](err)
			if (err != nil) != (c.want != "") || err != nil && (!refused || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
