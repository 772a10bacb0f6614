package pass_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// What becomes of a pass that could not record its revision, in words and in what is retried.

func TestHealthyAndRetry(t *testing.T) {
	forbidden := errors.New("record revision web-1: forbidden")
	for name, c := range map[string]struct {
		recorded pass.Recorded
		limit    *int32
		reason   string
		retried  bool
	}{
		"recorded":         {recorded: pass.Recorded{Update: &revision.Revision{}}, reason: "Recorded"},
		"refused":          {recorded: pass.Recorded{Failed: forbidden}, reason: "RecordFailed", retried: true},
		"too large":        {recorded: pass.Recorded{Failed: fmt.Errorf("x: %w", &history.TooLargeError{Bytes: 2 << 20})}, reason: "SnapshotTooLarge"},
		"no number":        {recorded: pass.Recorded{Failed: fmt.Errorf("x: %w", &revision.NumberError{Revision: "web-1"})}, reason: "HistoryFull"},
		"an unreadable":    {recorded: pass.Recorded{Undecodable: []revision.Revision{{Name: "web-1", Err: errBoom}}}, reason: "RevisionUnreadable"},
		"a negative limit": {limit: new(int32(-1)), reason: "NegativeHistoryLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.recorded.Healthy(c.limit)
			if got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != (c.reason == "Recorded") || (c.recorded.Retry() != nil) != c.retried {
				t.Errorf("%+v, retried for %v", got, c.recorded.Retry())
			}
		})
	}
}

// TestSetHealthy: the condition is absent as long as nothing was ever wrong, and one event says that something is.
func TestSetHealthy(t *testing.T) {
	w := newWorld(t, nil, web())
	var conditions []metav1.Condition
	set := func(r pass.Recorded) {
		w.run = func(_ context.Context, p *pass.Pass) error {
			r.SetHealthy(p, &conditions, nil, start)
			return nil
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	set(pass.Recorded{Update: &revision.Revision{}})
	if len(conditions) != 0 {
		t.Errorf("%+v", conditions)
	}
	unreadable := pass.Recorded{Undecodable: []revision.Revision{{Name: "web-1", Err: errBoom}}}
	set(unreadable)
	set(unreadable)
	if len(conditions) != 1 || conditions[0].Status != metav1.ConditionFalse || len(w.events.Events("RevisionUnreadable")) != 1 {
		t.Errorf("%+v, events %v", conditions, w.events.Events())
	}
	set(pass.Recorded{Update: &revision.Revision{}})
	if conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("%+v", conditions)
	}
}

// TestNewest: lost children come back from the newest revision that others come from. One that somebody planted with a
// higher number is none, and neither is one that nothing can be made from.
func TestNewest(t *testing.T) {
	readable, err := history.DaemonSet().Target().Snapshot(&appsv1.DaemonSet{})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(name string, change ...func(*revision.Revision)) revision.Revision {
		r := revision.Revision{Name: name, Hash: name, Snapshot: readable}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	r := pass.Recorded{Entries: []revision.Revision{
		entry("one"), entry("two"), entry("planted"),
		entry("unlabelled", func(r *revision.Revision) { r.Unlabelled = true }),
		entry("web-three", func(r *revision.Revision) { r.Hash = "three" }),
		entry("three", func(r *revision.Revision) { r.Hash = "three-uid" }), // its name is a hash, and no child comes from it
		entry("unreadable", func(r *revision.Revision) { r.Snapshot = nil }),
		entry("deleted", func(r *revision.Revision) { r.Deleting = true }),
	}}
	genuine := func(e revision.Revision) bool { return e.Name != "three" && e.Name != "web-three" }
	for live, want := range map[string]string{"one": "one", "two": "two", "three": "web-three", "gone": "planted", "unlabelled": "unlabelled", "unreadable": "planted"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"hash": live}}}
		pods := (&pass.Children[*corev1.Pod]{Label: "hash"}).Claimed(nil, nil, []*corev1.Pod{pod})
		if got := r.Newest([]pass.Family{pods}, genuine); got == nil || got.Name != want {
			t.Errorf("with children of %s: %+v, want %s", live, got, want)
		}
	}
}
