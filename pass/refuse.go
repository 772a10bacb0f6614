package pass

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file refuses a parent that needs an edit first.

// RefusedError is the reason why a parent needs an edit, or its controller a correction, before a pass can act. A pass
// that ends with one is not retried, unless Retry is true because the same pass may succeed later.
type RefusedError struct {
	Reason string
	Err    error
	Retry  bool
}

// Refusef returns a [RefusedError] that is not retried.
func Refusef(reason, format string, args ...any) error {
	return &RefusedError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Selector returns a selector that selects something. The error is a [RefusedError]; the API server accepts no object
// with another selector.
func Selector(s *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || selector.Empty() {
		return nil, Refusef("SelectingAll",
			"spec.selector is empty and selects all pods, or is not valid; a valid selector that is not empty is required")
	}
	return selector, nil
}

// Error is the message of the condition.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Conditions returns the conditions of the parent of a pass.
func (e *RefusedError) Conditions(p *Pass) RolloutConditions {
	return p.NoteRollout(Rollout{Updated: metav1.Condition{
		Type: Updated, Status: metav1.ConditionFalse, Reason: e.Reason, Message: e.Error(), LastTransitionTime: metav1.NewTime(p.Now()),
	}})
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// refused reports the reason: an event, and a condition by [Config.Refused].
func (c *Controller) refused(ctx context.Context, p *Pass, why *RefusedError) error {
	p.Warn(nil, why.Reason, "Reconcile", "%v", why)
	err := c.Refused(ctx, p, why)
	if why.Retry {
		return Finished(why, err)
	}
	return err
}
