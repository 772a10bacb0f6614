package hosting

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

	"github.com/cairn-dev/cairn/internal/watching"
)

// This file says in events and in the condition Ready whether a controller runs.

// Ready is the condition of an object that describes a controller: whether that one runs.
const Ready = "Ready"

// The reasons of [Ready], besides those of an [Error].
const (
	// Running: passes are run.
	Running = "Running"
	// Starting: it is built, or what it watches is listed; the message says what it is waiting for.
	Starting = "Starting"
	// NotServed: the API server does not serve a resource that it names.
	NotServed = "ResourceNotServed"
	// NotSynced: a resource cannot be listed.
	NotSynced = "ResourceNotListed"
	// CreateError: it could not be built for another reason.
	CreateError = "CreateError"
)

// Stopped is the reason of an event, besides those of conditions: it has ended.
const Stopped = "Stopped"

// told is what was written last, and over which version of the object.
type told struct {
	version   string
	condition metav1.Condition
}

// report writes the condition of o if it differs, and an event about a failure that was not there before.
func (s *supervisor[T]) report(ctx context.Context, h *hosted[T], o T, now state) error {
	status := s.Status(o)
	want := s.condition(now)
	if want.Reason == Running && s.Known != nil {
		want.Message += "; " + s.Known(o)
	}
	want.ObservedGeneration = o.GetGeneration()
	told := told{version: o.GetResourceVersion(), condition: want}
	if h.told == told {
		return nil // the cache has not seen it, or the API server does not keep it (Metacontroller's CRDs)
	}
	was := h.told.condition
	if now.err != nil && (was.Reason != want.Reason || was.Message != want.Message) {
		s.failed(h.object, now.err)
	}
	conditions := append([]metav1.Condition(nil), status.Conditions...)
	want.LastTransitionTime = metav1.NewTime(s.Clock.Now())
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
		"status":   Status{ObservedGeneration: o.GetGeneration(), Conditions: conditions},
	})
	if err != nil {
		return err
	}
	target := newObject[T]()
	target.SetName(o.GetName())
	target.SetNamespace(o.GetNamespace())
	err = s.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	// Metacontroller's CRDs have no status subresource. Then, and if the object was deleted, nothing can be written.
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write status of %s %s: %w", s.kind, o.GetName(), err)
	}
	return nil
}

// condition says whether a controller runs, and if not, why.
func (s *supervisor[T]) condition(now state) metav1.Condition {
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse}
	switch {
	case now.phase == running && now.err == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, Running, fmt.Sprintf("the %s runs", s.Noun)
	case now.err != nil: // and while it is tried again
		c.Reason, c.Message = reason(now.err), now.err.Error()
	case now.phase == ended:
		c.Reason, c.Message = CreateError, fmt.Sprintf("the %s ended by itself", s.Noun)
	case now.waiting != nil && (denial(now.waiting) != nil || errors.As(now.waiting, new(*watching.LostError))):
		c.Reason, c.Message = reason(now.waiting), now.waiting.Error() // waiting does not help
	case now.waiting != nil:
		c.Reason, c.Message = Starting, now.waiting.Error()
	default:
		c.Reason, c.Message = Starting, fmt.Sprintf("the %s is being built", s.Noun)
	}
	return c
}

// reason returns the word for a controller that could not be started.
func reason(err error) string {
	var ours *Error
	var lost *watching.LostError
	switch {
	case errors.As(err, &ours):
		return ours.Reason
	case errors.As(err, &lost) && lost.Forbidden:
		return NotSynced
	case lost != nil, meta.IsNoMatchError(err):
		return NotServed
	case errors.Is(err, watching.ErrNotSynced):
		return NotSynced
	default:
		return CreateError
	}
}

// failed sends an event about a controller that does not run.
func (s *supervisor[T]) failed(o T, err error) {
	var ours *Error
	switch {
	case errors.As(err, new(*watching.LostError)):
		s.eventf(o, corev1.EventTypeWarning, Stopped, "Stopped %s: %s: %s", s.Noun, o.GetName(), err)
	case !errors.As(err, &ours) || ours.Event == "":
		s.eventf(o, corev1.EventTypeWarning, CreateError, "Cannot create new %s: %s", s.Noun, err)
	default:
		s.eventf(o, corev1.EventTypeWarning, ours.Event, "%s", err)
	}
}

// eventf sends an event about an object that describes a controller.
func (s *supervisor[T]) eventf(o T, kind, reason, format string, values ...any) {
	s.Recorder.Eventf(o, nil, kind, reason, "Host", format, values...)
}
