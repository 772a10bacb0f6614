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
	for n, step := range []struct {
		what                     string
		edit                     func(*appsv1.ReplicaSet)
		updated, available, held int
		status, reason           string
		want                     string
	}{
		{what: "pods that are down after a restart of the manager are no rollout", updated: 3, available: 2, status: "True"},
		{what: "an edit", edit: edited, available: 3, status: "False", reason: pass.RolloutProgressing, want: "progressing: 10"},
		{what: "one pod is taken away", available: 2, status: "False", reason: pass.RolloutWaiting, want: "waiting: 10"},
		{what: "it comes back", updated: 1, available: 2, status: "False", reason: pass.RolloutWaiting, want: "waiting: 30"},
		{what: "and falls", updated: 0, available: 2, status: "False", reason: pass.RolloutWaiting, want: "waiting: 30"},
		{what: "again", updated: 1, available: 3, status: "False", reason: pass.RolloutWaiting, want: "waiting: 30"},
		{what: "a partition", updated: 1, available: 3, held: 2, status: "False", reason: pass.RolloutWaiting, want: "held: 30"},
		{what: "a quota", updated: 1, available: 2, status: "False", reason: "RolloutFailing", want: "failing: 30"},
		{what: "all updated, one is down", updated: 3, available: 2, status: "True", want: "waiting: 80"},
		{what: "complete", updated: 3, available: 3, status: "True"},
		{what: "one falls later", updated: 3, available: 2, status: "True"},
	} {
		if step.edit != nil {
			set := w.set()
			step.edit(set)
			if err := w.Raw.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		w.run = func(_ context.Context, p *pass.Pass) error {
			p.NoteRollout(rollout.Plan{Total: 3, Updated: step.updated, Available: step.available, Held: step.held},
				metav1.Condition{Status: metav1.ConditionStatus(step.status), Reason: step.reason})
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
				p.NoteRollout(rollout.Plan{Total: 1}, metav1.Condition{Status: metav1.ConditionFalse, Reason: "RolloutFailing"})
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
