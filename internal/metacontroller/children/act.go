package children

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to children.

// Work is what one pass does to children.
type Work struct {
	Deletes []Deletion
	Updates []Update
	Creates []Creation
}

// Deletion is a child to delete, and why.
type Deletion struct {
	Observed *unstructured.Unstructured
	// Instead is what is to replace it, nil if nothing is.
	Instead *unstructured.Unstructured
	Reason  string
}

// Update is a child to change in place, and why.
type Update struct {
	Pair

	Reason string
}

// Creation is a child to create, and why.
type Creation struct {
	Desired *unstructured.Unstructured
	Reason  string
}

// Act does the work: replacements first, then deletions, updates, and creations. A failure does not stop the rest,
// unless that would fail too. One of the errors may be [pass.IsStale]: then the work rests on a stale read. A
// *[HeldError] among them says that a child stays, because it could not be recreated.
func (p *Pass) Act(ctx context.Context, w Work) error {
	var replaced, surplus []Deletion
	for _, d := range w.Deletes {
		if d.Instead != nil {
			replaced = append(replaced, d)
		} else {
			surplus = append(surplus, d)
		}
	}
	still := pass.Unedited(ctx, p.Cache, p.parent())
	return errors.Join(
		each(replaced, func(d Deletion) schema.GroupKind { return kindOf(d.Observed) }, still,
			func(d Deletion) error { return p.replace(ctx, d) }),
		pass.Each(surplus, func(d Deletion) error { return p.delete(ctx, d) }),
		each(w.Updates, func(u Update) schema.GroupKind { return kindOf(u.Observed) }, still,
			func(u Update) error { return p.update(ctx, u) }),
		each(w.Creates, func(c Creation) schema.GroupKind { return kindOf(c.Desired) }, still,
			func(c Creation) error { return p.create(ctx, c) }),
	)
}

func kindOf(o *unstructured.Unstructured) schema.GroupKind { return o.GroupVersionKind().GroupKind() }

// replace deletes a child if it can be recreated. If it is deleted at once, it is recreated in the same pass.
func (p *Pass) replace(ctx context.Context, d Deletion) error {
	if err := p.trial(ctx, d.Observed, d.Instead); err != nil {
		return err
	}
	if err := p.delete(ctx, d); err != nil || !GoesAtOnce(d.Observed) {
		return err
	}
	return p.create(ctx, Creation{d.Instead, d.Reason})
}

// delete deletes the child that the work was decided on, unless it changed since.
func (p *Pass) delete(ctx context.Context, d Deletion) error {
	deleted, err := p.writer(d.Observed).Delete(ctx, p.parent(), d.Observed)
	if err != nil {
		return fmt.Errorf("delete %s: %w", p.names.Describe(d.Observed), err)
	}
	if !deleted {
		return fmt.Errorf("%w: %s changed or went before it could be deleted", ownership.ErrStale, p.names.Describe(d.Observed))
	}
	log.FromContext(ctx).V(1).Info("Deleted", "child", p.names.Describe(d.Observed), "reason", d.Reason)
	return nil
}

// GoesAtOnce reports whether a delete removes a child at once: it has no finalizer, and no kubelet has to stop it.
func GoesAtOnce(child *unstructured.Unstructured) bool {
	if len(child.GetFinalizers()) > 0 {
		return false
	}
	node, _, _ := unstructured.NestedString(child.Object, "spec", "nodeName")
	return node == "" || kindOf(child) != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind()
}

// update changes exactly the child that the work was decided on. A conflict says that another writer was first.
func (p *Pass) update(ctx context.Context, u Update) error {
	out, err := p.change(ctx, u.Pair)
	switch {
	case pass.IsStale(err):
		return err
	case err != nil:
		return fmt.Errorf("update %s: %w", p.names.Describe(u.Desired), err)
	case out == nil:
		return nil
	}
	p.wrote(out)
	log.FromContext(ctx).V(1).Info("Updated", "child", p.names.Describe(u.Desired), "reason", u.Reason)
	return nil
}

// change returns the child as stored, nil if nothing was to be changed.
func (p *Pass) change(ctx context.Context, w Pair) (*unstructured.Unstructured, error) {
	if p.applier != nil {
		return p.applier.apply(ctx, w.Observed, p.applied(w.Desired))
	}
	result, err := p.Memo.Child(w.Variant, w.Observed, w.Desired, p.servedFor(w))
	if err != nil || !result.Changed {
		return nil, err
	}
	out, err := p.patch(ctx, w.Observed, result)
	if err == nil {
		p.remember(out, w.Desired)
	}
	return out, err
}

// create creates one child. It never takes over an existing one: that is for the adoption rules to decide.
func (p *Pass) create(ctx context.Context, c Creation) error {
	made, err := p.made(c.Desired)
	if err != nil {
		return err
	}
	// One of ours that is not terminating was created by an earlier request whose response was lost.
	how, err := p.writer(made).Create(ctx, p.parent(), made, p.names.Ours)
	switch {
	case err != nil:
		if answered(err) {
			p.leaves.drop(leaveOf(c.Desired))
		}
		return fmt.Errorf("create %s: %w", p.names.Describe(c.Desired), err)
	case how == ownership.Taken:
		return p.names.Refused(ctx, p.Live, made)
	case how != ownership.Created:
		return nil
	}
	log.FromContext(ctx).V(1).Info("Created", "child", p.names.Describe(c.Desired), "reason", c.Reason)
	p.leaves.add(leaveOf(c.Desired), p.Clock.Now())
	return p.learn(ctx, made, c.Desired)
}

// learn keeps what the response to a creation says.
func (p *Pass) learn(ctx context.Context, made, desired *unstructured.Unstructured) error {
	if p.applier == nil {
		p.remember(made, desired)
		return nil
	}
	err := p.applier.migrate(ctx, made)
	p.wrote(made)
	return err
}
