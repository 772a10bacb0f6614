package pass_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollback"
	"github.com/cairn-dev/cairn/rollout"
)

// rolling is a ReplicaSet whose controller reports a rollout. Its conditions are stored as those of a DaemonSet are.
type rolling struct {
	*world

	r      pass.Rollout
	writes int
	// lost says that no status write arrives.
	lost bool
}

func newRolling(t *testing.T, annotations map[string]string) *rolling {
	t.Helper()
	set := web()
	set.Annotations = annotations
	w := &rolling{world: newWorld(t, nil, set)}
	w.begin()
	return w
}

// begin starts another process.
func (w *rolling) begin() {
	w.c = pass.New(w.c.Config)
	w.run = func(ctx context.Context, p *pass.Pass) error {
		set := p.Parent.(*appsv1.ReplicaSet)
		after := set.DeepCopy()
		conditions := pass.ConditionsOf(set.Status.Conditions, setCondition)
		p.NoteRollout(w.r).Set(&conditions)
		if after.Status.Conditions = pass.StoredConditions(conditions, setCondition); w.lost {
			return nil
		}
		stored, err := p.WriteStatus(ctx, set, after, true)
		if stored && !apiequality.Semantic.DeepEqual(set, after) {
			w.writes++
		}
		return err
	}
}

