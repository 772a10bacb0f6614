package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
)

// This file sends events as Metacontroller does: with the source, count and times of the older API, which `kubectl get
// events`, dashboards and scripts read. The newer API refuses events that have them, so events go to the older one,
// with the fields of the newer one as well.

// recording sends events from when it is started until it is stopped.
type recording struct {
	broadcaster events.EventBroadcaster
	log         logr.Logger
	cancel      context.CancelFunc
}

func newRecording(client typedcorev1.EventsGetter, log logr.Logger) *recording {
	return &recording{broadcaster: events.NewBroadcaster(sink{client}), log: log, cancel: func() {}}
}

// recorder returns the recorder of events. It drops them while none are sent.
func (r *recording) recorder(scheme *runtime.Scheme) events.EventRecorder {
	return r.broadcaster.NewRecorder(scheme, reporter)
}

// start begins to send.
func (r *recording) start() error {
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), r.log))
	r.cancel = cancel
	if _, err := r.broadcaster.StartLogging(r.log.V(1)); err != nil {
		return err
	}
	return r.broadcaster.StartRecordingToSinkWithContext(ctx)
}

// stop takes no more events, and drops those that could not be sent yet.
func (r *recording) stop() {
	r.broadcaster.Shutdown()
	r.cancel()
}

// sink stores events.
type sink struct{ client typedcorev1.EventsGetter }

var _ events.EventSink = sink{}

// Create stores a new event.
func (s sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	_, err := s.client.Events(e.Namespace).Create(ctx, older(e), metav1.CreateOptions{})
	return e, err
}

// Update replaces an event.
func (s sink) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	_, err := s.client.Events(e.Namespace).Update(ctx, older(e), metav1.UpdateOptions{})
	return e, err
}

// Patch notes that an event was repeated. data says so for the newer API; the fields have the same names in the older
// one.
func (s sink) Patch(ctx context.Context, e *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	patch := map[string]any{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Name, err)
	}
	counted := older(e)
	patch["count"], patch["lastTimestamp"] = counted.Count, counted.LastTimestamp
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Name, err)
	}
	_, err = s.client.Events(e.Namespace).Patch(ctx, e.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	return e, err
}

// older returns an event of the newer API as one of the older, with all of its fields.
func older(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Type:                e.Type,
		Reason:              e.Reason,
		Action:              e.Action,
		Message:             e.Note,
		EventTime:           e.EventTime,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
		Source:              corev1.EventSource{Component: e.ReportingController},
		FirstTimestamp:      metav1.NewTime(e.EventTime.Time),
		LastTimestamp:       metav1.NewTime(e.EventTime.Time),
		Count:               1,
	}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
		out.Count, out.LastTimestamp = e.Series.Count, metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	return out
}
