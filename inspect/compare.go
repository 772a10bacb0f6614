package inspect

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file compares two revisions of one parent, or one of them with the parent as it is.

// ErrNothingToCompare says that there is no previous revision: none that can be read and differs from the spec.
var ErrNothingToCompare = errors.New("there is no other revision to compare with")

// Find picks a revision out of a history; [History.Find] and [History.FindName] do so by number and by name.
type Find func(*History) (Entry, error)

// Difference is what differs between two states of what a history records of a parent.
type Difference struct {
	Parent Parent
	// From and To are the revisions that were compared; a nil To stands for the object as it is.
	From Entry
	To   *Entry
	// Diff is a unified diff, as YAML, in what From holds; empty if nothing differs.
	Diff string
	// Warnings are sentences about what is unusual about either.
	Warnings []string
}

// Titles returns what the two sides of a difference are called.
func (d *Difference) Titles() (from, to string) {
	to = d.Parent.String() + " now"
	if d.To != nil {
		to = d.To.String()
	}
	return d.From.String(), to
}

// Diff compares the revision that from picks with the one that to picks. A nil to stands for the object as it is, a nil
// from for the newest revision that differs from that: the one to which an undo would go. Nothing is stored or changed.
//
// Errors: [ErrNothingToCompare], [*NotFoundError], [*AmbiguousError], [*UnreadableError], those of [Inspector.History].
func (i *Inspector) Diff(ctx context.Context, parent client.Object, from, to Find) (*Difference, error) {
	r, err := i.read(ctx, parent)
	if err != nil {
		return nil, err
	}
	if r.lost != nil && from == nil {
		return nil, r.lost
	}
	return r.diff(ctx, from, to)
}

func (r *reading) diff(ctx context.Context, from, to Find) (*Difference, error) {
	h := r.history()
	d := &Difference{Parent: h.Parent, Warnings: r.warnings}
	if from == nil {
		before, err := previous(h, func(e Entry) (bool, error) { return r.same(ctx, e) })
		if errors.Is(err, ErrNothingToUndo) {
			return nil, fmt.Errorf("%s has no revision that can be read and differs from its spec: %w", h.Parent, ErrNothingToCompare)
		}
		if err != nil {
			return nil, err
		}
		d.From = *before
		d.Warnings = append(d.Warnings, passedOver(d.From, h)...)
	} else {
		var err error
		if d.From, err = legible(h, from); err != nil {
			return nil, err
		}
	}
	after, err := recorded(d.From.stored.target, r.parent)
	if to != nil {
		var e Entry
		if e, err = legible(h, to); err != nil {
			return nil, err
		}
		d.To = &e
		after, err = e.Content()
	}
	if err != nil {
		return nil, fmt.Errorf("compare two states of %s: %w", d.Parent, err)
	}
	before, err := d.From.Content()
	if err != nil {
		return nil, err
	}
	titleBefore, titleAfter := d.Titles()
	d.Diff, err = unified(titleBefore, before, titleAfter, after)
	return d, err
}

// legible finds a revision and makes sure that it can be read.
func legible(h *History, find Find) (Entry, error) {
	e, err := find(h)
	if err == nil && e.Unreadable != nil {
		err = &UnreadableError{Parent: h.Parent, Entry: e}
	}
	return e, err
}
