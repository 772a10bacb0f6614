package pass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// undone is a rollout that fails, and a parent that asks for an undo. answer is that of the undo.
func undone(t *testing.T, asks string, answer func(pass.Failure) error) (w *rolling, calls *[]pass.Failure) {
	t.Helper()
	w, calls = newRolling(t, map[string]string{pass.ProgressDeadlineAnnotation: "1m"}), &[]pass.Failure{}
	if asks != "" {
		w.annotate(history.OnDeadlineAnnotation, asks)
	}
	w.c.Undo = func(_ context.Context, f pass.Failure) (string, error) {
		*calls = append(*calls, f)
		return "back to web-1", answer(f)
	}
	w.begin()
	t.Cleanup(w.c.Close)
	w.at(0, "web-2", rolls, 1, 1, 1, 0)
	w.at(59, "web-2", waits, 1, 1, 0, 0)
	if len(*calls) > 0 {
		t.Errorf("undone a second before the deadline: %+v", *calls)
	}
	return w, calls
}

func TestAFailedRolloutIsUndone(t *testing.T) {
	fine := func(pass.Failure) error { return nil }
	t.Run("when it has failed", func(t *testing.T) {
		w, calls := undone(t, "undo", fine)
		w.at(60, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 1 || len(w.events.Events("AutomaticRollback")) != 1 {
			t.Fatalf("%d calls, events %q", len(*calls), w.events.Events("AutomaticRollback"))
		}
		f := (*calls)[0]
		if f.Revision != "web-2" || f.Reason != "no progress for 1m0s: m" || f.Available != 0 || f.Anyway || !f.Now.Equal(start.Add(time.Minute)) {
			t.Errorf("%+v", f)
		}
	})
	t.Run("anyway", func(t *testing.T) {
		w, calls := undone(t, "undo-anyway", fine)
		w.at(60, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 1 || !(*calls)[0].Anyway {
			t.Errorf("%+v", *calls)
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		w, calls := undone(t, "", fine)
		w.at(60, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 0 {
			t.Errorf("%+v", *calls)
		}
		w.annotate(history.OnDeadlineAnnotation, "undo")
		w.at(70, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 1 {
			t.Errorf("asked for later: %+v", *calls)
		}
	})
	t.Run("what is complete is known, whatever is said after it", func(t *testing.T) {
		w := newRolling(t, map[string]string{pass.ProgressDeadlineAnnotation: "1m", history.OnDeadlineAnnotation: "undo"})
		var complete string
		w.c.Undo = func(_ context.Context, f pass.Failure) (string, error) { complete = f.Complete; return "", nil }
		w.begin()
		w.at(0, "web-1", done, 3, 3, 3, 3)
		w.at(1, "", "RevisionNotRecorded", 0, 0, 0, 0)
		w.begin()
		w.at(2, "web-2", rolls, 0, 0, 0, 0)
		w.at(3, "web-3", rolls, 0, 0, 0, 0)
		w.begin()
		w.at(63, "web-3", waits, 0, 0, 0, 0)
		w.says(exceeded, "; before: web-1; last progress at ")
		if complete != "web-1" {
			t.Errorf("back to %q", complete)
		}
		w.c.Close()
	})
	t.Run("what cannot be recorded", func(t *testing.T) {
		w := newRolling(t, map[string]string{pass.ProgressDeadlineAnnotation: "1m", history.OnDeadlineAnnotation: "undo"})
		w.c.Undo = func(context.Context, pass.Failure) (string, error) { t.Error("undone"); return "", nil }
		w.begin()
		w.at(0, "", "RevisionNotRecorded", 0, 0, 0, 0)
		w.at(60, "", "RevisionNotRecorded", 0, 0, 0, 0)
		w.says(exceeded)
		w.c.Close()
	})
}

func TestAnUndoThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		asks, reason, want string
		undo               bool
	}{
		"by who undoes":   {"undo", "NotRolledBack", "it belongs to Helm", true},
		"by nobody":       {"undo", "NotRolledBack", "its controller undoes nothing", false},
		"with a mistake":  {"undo!", "InvalidOnDeadline", `there is no "undo!"; there are: undo, undo-anyway`, true},
		"with an old one": {"true", "InvalidOnDeadline", `there is no "true"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, calls := undone(t, c.asks, func(pass.Failure) error { return &pass.NotUndoneError{Why: "it belongs to Helm"} })
			if !c.undo {
				w.c.Undo = nil
			}
			if again := w.at(60, "web-2", waits, 1, 1, 0, 0); again != time.Second {
				t.Errorf("the next pass, which says so, is in %s", again)
			}
			for n := range 3 {
				w.at(float64(61+n), "web-2", waits, 1, 1, 0, 0)
			}
			w.says("Updated False ProgressDeadlineExceeded: no progress for 1m0s: m; not undone: ", c.want)
			if got := w.events.Events(c.reason); len(got) != 1 || len(*calls) > 1 {
				t.Errorf("events %q, %d calls", got, len(*calls))
			}
			w.annotate("team", "shop") // who knows what was changed
			w.at(70, "web-2", waits, 1, 1, 0, 0)
			if got := w.events.Events(c.reason); len(got) != 2 {
				t.Errorf("events %q", got)
			}
		})
	}
}

func TestAnUndoThatFails(t *testing.T) {
	answer := errors.New("the API server is busy")
	w, calls := undone(t, "undo", func(pass.Failure) error { return answer })
	w.clock.SetTime(start.Add(time.Minute))
	if _, err := w.reconcile(); !errors.Is(err, answer) {
		t.Errorf("%v", err)
	}
	answer = fmt.Errorf("%w: it was edited", ownership.ErrStale)
	if result, err := w.reconcile(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("%+v, %v", result, err)
	}
	answer = nil
	if _, err := w.reconcile(); err != nil || len(*calls) != 3 || len(w.events.Events("AutomaticRollback")) != 1 {
		t.Errorf("%v, %d calls, events %q", err, len(*calls), w.events.Events("AutomaticRollback"))
	}
	w.lost = true
	w.run = func(context.Context, *pass.Pass) error { return ownership.ErrStale }
	if _, err := w.reconcile(); err != nil || len(*calls) != 3 {
		t.Errorf("a stale pass undoes: %v, %d calls", err, len(*calls))
	}
}

// TestOnceForAnEdit: not the way back, and not what somebody asks for again and again.
func TestOnceForAnEdit(t *testing.T) {
	w, calls := undone(t, "undo", func(pass.Failure) error { return nil })
	w.at(60, "web-2", waits, 1, 1, 0, 0)
	noted, err := json.Marshal(history.RolledBack{
		From: "web-2", FromRevision: 2, To: "web-1", ToRevision: 1, Generation: w.set().Generation + 1, At: start, Reason: "why",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.annotate(history.RolledBackAnnotation, string(noted))
	w.at(61, "web-1", rolls, 1, 1, 0, 0)
	w.says("Updated False RolloutProgressing", "Stalled True RolledBack: web-1: progressing, ", "; revision 2 (web-2) failed: why; back to revision 1 (web-1)")
	w.at(200, "web-1", waits, 1, 1, 0, 0)
	w.says("Updated False ProgressDeadlineExceeded", "Stalled True RolledBack")
	w.at(210, "web-1", done, 3, 3, 3, 3)
	w.begin()
	w.at(220, "web-1", done, 3, 3, 2, 2) // another process, and a pod is down
	w.at(500, "web-1", done, 3, 3, 2, 2)
	w.says("Updated True", "Stalled True RolledBack: web-1: complete, ")
	if len(*calls) != 1 {
		t.Errorf("%d calls", len(*calls))
	}

	w.at(600, "web-2", rolls, 1, 1, 0, 0)
	w.says("Stalled False RolloutProgressing")
	w.at(660, "web-2", waits, 1, 1, 0, 0)
	w.at(661, "web-2", waits, 1, 1, 0, 0)
	w.says("not undone: revision web-2 was asked for again after the rollback at 2026-03-04T05:06:07Z")
	w.at(700, "web-3", rolls, 1, 1, 0, 0)
	w.at(760, "web-3", waits, 1, 1, 0, 0)
	if got := w.stored(); len(*calls) != 2 || (*calls)[1].Revision != "web-3" || !strings.Contains(got, "Stalled True ProgressDeadlineExceeded") {
		t.Errorf("%d calls\n%s", len(*calls), got)
	}
}