func setCondition(c *appsv1.ReplicaSetCondition) pass.ConditionFields[appsv1.ReplicaSetConditionType] {
	return pass.ConditionFields[appsv1.ReplicaSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}

// at makes a pass with so many pods of three gone, made, ready and available, so many seconds after the start.
func (w *rolling) at(seconds float64, revision, reason string, counts ...int) (requeue time.Duration) {
	w.t.Helper()
	w.clock.SetTime(start.Add(time.Duration(seconds * float64(time.Second))))
	if set := w.set(); w.r.Revision.Name != "" && w.r.Revision.Name != revision {
		set.Generation++
		if err := w.Raw.Update(w.t.Context(), set); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.r.Revision = (rollback.Revision{}); revision != "" {
		w.r.Revision = rollback.Revision{Name: revision, UID: types.UID("uid-" + revision)}
	}
	w.r.Updated = metav1.Condition{Type: pass.Updated, Status: metav1.ConditionFalse, Reason: reason, Message: "m"}
	if reason == "OnLatestRevision" {
		w.r.Updated.Status = metav1.ConditionTrue
	}
	w.r.Plan = &rollout.Plan{
		Total: 3, Updated: counts[0], Available: counts[3], Held: w.held(counts[0]),
		Done: rollout.Progress{Gone: counts[0], Made: counts[1], Ready: counts[2], Available: counts[3]},
	}
	result, err := w.reconcile()
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

// held are those that are not updated, where that is what the strategy asks for.
func (w *rolling) held(updated int) int {
	if w.r.Paused || strings.Contains(w.set().Annotations["partition"], "yes") {
		return 3 - updated
	}
	return 0
}

// stored is what the status says, "type status reason: message" for each condition.
func (w *rolling) stored() string {
	w.t.Helper()
	out := make([]string, 0, 2)
	for _, c := range w.set().Status.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "\n")
}

func (w *rolling) says(want ...string) {
	w.t.Helper()
	for _, text := range want {
		if got := w.stored(); !strings.Contains(got, text) {
			w.t.Errorf("the status says\n%s\nwithout %q", got, text)
		}
	}
}

func (w *rolling) annotate(key, value string) {
	w.t.Helper()
	set := w.set()
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	if err := w.Raw.Update(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
}

const (
	rolls, waits, done = pass.RolloutProgressing, pass.RolloutWaiting, "OnLatestRevision"
	exceeded           = "Updated False ProgressDeadlineExceeded: no progress for 1m0s"
)

func TestARolloutThatDoesNotGetOn(t *testing.T) {
	w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
	w.r.Blocker = func() string { return "pod web-2:\nCrashLoopBackOff" }
	if left := w.at(0, "web-1", done, 3, 3, 3, 3); left != 0 {
		t.Errorf("complete, and a timer of %s", left)
	}
	w.says("Updated True", "LastGood True AllAvailable: revision=web-1/uid-web-1",
		"Stalled False RolloutComplete: the rollout is complete [revision=web-1 phase=Complete gone=3 made=3 ready=3 available=3 of=3 held=0 since=2026-03-04T05:06:07Z]")
	w.at(1, "web-1", done, 3, 3, 2, 2)
	if left := w.at(500, "web-1", rolls, 2, 2, 2, 2); left != 0 {
		t.Errorf("a pod that is evicted, and a timer of %s", left)
	}

	if left := w.at(1000.5, "web-2", rolls, 0, 0, 0, 0); left != 60*time.Second+500*time.Millisecond { // it is early by no part of a second
		t.Errorf("an edit: a timer of %s", left)
	}
	w.at(1010, "web-2", rolls, 1, 0, 0, 0)
	w.at(1020, "web-2", rolls, 1, 1, 1, 0)
	w.at(1050, "web-2", waits, 1, 1, 0, 0)
	writes := w.writes
	if left := w.at(1079, "web-2", waits, 1, 1, 1, 0); left != time.Second { // a crash and a start are no progress
		t.Errorf("a timer of %s", left)
	}
	w.says("Updated False RolloutWaiting: m", "Stalled False RolloutProgressing: the rollout makes progress [revision=web-2 phase=Progressing gone=1 made=1 ready=1 available=0 of=3 held=0 since=2026-03-04T05:23:07Z]")
	if w.writes != writes {
		t.Error("the status was written without progress")
	}
	w.at(1080, "web-2", waits, 1, 1, 0, 0)
	w.says(exceeded+": pod web-2: CrashLoopBackOff; m", "Stalled True ProgressDeadlineExceeded: no progress for 1m0s: pod web-2: CrashLoopBackOff [revision=web-2 phase=Progressing gone=1 made=1 ready=1 ")
	writes, w.r.Blocker = w.writes, func() string { return "another" }
	w.at(1090, "web-2", waits, 1, 1, 1, 0)
	if got := w.events.Events(rollback.ProgressDeadlineExceeded); len(got) != 1 || w.writes != writes {
		t.Errorf("events %q; %d writes", got, w.writes-writes)
	}
	if got, want := measured(t, "cairn_rollout_last_progress_timestamp_seconds"), "apps ReplicaSet web default stalled: 1020"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}

	w.at(1100, "web-2", waits, 1, 1, 1, 1) // late, but it does get on
	w.says("Updated False RolloutWaiting: m", "Stalled False RolloutProgressing", "since=2026-03-04T05:24:27Z")
	w.at(1110, "web-2", done, 3, 3, 3, 3)
	w.says("Updated True", "Stalled False RolloutComplete", "LastGood True AllAvailable: revision=web-2/uid-web-2 before=web-1/uid-web-1")
	w.c.Close()
}

// TestADeadlineOutlivesTheManager: whenever it is killed, the time goes on where it was.
func TestADeadlineOutlivesTheManager(t *testing.T) {
	for name, kill := range map[string]float64{"after progress": 21, "late": 79, "after the deadline": 85} {
		t.Run(name, func(t *testing.T) {
			w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
			w.at(0, "web-1", rolls, 1, 1, 0, 0)
			w.at(20, "web-1", rolls, 1, 1, 1, 0)
			if kill > 80 {
				w.at(kill, "web-1", waits, 1, 1, 0, 0)
			}
			w.begin()
			if left := w.at(kill, "web-1", waits, 1, 1, 0, 0); left != max(0, time.Duration(80-kill)*time.Second) {
				t.Errorf("a timer of %s", left)
			}
			w.at(max(kill, 79), "web-1", waits, 1, 1, 1, 0) // it was ready before, in another process
			w.at(90, "web-1", waits, 1, 1, 1, 0)
			w.says(exceeded)
			if got := w.events.Events(rollback.ProgressDeadlineExceeded); len(got) != 1 {
				t.Errorf("events %q", got)
			}
			w.c.Close()
		})
	}
	t.Run("progress whose status write was lost", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
		w.at(0, "web-1", rolls, 1, 1, 0, 0)
		w.lost = true
		w.at(50, "web-1", rolls, 1, 1, 1, 0)
		w.begin()
		w.lost = false
		if left := w.at(55, "web-1", rolls, 1, 1, 1, 0); left != time.Minute {
			t.Errorf("a timer of %s", left)
		}
		w.c.Close()
	})
	t.Run("a leader whose clock is behind", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
		w.at(3600, "web-1", rolls, 1, 1, 0, 0)
		w.clock = testingclock.NewFakeClock(start)
		w.c.Clock = w.clock
		w.begin()
		if left := w.at(0, "web-1", rolls, 1, 1, 0, 0); left != time.Minute {
			t.Errorf("a timer of %s", left)
		}
		w.c.Close()
	})
}

