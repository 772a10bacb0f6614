package status

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file finds out why a child does not exist that should: a quota, a policy or a webhook has refused it, and no
// object says so but the parent, in a condition, or an event about it. It also chooses the child that keeps the parent
// most.

// explain fills in the state and, if the parent is not done, what was refused.
func explain(ctx context.Context, i *inspect.Inspector, s *Status, parent *unstructured.Unstructured, m *object.Members, now time.Time) {
	blocker := s.blocker(m, now)
	s.settle(parent, blocker)
	if s.State == Done || s.terminating {
		return
	}
	refused, trouble := refusal(ctx, i.Client(), s, parent, m)
	switch {
	case refused != "":
		s.Waits = append([]Wait{{Child: "new " + cmp.Or(s.Children, "children"), For: refused}}, s.Waits...)
		s.settle(parent, &s.Waits[0])
	case trouble != "" && blocker == nil && podBlocker(parent) == "":
		s.Reason += "; " + trouble
	}
}

// blocker returns the wait that says most: about a child that is there to stay, if there is one.
func (s *Status) blocker(m *object.Members, now time.Time) *Wait {
	waits := 0
	for _, child := range m.Children { // in the order of the waits
		if unavailableReason(child, now) == "" {
			continue
		}
		if child.Object != nil && child.Object.GetDeletionTimestamp() == nil {
			return &s.Waits[waits]
		}
		waits++
	}
	if len(s.Waits) > 0 {
		return &s.Waits[0]
	}
	return nil
}

// refusal says why children cannot be created, and else what other trouble the newest event is about; empty if nobody
// says so. Our controllers say it in their condition. Of others an event may: events stay for an hour.
func refusal(
	ctx context.Context, c client.Client, s *Status, parent *unstructured.Unstructured, m *object.Members,
) (refused, trouble string) {
	if c := readiness.FindCondition(parent.Object, "ReplicaFailure"); c != nil && c.Status == string(corev1.ConditionTrue) {
		return sentence(c.Reason, c.Message), ""
	}
	if updated := s.condition(Reported[0]); updated != nil {
		if updated.Reason == "RolloutFailing" {
			return updated.Message, ""
		}
		return "", ""
	}
	if s.Wanted > 0 && s.Total >= s.Wanted && len(s.Waits) > 0 {
		return "", "" // all are there, so that one of them says more than an event of before
	}
	return newestEvent(ctx, c, s, parent, m)
}

// newestEvent is what the newest warning about parent says, unless a child was created since.
func newestEvent(
	ctx context.Context, c client.Client, s *Status, parent *unstructured.Unstructured, m *object.Members,
) (refused, trouble string) {
	var newest time.Time
	for _, child := range m.Children {
		if child.Object != nil && child.Object.GetCreationTimestamp().After(newest) {
			newest = child.Object.GetCreationTimestamp().Time
		}
	}
	events, err := warnings(ctx, c, parent)
	if err != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("Events about it could not be read: %v.", err))
		return "", ""
	}
	var last *corev1.Event
	for n := range events {
		if at := happened(&events[n]); !at.Before(newest) {
			newest, last = at, &events[n]
		}
	}
	switch {
	case last == nil:
		return "", ""
	case strings.Contains(last.Reason, "Create"):
		return sentence(last.Reason, last.Message), ""
	}
	return "", sentence(last.Reason, last.Message)
}

// warnings returns the events of type Warning about an object.
func warnings(ctx context.Context, c client.Client, o *unstructured.Unstructured) ([]corev1.Event, error) {
	var found corev1.EventList
	about := client.MatchingFields{"involvedObject.uid": string(o.GetUID()), "type": corev1.EventTypeWarning}
	err := c.List(ctx, &found, client.InNamespace(o.GetNamespace()), about)
	return found.Items, err
}

// happened returns when an event was last seen: the old and the new API write different fields.
func happened(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
