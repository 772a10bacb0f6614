package children

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// This file finds out, before a child is deleted to be recreated, whether that will work: by a dry run of the creation
// under the child's own name. The API server checks the rules of the kind, admission and quotas before it finds that
// the name is taken. So that error says that all else is well, and checks that depend on the name get the right one.

// trial returns nil if the replacement of a child can be created, and a *[HeldError] if the API server would refuse it.
// After any other error it is not known (retry).
func (p *Pass) trial(ctx context.Context, observed, desired *unstructured.Unstructured) error {
	leave, now := leaveOf(desired), p.Clock.Now()
	fresh, why := p.refused.of(replacement, observed, desired, now)
	switch {
	case fresh:
		return &HeldError{ReplacementRefused, p.names.Describe(desired), why}
	case why == nil && p.leaves.has(leave, now): // a leave for another name does not outweigh a refusal of this one
		return nil
	}
	o, err := p.made(desired)
	if err != nil {
		return err
	}
	err = p.writer(o).Client.Create(ctx, released(o, observed), client.DryRunAll)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		p.refused.forget(observed.GetUID())
		p.leaves.add(leave, now)
		return nil
	case fits(quota(err), observed):
		return nil // this says nothing about other children of the same content
	case answered(err) && !apierrors.IsNotFound(err):
		p.refused.add(replacement, observed, desired, err, now)
		return &HeldError{ReplacementRefused, p.names.Describe(desired), err}
	}
	return fmt.Errorf("ask whether %s can be created again: %w", p.names.Describe(desired), err)
}

// leaveFor is for how long a leave to create children holds. A policy can change at any time, so it is short; a rollout
// that recreates one child after the other needs one trial only, as each creation renews the leave.
const leaveFor = 10 * time.Second

// leaveSize is how long the content of a child may be to be kept, and leaveCount how many are kept.
const leaveSize, leaveCount = 64 << 10, 64

// leaves remember what was recently allowed to be created: children that differ in nothing but their name.
type leaves struct{ until *lru.Cache }

func newLeaves() *leaves { return &leaves{lru.New(leaveCount)} }

// leaveOf returns the content of a child without its name, empty if that is too long to be kept.
func leaveOf(desired *unstructured.Unstructured) string {
	content := maps.Clone(apply.Own(desired.Object))
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "name")
	content["metadata"] = metadata
	text, err := json.Marshal(content)
	if err != nil || len(text) > leaveSize {
		return ""
	}
	return string(text)
}

func (l *leaves) has(leave string, now time.Time) bool {
	until, ok := l.until.Get(leave)
	return ok && now.Before(until.(time.Time))
}

func (l *leaves) add(leave string, now time.Time) {
	if leave != "" {
		l.until.Add(leave, now.Add(leaveFor))
	}
}

// drop takes a leave back: a child of this content was refused.
func (l *leaves) drop(leave string) { l.until.Remove(leave) }
