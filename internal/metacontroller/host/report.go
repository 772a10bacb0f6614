package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
)

// This file says in events and in the condition Ready whether a controller runs.

// Ready is the condition of a CompositeController or DecoratorController that says whether it runs.
const Ready = "Ready"

// The reasons of [Ready], besides those of a [hook.Error] and an [Error].
const (
	// Running: passes are run.
	Running = "Running"
	// Starting: it is built, or what it watches is listed; the message says what it is waiting for.
	Starting = "Starting"
	// NotServed: the API server does not serve a resource that it names.
	NotServed = "ResourceNotServed"
	// NotSynced: a resource cannot be listed.
	NotSynced = "ResourceNotListed"
	// NoStatus: its parents have no status subresource.
	NoStatus = "NoStatusSubresource"
	// CreateError: it could not be built for another reason.
	CreateError = "CreateError"
)

// Reasons of events, besides those of conditions.
const (
	// Stopped: it has ended.
	Stopped = "Stopped"
	// SyncError: it cannot be run as it is (Metacontroller).
	SyncError = "SyncError"
)

// told is what was written last, and over which version of the object.
type told struct {
	version   string
	condition metav1.Condition
}

// report writes the condition of o if it differs, and an event about a failure that was not there before.
func (s *supervisor[T]) report(ctx context.Context, h *hosted[T], o T, now state) error {
	status := statusOf(o)
	if status == nil {
		return nil
	}
	want := condition(now)
	want.ObservedGeneration = o.GetGeneration()
	told := told{version: o.GetResourceVersion(), condition: want}
	if h.told == told {
		return nil // the cache has not seen it, or the API server does not keep it (Metacontroller's CRDs)
	}
	was := h.told.condition
	if now.err != nil && now.phase != running && (was.Reason != want.Reason || was.Message != want.Message) {
		s.failed(h.object, now.err)
	}
	conditions := append([]metav1.Condition(nil), status.Conditions...)
	want.LastTransitionTime = metav1.NewTime(s.env.Clock.Now())
	if meta.SetStatusCondition(&conditions, want) || status.ObservedGeneration != o.GetGeneration() {
		if err := s.write(ctx, o, conditions); err != nil {
			return err
		}
	}
	h.told = told
	return nil
}

// write patches the status of o, if that is still the object that was read.
func (s *supervisor[T]) write(ctx context.Context, o T, conditions []metav1.Condition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.GetUID()},
		"status":   v1alpha1.ControllerStatus{ObservedGeneration: o.GetGeneration(), Conditions: conditions},
	})
	if err != nil {
		return err
	}
	target := newObject[T]()
	target.SetName(o.GetName())
	target.SetNamespace(o.GetNamespace())
	err = s.env.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	// Metacontroller's CRDs have no status subresource. Then, and if the object was deleted, nothing can be written.
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write status of %s %s: %w", s.kind, o.GetName(), err)
	}
	return nil
}

// statusOf returns what the status of an object that describes a controller says of it, nil for another one.
func statusOf(o client.Object) *v1alpha1.ControllerStatus {
	switch o := o.(type) {
	case *v1alpha1.CompositeController:
		return &o.Status
	case *v1alpha1.DecoratorController:
		return &o.Status
	case *cairn.HistoryPolicy:
		return &v1alpha1.ControllerStatus{ObservedGeneration: o.Status.ObservedGeneration, Conditions: o.Status.Conditions}
	default:
		return nil
	}
}

// condition says whether a controller runs, and if not, why.
func condition(now state) metav1.Condition {
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse}
	switch {
	case now.phase == running:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, Running, "the controller runs"
	case now.err != nil: // and while it is tried again
		c.Reason, c.Message = reason(now.err), now.err.Error()
	case now.phase == ended:
		c.Reason, c.Message = CreateError, "the controller ended by itself"
	case now.waiting != nil:
		c.Reason, c.Message = Starting, now.waiting.Error()
	default:
		c.Reason, c.Message = Starting, "the controller is being built"
	}
	return c
}

// reason returns the word for a controller that could not be started.
func reason(err error) string {
	var ours *Error
	var hooks *hook.Error
	var lost *watch.LostError
	switch {
	case errors.As(err, &ours):
		return ours.Reason
	case errors.As(err, &hooks):
		return string(hooks.Reason)
	case errors.As(err, &lost) && lost.Forbidden:
		return NotSynced
	case lost != nil, meta.IsNoMatchError(err):
		return NotServed
	case errors.Is(err, watch.ErrNotSynced):
		return NotSynced
	default:
		return CreateError
	}
}

// failed sends an event about a controller that does not run.
func (s *supervisor[T]) failed(o T, err error) {
	var ours *Error
	switch {
	case errors.As(err, new(*watch.LostError)):
		s.eventf(o, corev1.EventTypeWarning, Stopped, "Stopped controller: %s: %s", o.GetName(), err)
	case !errors.As(err, &ours) || ours.Event == "":
		s.eventf(o, corev1.EventTypeWarning, CreateError, "Cannot create new controller: %s", err)
	default:
		s.eventf(o, corev1.EventTypeWarning, ours.Event, "%s", err)
	}
}

// eventf sends an event about an object that describes a controller.
func (s *supervisor[T]) eventf(o T, kind, reason, format string, values ...any) {
	s.env.Recorder.Eventf(o, nil, kind, reason, "Host", format, values...)
}