// TestWhatIsNoLackOfProgress: a partition, OnDelete, a pause. The time begins anew when they end.
func TestWhatIsNoLackOfProgress(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m", "partition": "yes"})
		w.at(0, "web-2", waits, 1, 1, 0, 0)
		w.says("Updated False RolloutWaiting")
		w.at(30, "web-2", waits, 1, 1, 1, 1)
		w.says("Updated False RolloutHeld: m", "Stalled False RolloutHeld")
		w.at(1000, "web-2", waits, 1, 1, 0, 0) // the canary is down
		w.says("Updated False RolloutWaiting: m", "Stalled False RolloutHeld")
		w.begin()
		w.annotate("partition", "no")
		if left := w.at(1030, "web-2", rolls, 1, 1, 1, 1); left != time.Minute {
			t.Errorf("the partition is lowered: a timer of %s", left)
		}
		w.c.Close()
	})
	t.Run("a child below the partition is being created", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m", "partition": "yes"})
		w.at(0, "web-2", rolls, 1, 1, 0, 0)
		w.at(30, "web-2", rolls, 1, 1, 1, 1)
		w.at(1000, "web-2", rolls, 1, 1, 1, 1)
		w.says("Updated False RolloutProgressing: m", "Stalled False RolloutHeld")
		w.c.Close()
	})
	t.Run("a canary that does not start", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m", "partition": "yes"})
		w.at(0, "web-2", waits, 1, 1, 0, 0)
		w.at(60, "web-2", waits, 1, 1, 0, 0)
		w.says(exceeded)
		w.c.Close()
	})
	t.Run("paused", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
		w.at(0, "web-2", rolls, 1, 1, 0, 0)
		w.r.Paused = true
		w.at(59, "web-2", waits, 1, 1, 0, 0)
		w.at(1000, "web-2", waits, 1, 1, 0, 0)
		w.says("Updated False RolloutWaiting", "Stalled False RolloutPaused")
		w.r.Paused = false
		if left := w.at(1010, "web-2", rolls, 1, 1, 0, 0); left != time.Minute {
			t.Errorf("resumed: a timer of %s", left)
		}
		w.c.Close()
	})
	t.Run("pods that are down when the deadline is set", func(t *testing.T) {
		w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
		w.at(0, "web-1", done, 3, 3, 2, 2)
		w.at(100, "web-1", done, 3, 3, 2, 2)
		w.says("Updated True", "Stalled False RolloutComplete")
		w.c.Close()
	})
}

