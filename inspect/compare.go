package inspect

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/revision"
)

// This file compares two revisions of one parent, or one of them with the parent as it is.

// ErrNothingToCompare says that there is no previous revision: none that can be read and differs from the spec.
var ErrNothingToCompare = errors.New("there is no other revision to compare with")

// Find picks a revision out of a history; [History.Find] and [History.FindName] do so by number and by name.
type Find func(*History) (Entry, error)

// Operand is one of the two states that are compared.
type Operand struct {
	// Find picks a revision. If it is nil, the other fields say which state is meant, and the zero value stands for the
	// object as it is.
	Find Find
	// Before is how many revisions before the current one: 1 is the one before.
	Before int
	// Given is an object that the caller has, as a manifest says it, and Title what it is called.
	Given map[string]any
	Title string
}

// Difference is what differs between two states of what a history records of a parent.
type Difference struct {
	Parent object.Parent
	// From and To are the revisions that were compared; nil stands for the object as it is, or for what the caller gave.
	From, To *Entry
	// A and B are what the two states are called, and Before and After are their contents as YAML, with secrets masked.
	A, B          string
	Before, After string
	// Diff is a unified diff, as YAML, in what the history records; empty if nothing differs. Changes is the same in
	// words.
	Diff    string
	Changes []content.Change
	// Warnings are sentences about what is unusual about either.
	Warnings []string
}

// Diff compares the state a with the state b. A nil a stands for the newest revision that differs from the object as it
// is: the one to which an undo would go. Nothing is stored or changed.
//
// Errors: [ErrNothingToCompare], [*NotFoundError], [*AmbiguousError], [*UnreadableError], those of [Inspector.History].
func (i *Inspector) Diff(ctx context.Context, parent client.Object, a *Operand, b Operand) (*Difference, error) {
	r, err := i.Read(ctx, parent)
	if err != nil {
		return nil, err
	}
	if r.Lost != nil && a == nil {
		return nil, r.Lost
	}
	return r.diff(ctx, a, b)
}

func (r *Log) diff(ctx context.Context, a *Operand, b Operand) (*Difference, error) {
	h := r.History()
	d := &Difference{Parent: h.Parent, Warnings: r.warnings}
	var err error
	if a == nil {
		if d.From, err = r.before(ctx, h, d); err != nil {
			return nil, err
		}
		a = &Operand{}
	} else if d.From, err = a.entry(h); err != nil {
		return nil, err
	}
	if d.To, err = b.entry(h); err != nil {
		return nil, err
	}
	target := r.Target // what is compared of an object is what the revision beside it holds
	for _, e := range []*Entry{d.To, d.From} {
		if e != nil {
			target = e.stored.Target
		}
	}
	var before, after []byte
	if d.A, before, err = r.state(h, *a, d.From, d.To, target); err == nil {
		d.B, after, err = r.state(h, b, d.To, d.From, target)
	}
	if err != nil {
		return nil, fmt.Errorf("compare two states of %s: %w", d.Parent, err)
	}
	err = d.draw(r.mask, before, after)
	return d, err
}

// draw writes the two contents, and what differs between them.
func (d *Difference) draw(mask content.Masker, before, after []byte) error {
	d.Changes = mask.Changes(before, after)
	before, after, err := mask.Two(before, after)
	if err != nil {
		return err
	}
	textA, textB, err := content.Texts(before, after)
	if err != nil {
		return err
	}
	d.Before, d.After = string(textA), string(textB)
	d.Diff, err = content.Unified(d.A, before, d.B, after)
	return err
}

// before is the newest revision that differs from the object.
func (r *Log) before(ctx context.Context, h *History, d *Difference) (*Entry, error) {
	found, err := previous(h, func(e Entry) (bool, error) { return r.same(ctx, e) })
	if errors.Is(err, ErrNothingToUndo) {
		return nil, fmt.Errorf("%s has no revision that can be read and differs from its spec: %w", h.Parent, ErrNothingToCompare)
	}
	if err != nil {
		return nil, err
	}
	d.Warnings = append(d.Warnings, passedOver(*found, h)...)
	return found, nil
}

// entry finds the revision that a state names, nil if it names none.
func (s Operand) entry(h *History) (*Entry, error) {
	find := s.Find
	if s.Before > 0 {
		find = func(h *History) (Entry, error) { return h.before(s.Before) }
	}
	if find == nil {
		return nil, nil //nolint:nilnil // it is no revision
	}
	e, err := legible(h, find)
	return &e, err
}

// state returns what a state is called, and its content: of the object, in the version of the entry that it is compared
// with. Where a controller of others has filled in the object, that is what the revision of the spec holds.
func (r *Log) state(h *History, s Operand, e, with *Entry, target *revision.Target) (title string, data []byte, err error) {
	switch {
	case e != nil:
		data, err = e.content()
		return e.String(), data, err
	case s.Given != nil:
		data, err = content.Recorded(target, s.Given)
		return s.Title, data, err
	}
	_, live := r.beside(with)
	if now := h.Current(); r.Foreign && now != nil && now.Unreadable == nil {
		data, err = now.content()
	} else {
		data, err = content.Recorded(target, live)
	}
	return object.ParentOf(r.Kind, r.Parent).String() + " now", data, err
}

// before returns the revision that is n before the current one. The current one counts as the newest, whatever its
// number is: its controller renumbers it, if it has not yet.
func (h *History) before(n int) (Entry, error) {
	others := h.only(func(e Entry) bool { return !e.Current }).Entries
	if len(others) < n {
		return Entry{}, fmt.Errorf("%s has %d revisions before the current one, not %d: %w", h.Parent, len(others), n, ErrNothingToCompare)
	}
	return others[len(others)-n], nil
}

// legible finds a revision and makes sure that it can be read.
func legible(h *History, find Find) (Entry, error) {
	e, err := find(h)
	if err == nil && e.Unreadable != nil {
		err = &UnreadableError{Parent: h.Parent, Entry: e}
	}
	return e, err
}
