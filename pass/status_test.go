package pass_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// Statuses: written when they differ, once a second where nothing is urgent, and never over a newer one.

func TestWriteStatus(t *testing.T) {
	w := newWorld(t, nil, web())
	write := func(replicas int32, urgent bool) (wrote bool, again time.Duration) {
		w.Forget()
		w.run = func(ctx context.Context, p *pass.Pass) error {
			_, err := state(ctx, p, replicas, "", urgent)
			return err
		}
		result, err := w.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		return len(w.Writes()) > 0, result.RequeueAfter
	}
	for i, c := range []struct {
		step     time.Duration
		replicas int32
		urgent   bool
		wrote    bool
		again    time.Duration
	}{
		{0, 1, false, true, 0},
		{300 * time.Millisecond, 1, false, false, 0},
		{0, 2, false, false, 700 * time.Millisecond}, // too early; it is not forgotten
		{0, 3, true, true, 0},
		{time.Second, 4, false, true, 0},
	} {
		w.clock.Step(c.step)
		if wrote, again := write(c.replicas, c.urgent); wrote != c.wrote || again != c.again {
			t.Errorf("step %d: wrote %v, again in %s", i, wrote, again)
		}
	}
	if got := w.Calls("patch status"); len(got) != 1 || got[0].Version == "" {
		t.Errorf("%+v has no precondition", got)
	}
}

func TestStatusLosesARace(t *testing.T) {
	w := newWorld(t, nil, web())
	w.Before = fakeserver.Refuse("patch status", "ReplicaSet", apierrors.NewConflict(setResource, "web", errors.New("changed")))
	for _, failed := range []error{nil, errBoom} {
		w.run = func(ctx context.Context, p *pass.Pass) error {
			_, err := state(ctx, p, 1, "", true)
			if !errors.Is(err, ownership.ErrStale) {
				t.Error(err)
			}
			return pass.Finished(failed, err)
		}
		// Alone it is a pass to be made again soon. Beside a failure it must not be: the failure has a back-off.
		if result, err := w.reconcile(); (failed == nil) != (result.RequeueAfter == pass.StaleRetry) || !errors.Is(err, failed) {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

// TestUrgentConditions: news are written immediately.
func TestUrgentConditions(t *testing.T) {
	updated := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Other"}, {Type: pass.Updated, Status: status, Reason: reason}}
	}
	progress, waits := updated(metav1.ConditionFalse, "RolloutProgressing"), updated(metav1.ConditionFalse, "RolloutWaiting")
	done, fails := updated(metav1.ConditionTrue, "OnLatestRevision"), updated(metav1.ConditionFalse, "RolloutFailing")
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		want          bool
	}{
		"under way":                      {progress, waits, false},
		"begins":                         {done, progress, true},
		"ends":                           {waits, done, true},
		"fails":                          {progress, fails, true},
		"goes on":                        {fails, progress, true},
		"none":                           {done, done, false},
		"the first status of the parent": {nil, progress, true},
	} {
		stored := pass.StoredConditions(c.before, setCondition)
		after, got := pass.Conditions(stored, setCondition, func(conditions *[]metav1.Condition) { *conditions = c.after })
		if got != c.want || len(after) != len(c.after) {
			t.Errorf("%s: %v, %d conditions", name, got, len(after))
		}
	}
}
