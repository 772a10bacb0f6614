package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file counts what is recorded, and writes it into the status of the policy, and into metrics: every few seconds
// at most, and only if it changed.

var (
	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cairn_history_policy_objects",
		Help: "Objects of a HistoryPolicy: those that are recorded, and those that could not be (skipped).",
	}, []string{"policy", "state"})
	revisions = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cairn_history_policy_revisions", Help: "Revisions of the objects of a HistoryPolicy.",
	}, []string{"policy"})
)

func init() { //nolint:gochecknoinits // how metrics are registered
	metrics.Registry.MustRegister(objects, revisions)
}

const (
	// countEvery is how often counts are written at most.
	countEvery = 2 * time.Second
	// mostSkipped is how many objects a status names that could not be recorded.
	mostSkipped = 10
)

// counts are what is known of the objects of one policy.
type counts struct {
	client client.Client
	clock  clock.WithTicker
	policy types.NamespacedName
	uid    types.UID
	// changed has an element when there is something to write.
	changed chan struct{}

	mu      sync.Mutex
	objects map[types.NamespacedName]count
	// written is what the status has.
	written v1alpha1.HistoryPolicyStatus
	total   int64
}

// count is what is known of one object.
type count struct {
	revisions int
	// skipped says why it could not be recorded.
	skipped string
}

func newCounts(c client.Client, by clock.WithTicker, policy *v1alpha1.HistoryPolicy) *counts {
	written := policy.Status
	written.ObservedGeneration, written.Conditions = 0, nil
	return &counts{
		client: c, clock: by, policy: client.ObjectKeyFromObject(policy), uid: policy.UID, written: written,
		changed: make(chan struct{}, 1), objects: map[types.NamespacedName]count{},
	}
}

// set notes how many revisions an object has, and why it could not be recorded, nil if it was. It reports whether that
// is new.
func (c *counts) set(name types.NamespacedName, revisions int, failed error) bool {
	now := count{revisions: revisions}
	if failed != nil {
		now.skipped = failed.Error()
	}
	c.mu.Lock()
	was, known := c.objects[name]
	c.objects[name] = now
	c.total += int64(now.revisions - was.revisions)
	c.mu.Unlock()
	if known && was == now {
		return false
	}
	c.wake()
	return true
}

// forget counts an object no more.
func (c *counts) forget(name types.NamespacedName) {
	c.mu.Lock()
	was, known := c.objects[name]
	delete(c.objects, name)
	c.total -= int64(was.revisions)
	c.mu.Unlock()
	if known {
		c.wake()
	}
}

func (c *counts) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run is a source that enqueues nothing: it writes the status until ctx ends.
func (c *counts) run(ctx context.Context, _ watching.Queue) error {
	c.wake() // the status may be that of an earlier process
	go func() {
		defer c.unmeasure()
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.clock.After(countEvery):
			}
			select {
			case <-ctx.Done():
				return
			case <-c.changed:
			}
			if err := c.write(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "The counts could not be written", "policy", c.policy.Name)
				c.wake()
			}
		}
	}()
	return nil
}

// status is what the counts say.
func (c *counts) status() v1alpha1.HistoryPolicyStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := v1alpha1.HistoryPolicyStatus{Parents: int64(len(c.objects)), Revisions: c.total}
	for name, one := range c.objects {
		if one.skipped == "" {
			continue
		}
		out.Skipped++
		example := v1alpha1.SkippedObject{Namespace: name.Namespace, Name: name.Name, Message: one.skipped}
		out.SkippedExamples = append(out.SkippedExamples, example)
	}
	slices.SortFunc(out.SkippedExamples, func(a, b v1alpha1.SkippedObject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out.SkippedExamples = out.SkippedExamples[:min(len(out.SkippedExamples), mostSkipped)]
	out.Parents -= out.Skipped
	return out
}

// measure makes the metrics say what the counts are.
func (c *counts) measure(now v1alpha1.HistoryPolicyStatus) {
	objects.WithLabelValues(c.policy.Name, "recorded").Set(float64(now.Parents))
	objects.WithLabelValues(c.policy.Name, "skipped").Set(float64(now.Skipped))
	revisions.WithLabelValues(c.policy.Name).Set(float64(now.Revisions))
}

// unmeasure removes the metrics of the policy.
func (c *counts) unmeasure() {
	objects.DeletePartialMatch(prometheus.Labels{"policy": c.policy.Name})
	revisions.DeletePartialMatch(prometheus.Labels{"policy": c.policy.Name})
}

// write stores the counts if they are not what the status has.
func (c *counts) write(ctx context.Context) error {
	now := c.status()
	c.measure(now)
	if reflect.DeepEqual(now, c.written) {
		return nil
	}
	examples := now.SkippedExamples
	if examples == nil {
		examples = []v1alpha1.SkippedObject{} // a merge patch with null removes the field, and nothing leaves it
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.uid},
		"status": map[string]any{
			"parents": now.Parents, "revisions": now.Revisions, "skipped": now.Skipped, "skippedExamples": examples,
		},
	})
	if err != nil {
		return err
	}
	policy := &v1alpha1.HistoryPolicy{}
	policy.Name = c.policy.Name
	err = c.client.Status().Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch))
	if err := client.IgnoreNotFound(err); err != nil {
		return err
	}
	c.written = now
	return nil
}
