package pass

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/rollout"
)

// This file is the metrics of parents: of rollouts that are not complete, and of passes that fail. A parent has a
// series for as long as there is something to say, so there are few of them, and an alert names the object.

var (
	rollouts = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cairn_rollout_last_progress_timestamp_seconds",
		Help: "When a rollout that is not complete last got on, in seconds since 1970, for each object that has one. " +
			"The state is progressing, waiting, held (by a partition, OnDelete or a pause), failing, or stalled (it has exceeded its deadline).",
	}, []string{"group", "kind", "namespace", "name", "state"})
	retries = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cairn_retry_delay_seconds",
		Help: "How long the next pass over an object waits because the last one failed, for each object with which that is so.",
	}, []string{"group", "kind", "namespace", "name"})
	refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cairn_refused_writes_total",
		Help: "Writes that the API server has refused, by the kind of the parent, and the reason that it gave.",
	}, []string{"group", "kind", "reason"})
)

func init() { //nolint:gochecknoinits // how metrics are registered
	metrics.Registry.MustRegister(rollouts, retries, refusals)
}

// series are the metrics of one parent.
type series struct {
	object []string // group, kind, namespace, name
	// state is what the series of the rollout has, empty if there is none.
	state string
	// generation is that of the parent, best the most that was done since, and at when it became that.
	generation int64
	best       rollout.Progress
	at         time.Time
	// finished says that the rollout of this generation was complete, or that none was seen.
	finished, failing bool
}

// measure tells the metrics how far the rollout of the parent is; updated is its condition [Updated]. A rollout is
// complete once all units are updated and available. It gets on when more is done than ever was since the last edit,
// and begins anew when it was complete or held, and is not any more: a node joined, or the partition was lowered.
// failed says that it has exceeded its deadline.
func (p *Pass) measure(plan rollout.Plan, updated metav1.Condition, failed bool) {
	c := p.controller
	c.mu.Lock()
	defer c.mu.Unlock()
	s, isTrue := &p.memory.series, updated.Status == metav1.ConditionTrue
	finished := isTrue && (s.finished || plan.Available >= plan.Total)
	edited := s.generation != p.Parent.GetGeneration()
	if edited && isTrue {
		finished = true // one that is complete but for pods that are down is no rollout: another process has seen it complete
	}
	state := stateOf(finished, plan, updated)
	if failed {
		state = "stalled"
	}
	if edited || s.finished && !finished || s.state == held && state != held {
		s.best, s.at = plan.Done, p.Now()
	} else if best := plan.Done.Max(s.best); best != s.best {
		s.best, s.at = best, p.Now()
	}
	s.generation, s.finished = p.Parent.GetGeneration(), finished
	s.show(state)
}

// held is the state of a rollout that has done all permitted updates.
const held = "held"

// stateOf is the state of a rollout, empty if it is finished.
func stateOf(finished bool, plan rollout.Plan, updated metav1.Condition) string {
	switch {
	case finished:
		return ""
	case updated.Status == metav1.ConditionTrue: // updated, and not yet available
		return "waiting"
	case updated.Reason == RolloutProgressing:
		return "progressing"
	case updated.Reason == RolloutHeld:
		return held
	case updated.Reason != RolloutWaiting:
		return "failing" // it needs help
	case permitted(plan): // it is paused
		return held
	default:
		return "waiting"
	}
}

// permitted reports whether all permitted updates are done and available: a canary that is down is not.
func permitted(plan rollout.Plan) bool {
	return plan.Updated+plan.Held == plan.Total && plan.Done.Available == plan.Done.Made
}

// show makes the series of the rollout say so.
func (s *series) show(state string) {
	if s.object == nil {
		return // not a pass of a Reconcile
	}
	if s.state != "" && s.state != state {
		rollouts.DeleteLabelValues(append(slices.Clone(s.object), s.state)...)
	}
	if s.state = state; state != "" {
		rollouts.WithLabelValues(append(slices.Clone(s.object), state)...).Set(float64(s.at.UnixMilli()) / float64(time.Second/time.Millisecond))
	}
}

// retry says how long the next pass waits because the last one failed, zero if it did not.
func (s *series) retry(delay time.Duration) {
	switch {
	case delay > 0:
		retries.WithLabelValues(s.object...).Set(delay.Seconds())
	case s.failing:
		retries.DeleteLabelValues(s.object...)
	}
	s.failing = delay > 0
}

// describe says whose series they are.
func (c *Controller) describe(p *Pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.memory.series.object == nil {
		kind := p.kind()
		p.memory.series.object = []string{kind.Group, kind.Kind, p.Parent.GetNamespace(), p.Parent.GetName()}
	}
}

// showRetry is retry for a pass that has ended.
func (c *Controller) showRetry(m *memory, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.series.retry(delay)
}

// end removes them.
func (s *series) end() {
	s.show("")
	s.retry(0)
}

// noteRefusals counts what the API server refused of the writes of a pass.
func (p *Pass) noteRefusals(err error) {
	kind := p.kind()
	for _, e := range leaves(err) {
		switch reason := apierrors.ReasonForError(e); reason {
		case metav1.StatusReasonUnknown, metav1.StatusReasonConflict, metav1.StatusReasonNotFound: // no answer, or a race
		default:
			refusals.WithLabelValues(kind.Group, kind.Kind, string(reason)).Inc()
		}
	}
}

// leaves returns the errors that were joined.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, leaves(e)...)
	}
	return out
}

// Close removes the metrics of all parents, when the last pass has ended and the process goes on.
func (c *Controller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.memories {
		m.series.end()
	}
}
