package pass_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// measured returns the series of one metric, as "label value …: value", sorted; times are seconds since start.
func measured(t *testing.T, name string) (out []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if strings.Contains(name, "timestamp") {
				value -= float64(start.Unix())
			}
			out = append(out, fmt.Sprintf("%s: %g", strings.Join(labels, " "), value))
		}
	}
	slices.Sort(out)
	return out
}

// TestRolloutsAreMeasured: a series says how the rollout is and when it last got on, and is gone with the rollout.
func TestRolloutsAreMeasured(t *testing.T) {
	const metric = "cairn_rollout_last_progress_timestamp_seconds"
	w := newWorld(t, nil, web())
	edited := func(o *appsv1.ReplicaSet) { o.Generation++ }
	// done are the pods that are gone, made, ready and available.
	done := func(counts ...int) rollout.Progress {
		return rollout.Progress{Gone: counts[0], Made: counts[1], Ready: counts[2], Available: counts[3]}
	}
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	for n, step := range []struct {
		what                     string
		edit                     func(*appsv1.ReplicaSet)
		updated, available, held int
		done                     rollout.Progress
		status                   metav1.ConditionStatus
		reason, want             string
	}{
		{what: "pods that are down after a restart of the manager are no rollout", updated: 3, available: 2, status: yes},
		{what: "an edit", edit: edited, available: 3, status: no, reason: pass.RolloutProgressing, want: "progressing: 10"},
		{what: "a pod is gone", available: 2, done: done(1, 0, 0, 0), status: no, reason: pass.RolloutWaiting, want: "waiting: 20"},
		{what: "another is made", updated: 1, available: 2, done: done(1, 1, 0, 0), status: no, reason: pass.RolloutWaiting, want: "waiting: 30"},
		{what: "and ready", updated: 1, available: 2, done: done(1, 1, 1, 0), status: no, reason: pass.RolloutWaiting, want: "waiting: 40"},
		{what: "and crashes", updated: 1, available: 2, done: done(1, 1, 0, 0), status: no, reason: pass.RolloutWaiting, want: "waiting: 40"},
		{what: "again", updated: 1, available: 2, done: done(1, 1, 1, 0), status: no, reason: pass.RolloutWaiting, want: "waiting: 40"},
		{
			what: "it is down, and a partition holds the others", updated: 1, available: 2, held: 2, done: done(1, 1, 1, 0),
			status: no, reason: pass.RolloutWaiting, want: "waiting: 40",
		},
		{
			what: "it is available, as many as before the edit", updated: 1, available: 3, held: 2, done: done(1, 1, 1, 1),
			status: no, reason: pass.RolloutWaiting, want: "held: 80",
		},
		{what: "still held", updated: 1, available: 3, held: 2, done: done(1, 1, 1, 1), status: no, reason: pass.RolloutWaiting, want: "held: 80"},
		{what: "held no more", updated: 1, available: 3, done: done(1, 1, 1, 1), status: no, reason: pass.RolloutWaiting, want: "waiting: 100"},
		{what: "a quota", updated: 1, available: 2, done: done(1, 1, 1, 1), status: no, reason: "RolloutFailing", want: "failing: 100"},
		{what: "all updated, one is down", updated: 3, available: 2, done: done(3, 3, 3, 2), status: yes, want: "waiting: 120"},
		{what: "complete", updated: 3, available: 3, done: done(3, 3, 3, 3), status: yes},
		{what: "one falls later", updated: 3, available: 2, done: done(3, 3, 2, 2), status: yes},
		{what: "one is evicted", updated: 2, available: 2, done: done(3, 2, 2, 2), status: no, reason: pass.RolloutProgressing, want: "progressing: 150"},
		{what: "and made again", updated: 3, available: 2, done: done(3, 3, 2, 2), status: yes, want: "waiting: 160"},
		{what: "complete again", updated: 3, available: 3, done: done(3, 3, 3, 3), status: yes},
	} {
		if step.edit != nil {
			set := w.set()
			step.edit(set)
			if err := w.Raw.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		w.run = func(_ context.Context, p *pass.Pass) error {
			p.NoteRollout(pass.Rollout{Plan: &rollout.Plan{
				Total: 3, Updated: step.updated, Available: step.available, Held: step.held, Done: step.done,
			}, Updated: metav1.Condition{Status: step.status, Reason: step.reason}})
			return nil
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		var want []string
		if step.want != "" {
			want = []string{"apps ReplicaSet web default " + step.want}
		}
		if got := measured(t, metric); !slices.Equal(got, want) {
			t.Errorf("%d: %s: %q, want %q", n, step.what, got, want)
		}
		w.clock.Step(10 * time.Second)
	}
}

// TestSeriesEndWithTheirParent: what is said of a rollout, and of failures, is said no more when the parent is deleted,
// or the controller ends.
func TestSeriesEndWithTheirParent(t *testing.T) {
	for name, end := range map[string]func(*world){
		"the parent is deleted": func(w *world) { w.c.Forget(w.set().UID) },
		"the controller ends":   func(w *world) { w.c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, web())
			before := measured(t, "cairn_refused_writes_total")
			w.run = func(_ context.Context, p *pass.Pass) error {
				p.NoteRollout(pass.Rollout{
					Plan: &rollout.Plan{Total: 1}, Updated: metav1.Condition{Status: metav1.ConditionFalse, Reason: "RolloutFailing"},
				})
				return pass.SlowStart(p, pass.Writes[int]{Items: []int{1}, Do: func(int) error {
					return errors.Join(apierrors.NewForbidden(podResource, "a", errors.New("quota")),
						apierrors.NewConflict(podResource, "a", errors.New("race")), errors.New("no answer"))
				}})
			}
			if _, err := w.reconcile(); err == nil {
				t.Fatal("the pass did not fail")
			}
			if got := measured(t, "cairn_rollout_last_progress_timestamp_seconds"); len(got) != 1 {
				t.Errorf("rollouts: %q", got)
			}
			if got, want := measured(t, "cairn_retry_delay_seconds"), []string{"apps ReplicaSet web default: 0.005"}; !slices.Equal(got, want) {
				t.Errorf("retries: %q, want %q", got, want)
			}
			if got := measured(t, "cairn_refused_writes_total"); len(got) != 1 || slices.Equal(got, before) {
				t.Errorf("refused writes: %q, before: %q", got, before)
			}
			end(w)
			for _, metric := range []string{"cairn_rollout_last_progress_timestamp_seconds", "cairn_retry_delay_seconds"} {
				if got := measured(t, metric); len(got) > 0 {
					t.Errorf("%s: %q is left", metric, got)
				}
			}
		})
	}
}
