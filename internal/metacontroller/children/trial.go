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
	"github.com/cairn-dev/cairn/internal/metacontroller/refusal"
)

// This file finds out, before a child is deleted to be made again, whether it can be: by a dry run of the creation under
// the child's own name. The API server looks at the rules of the kind, at admission and at quotas before it finds that the
// name is taken. So that refusal says that all else is well, and what depends on the name is asked about the right one.

// trial returns nil if what is to stand in for a child can be made, and a *[HeldError] if the API server would refuse it.
// After any other error it is not known (retry).
func (p *Pass) trial(ctx context.Context, observed, desired *unstructured.Unstructured) error {
	leave, now := leaveOf(desired), p.Clock.Now()
	fresh, why := p.refused.of(replacement, observed, desired, now)
	switch {
	case fresh:
		return &HeldError{ReplacementRefused, p.names.Describe(desired), why}
	case why == nil && p.leaves.has(leave, now): // what was refused under its own name is not let go by another one's leave
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
	case fits(refusal.Quota(err), observed):
		return nil // of another child of the same content nothing is said
	case refusal.Answered(err) && !apierrors.IsNotFound(err):
		p.refused.add(replacement, observed, desired, err, now)
		return &HeldError{ReplacementRefused, p.names.Describe(desired), err}
	}
	return fmt.Errorf("ask whether %s can be created again: %w", p.names.Describe(desired), err)
}

// leaveFor is for how long a leave to make children is believed. What may be made can change at any time, so that it is
// short; a rollout in which one child after the other is made needs one question only, as each creation gives leave anew.
const leaveFor = 10 * time.Second

// leaveSize is how long the content of a child may be that is kept, and leaveCount how many are.
const leaveSize, leaveCount = 64 << 10, 64

// leaves remember what the API server has let be made of late: children that differ in nothing but their name.
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
	return ok && now.Before(until.(time.Time)) //nolint:forcetypeassert // add adds times
}

func (l *leaves) add(leave string, now time.Time) {
	if leave != "" {
		l.until.Add(leave, now.Add(leaveFor))
	}
}

// drop takes a leave back: a child of this content was refused.
func (l *leaves) drop(leave string) { l.until.Remove(leave) }
