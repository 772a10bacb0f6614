package pass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollback"
)

// undone is a rollout that fails, and a parent that asks for an undo. answer is that of the undo.
func undone(t *testing.T, asks string, answer func(rollback.Failure) error) (w *rolling, calls *[]rollback.Failure) {
	t.Helper()
	w, calls = newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"}), &[]rollback.Failure{}
	if asks != "" {
		w.annotate(rollback.OnDeadlineAnnotation, asks)
	}
	w.c.RollBack = func(_ context.Context, _ client.Client, _ client.Reader, _ client.Object, f rollback.Failure) (string, error) {
		*calls = append(*calls, f)
		return "back to web-1", answer(f)
	}
	w.begin()
	t.Cleanup(w.c.Close)
	w.at(-1, "web-1", done, 3, 3, 3, 3)
	w.at(0, "web-2", rolls, 1, 1, 1, 0)
	w.at(59, "web-2", waits, 1, 1, 0, 0)
	if len(*calls) > 0 {
		t.Errorf("undone a second before the deadline: %+v", *calls)
	}
	return w, calls
}

func TestAFailedRolloutIsUndone(t *testing.T) {
	fine := func(rollback.Failure) error { return nil }
	t.Run("when it has failed", func(t *testing.T) {
		w, calls := undone(t, "undo", fine)
		w.at(60, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 1 || len(w.events.Events("AutomaticRollback")) != 1 {
			t.Fatalf("%d calls, events %q", len(*calls), w.events.Events("AutomaticRollback"))
		}
		f := (*calls)[0]
		if f.Revision != "web-2" || f.Reason != "no progress for 1m0s: m" || f.Available != 0 || f.To.Name != "web-1" || f.Made != 1 || f.Anyway || !f.Now.Equal(start.Add(time.Minute)) {
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
		w.annotate(rollback.OnDeadlineAnnotation, "undo")
		w.at(70, "web-2", waits, 1, 1, 0, 0)
		if len(*calls) != 1 {
			t.Errorf("asked for later: %+v", *calls)
		}
	})
	t.Run("what is complete is known, whatever is said after it", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m", rollback.OnDeadlineAnnotation: "undo"})
		var to string
		w.c.RollBack = func(_ context.Context, _ client.Client, _ client.Reader, _ client.Object, f rollback.Failure) (string, error) {
			to = f.To.Name
			return "", nil
		}
		w.begin()
		w.at(0, "web-1", done, 3, 3, 3, 3)
		w.at(1, "", "RevisionNotRecorded", 0, 0, 0, 0)
		w.begin()
		w.at(2, "web-2", rolls, 0, 0, 0, 0)
		w.at(3, "web-3", rolls, 1, 1, 0, 0)
		w.begin()
		w.at(63, "web-3", waits, 1, 1, 0, 0)
		w.says(exceeded, "LastGood True AllAvailable: revision=web-1/uid-web-1")
		if to != "web-1" {
			t.Errorf("back to %q", to)
		}
		w.c.Close()
	})
	t.Run("what cannot be recorded", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m", rollback.OnDeadlineAnnotation: "undo"})
		w.c.RollBack = func(context.Context, client.Client, client.Reader, client.Object, rollback.Failure) (string, error) {
			t.Error("rolled back")
			return "", nil
		}
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
		"by nobody":       {"undo", "NotRolledBack", "its controller does not support automatic rollback", false},
		"with a mistake":  {"undo!", "NotRolledBack", `invalid value "undo!", must be undo or undo-anyway`, true},
		"with an old one": {"true", "NotRolledBack", `invalid value "true"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, calls := undone(t, c.asks, func(rollback.Failure) error { return &rollback.RefusedError{Why: "it belongs to Helm"} })
			if !c.undo {
				w.c.RollBack = nil
			}
			if again := w.at(60, "web-2", waits, 1, 1, 0, 0); again != time.Second {
				t.Errorf("the next pass, which says so, is in %s", again)
			}
			for n := range 3 {
				w.at(float64(61+n), "web-2", waits, 1, 1, 0, 0)
			}
			w.says("Updated False ProgressDeadlineExceeded: no progress for 1m0s: m; not rolled back: ", c.want)
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
	w, calls := undone(t, "undo", func(rollback.Failure) error { return answer })
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

// TestARefusedRollbackIsTriedAgain: a rejection by a webhook, a policy or a limit is reported once, and the rollback is
// tried again.
func TestARefusedRollbackIsTriedAgain(t *testing.T) {
	for name, answer := range map[string]error{
		"forbidden": apierrors.NewForbidden(appsv1.Resource("replicasets"), "web", errors.New("a policy says so")),
		"too large": apierrors.NewRequestEntityTooLargeError("a policy says so"),
		"a webhook": apierrors.NewInternalError(errors.New("a policy says so")),
	} {
		t.Run(name, func(t *testing.T) { refusedRollback(t, answer) })
	}
}

func refusedRollback(t *testing.T, answer error) {
	t.Helper()
	w, calls := undone(t, "undo", func(rollback.Failure) error { return answer })
	next := time.Minute
	for range 10 {
		wait := w.at(next.Seconds(), "web-2", waits, 1, 1, 0, 0)
		if wait <= 0 || wait > time.Minute {
			t.Fatalf("the next try is in %s", wait)
		}
		next += wait
	}
	w.says("not rolled back: ", "a policy says so")
	if tries := len(*calls); tries < 5 || len(w.events.Events("NotRolledBack")) != 1 {
		t.Errorf("%d tries, events %q", tries, w.events.Events("NotRolledBack"))
	}
	answer = nil
	w.at(next.Seconds()+60, "web-2", waits, 1, 1, 0, 0)
	if got := w.events.Events("AutomaticRollback"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}

// TestTheNoteIsRemovedByAPolicy: the rollback counts all the same, and happens once.
func TestTheNoteIsRemovedByAPolicy(t *testing.T) {
	w, calls := undone(t, "undo", func(rollback.Failure) error { return nil })
	w.at(60, "web-2", waits, 1, 1, 0, 0)
	w.at(61, "web-1", rolls, 1, 1, 0, 0)
	w.says("Stalled True RolledBack: revision web-2 failed: admission has removed annotation ", "undone=web-2 back=true unnoted=true]")
	w.begin()
	w.at(70, "web-2", rolls, 1, 1, 0, 0)
	w.at(131, "web-2", waits, 1, 1, 0, 0)
	if len(*calls) != 1 {
		t.Errorf("%d calls", len(*calls))
	}
}

// TestARollbackWithoutADeadline: a rollback is reported until the next edit, also if the deadline is removed.
func TestARollbackWithoutADeadline(t *testing.T) {
	w, _ := undone(t, "undo", func(rollback.Failure) error { return nil })
	w.at(60, "web-2", waits, 1, 1, 0, 0)
	w.annotate(rollback.NoteAnnotation, `{"from":"web-2","to":"web-1","reason":"why"}`)
	w.annotate(rollback.ProgressDeadlineAnnotation, "0")
	w.at(61, "web-1", rolls, 1, 1, 0, 0)
	w.at(200, "web-1", done, 3, 3, 3, 3)
	w.says("Updated True", "Stalled True RolledBack: ")
	w.begin()
	w.at(300, "web-1", done, 3, 3, 3, 3)
	w.says("Updated True", "Stalled True RolledBack: ")
	w.annotate(rollback.NoteAnnotation, "")
	w.at(400, "web-1", done, 3, 3, 3, 3)
	if got := w.stored(); strings.Contains(got, "Stalled") {
		t.Errorf("after it was acknowledged: %s", got)
	}
}

// TestARollbackIsNotUndone: a rollback that makes no progress is not rolled back to the good revision before.
func TestARollbackIsNotUndone(t *testing.T) {
	w, calls := undone(t, "undo", func(rollback.Failure) error { return nil })
	w.at(60, "web-3", done, 3, 3, 3, 3)
	w.at(61, "web-4", rolls, 1, 1, 1, 0)
	w.at(121, "web-4", waits, 1, 1, 0, 0)
	failed := len(*calls)
	w.annotate(rollback.NoteAnnotation, `{"from":"web-4","to":"web-3","reason":"why"}`)
	w.at(122, "web-3", rolls, 1, 1, 0, 0)
	w.at(300, "web-3", waits, 1, 1, 0, 0)
	w.says("Updated False ProgressDeadlineExceeded", "LastGood True AllAvailable: revision=web-3/uid-web-3 before=web-1/uid-web-1")
	if failed != 1 || len(*calls) != 1 {
		t.Errorf("%d calls, then %d", failed, len(*calls))
	}
}

// TestOnceForAnEdit: not the way back, and not what somebody asks for again and again.
func TestOnceForAnEdit(t *testing.T) {
	w, calls := undone(t, "undo", func(rollback.Failure) error { return nil })
	w.at(60, "web-2", waits, 1, 1, 0, 0)
	noted, err := json.Marshal(rollback.Note{
		From: "web-2", FromRevision: 2, To: "web-1", ToRevision: 1, At: start, Reason: "why",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.annotate(rollback.NoteAnnotation, string(noted))
	w.at(61, "web-1", rolls, 1, 1, 0, 0)
	w.says("Updated False RolloutProgressing", "Stalled True RolledBack: revision 2 (web-2) failed: why; back to revision 1 (web-1); to acknowledge it, remove annotation ",
		"phase=Progressing", "undone=web-2 back=true]")
	w.at(200, "web-1", waits, 1, 1, 0, 0)
	w.says("Updated False ProgressDeadlineExceeded", "Stalled True RolledBack")
	w.at(210, "web-1", done, 3, 3, 3, 3)
	w.begin()
	w.at(220, "web-1", done, 3, 3, 2, 2) // another process, and a pod is down
	w.at(500, "web-1", done, 3, 3, 2, 2)
	w.says("Updated True", "Stalled True RolledBack: ", "phase=Complete")
	if len(*calls) != 1 {
		t.Errorf("%d calls", len(*calls))
	}

	w.at(600, "web-2", rolls, 1, 1, 0, 0)
	w.says("Stalled False RolloutProgressing")
	w.at(660, "web-2", waits, 1, 1, 0, 0)
	w.at(661, "web-2", waits, 1, 1, 0, 0)
	w.says("not rolled back: revision web-2 was asked for again after it was rolled back")
	w.at(700, "web-3", rolls, 1, 1, 0, 0)
	w.at(760, "web-3", waits, 1, 1, 0, 0)
	if got := w.stored(); len(*calls) != 2 || (*calls)[1].Revision != "web-3" || !strings.Contains(got, "Stalled True ProgressDeadlineExceeded") {
		t.Errorf("%d calls\n%s", len(*calls), got)
	}
}

// TestRollbackAfterLateChildren: a rollout that created no child within the deadline is not rolled back, and is once
// children that it created later have failed.
func TestRollbackAfterLateChildren(t *testing.T) {
	w, calls := undone(t, "undo", func(rollback.Failure) error { return nil })
	w.at(70, "web-3", rolls, 0, 0, 0, 0)
	w.at(130, "web-3", waits, 0, 0, 0, 0)
	w.at(131, "web-3", waits, 0, 0, 0, 0)
	w.says("; not rolled back: no child was created from revision web-3")
	w.at(140, "web-3", rolls, 1, 1, 0, 0)
	w.at(200, "web-3", waits, 1, 1, 0, 0)
	if len(*calls) != 1 || (*calls)[0].Revision != "web-3" || (*calls)[0].To.Name != "web-1" {
		t.Errorf("rolled back %+v", *calls)
	}
}