// TestWhichDeadlineCounts: the parent's, that of who rolls it, the default.
func TestWhichDeadlineCounts(t *testing.T) {
	for name, c := range map[string]struct {
		annotation        string
		rollout, fallback time.Duration
		want              time.Duration
		minReady          time.Duration
	}{
		"none":                                 {},
		"the default":                          {fallback: time.Hour, want: time.Hour},
		"who rolls it":                         {rollout: time.Minute, fallback: time.Hour, want: time.Minute},
		"the parent":                           {annotation: "2m", rollout: time.Minute, fallback: time.Hour, want: 2 * time.Minute},
		"the parent's none":                    {annotation: "0", rollout: time.Minute, fallback: time.Hour},
		"no duration":                          {annotation: "10", rollout: time.Minute, fallback: time.Hour},
		"less than nothing":                    {annotation: "-1m", rollout: time.Minute, fallback: time.Hour},
		"too short":                            {annotation: "10ms", rollout: time.Minute, fallback: time.Hour},
		"longer than it takes to be available": {annotation: "61s", minReady: time.Minute, want: 61 * time.Second},
		"not longer than it takes to be available": {annotation: "1m", minReady: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			if c.annotation != "" {
				annotations[rollback.ProgressDeadlineAnnotation] = c.annotation
			}
			w := newRolling(t, annotations)
			w.c.ProgressDeadline, w.r.Deadline, w.r.MinReady = c.fallback, c.rollout, c.minReady
			for range 2 {
				if left := w.at(0, "web-2", rolls, 0, 0, 0, 0); left != c.want {
					t.Errorf("a timer of %s, want %s", left, c.want)
				}
			}
			invalid := c.want == 0 && c.annotation != "" && c.annotation != "0"
			if got := w.events.Events("InvalidProgressDeadline"); (len(got) == 1) != invalid {
				t.Errorf("events %q", got)
			}
			says := `annotation cairn.dev/progress-deadline: invalid duration "` + c.annotation
			if c.minReady > 0 {
				says = "the progress deadline 1m0s is not longer than minReadySeconds (1m0s)"
			}
			if got := w.stored(); strings.Contains(got, "Stalled Unknown InvalidProgressDeadline: "+says) != invalid {
				t.Error(got)
			}
			w.annotate(rollback.ProgressDeadlineAnnotation, "0")
			w.at(1, "web-2", rolls, 0, 0, 0, 0)
			if got := w.stored(); strings.Contains(got, "Stalled") {
				t.Errorf("there is no deadline, and the status says\n%s", got)
			}
			w.c.Close()
		})
	}
}

// TestAPassThatCannotPlan: what is not known of a rollout is no progress, and no failure of its own.
func TestAPassThatCannotPlan(t *testing.T) {
	w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "1m"})
	nothing := func(seconds float64) {
		t.Helper()
		w.clock.SetTime(start.Add(time.Duration(seconds) * time.Second))
		w.r = pass.Rollout{Updated: metav1.Condition{Type: pass.Updated, Status: metav1.ConditionFalse, Reason: "SyncError", Message: "the hook is down"}}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	nothing(0)
	nothing(100)
	w.says("Updated False SyncError: the hook is down")
	w.at(100, "web-2", rolls, 1, 0, 0, 0)
	nothing(159)
	w.says("Updated False SyncError", "Stalled False RolloutProgressing")
	nothing(160)
	w.says(exceeded + ": the hook is down")
	w.c.Close()
}

// TestWhatIsNotOurs: a condition Stalled of somebody else is neither read nor removed.
func TestWhatIsNotOurs(t *testing.T) {
	conditions := []metav1.Condition{{Type: rollback.Stalled, Status: metav1.ConditionTrue, Reason: "Theirs", Message: "the chart is broken"}}
	pass.RolloutConditions{Updated: metav1.Condition{Type: pass.Updated}}.Set(&conditions)
	if len(conditions) != 2 || conditions[0].Reason != "Theirs" {
		t.Errorf("%+v", conditions)
	}
}

// TestUnproven: a rollout of which no child is checked is not good, and does not fail: a ConfigMap alone shows nothing.
func TestUnproven(t *testing.T) {
	w := newRolling(t, map[string]string{rollback.ProgressDeadlineAnnotation: "10s"})
	w.r.Unproven = true
	w.at(0, "a", "OnLatestRevision", 3, 3, 3, 3)
	w.at(20, "a", "OnLatestRevision", 3, 3, 3, 3)
	if got := w.stored(); strings.Contains(got, rollback.LastGood) {
		t.Error(got)
	}
	w.at(30, "b", "RolloutFailing", 2, 2, 2, 2)
	w.at(60, "b", "RolloutFailing", 2, 2, 2, 2)
	if got := w.stored(); strings.Contains(got, rollback.ProgressDeadlineExceeded) {
		t.Error(got)
	}
	w.r.Unproven = false
	w.at(70, "b", "OnLatestRevision", 3, 3, 3, 3)
	if got := w.stored(); !strings.Contains(got, "LastGood True AllAvailable: revision=b/uid-b") {
		t.Error(got)
	}
}
