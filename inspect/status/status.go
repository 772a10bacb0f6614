package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/rollback"
)

// This file says how far a rollout is, and what it waits for: what the controller wrote into the parent's status, and
// the present state of the children. What it will do next is for the controller to decide, and its condition says so.

// Condition is one condition of a parent's status.
type Condition struct {
	Type, Status, Reason, Message string
}

// Share is the children that belong to one revision.
type Share struct {
	// Entry is the revision. It is nil for children that belong to none.
	Entry *inspect.Entry
	// Children is how many there are, including those that are to be created, and Available is how many of these are
	// available: they exist, are not terminating, and have passed the checks of their kind for long enough.
	Children, Available int
}

// Wait is a child that is not available.
type Wait struct {
	// Child is its kind and name, as in Pod web-0; with its namespace, Pod team/web-0, if the parent is in none.
	Child string
	// Entry is the revision that it belongs to, nil if there is none.
	Entry *inspect.Entry
	// For says what it lacks.
	For string
}

// Status is how far the rollout of one parent is.
type Status struct {
	Parent object.Parent
	// State is whether what the parent asks for has come about, and Reason says why, in one sentence.
	State  State
	Reason string
	// Controller is the CompositeController that runs the parent, empty for kinds that have a controller of their own.
	Controller string
	// Children is what the children are called, as in "5 pods". It is empty where nothing says what is made from the
	// parent. Then there are no counts.
	Children string
	// Conditions are those of the parent's status that are about revisions, in the order of [Reported]; if there are none,
	// all that the status has.
	Conditions []Condition
	// Counters are the numbers that the parent's controller reports at the top of its status, by name.
	Counters []Counter
	// Update is the revision that the parent asks for, nil if it is recorded in none.
	Update *inspect.Entry
	// Shares are the revisions that children belong to, and that which the parent asks for, oldest first; children that
	// belong to none come last.
	Shares []Share
	// Total is how many children exist or are to be created, and Available how many of these are.
	Total, Available int
	// Wanted is how many pods the parent asks for, 0 where that is not known.
	Wanted int
	// Rolled is how many of the children are of kinds that are rolled out, so that they belong to revisions, and Updated
	// is how many of these belong to Update.
	Rolled, Updated int
	// Runs says that the children are runs, as the Jobs of a CronJob: they are not replaced when the parent goes to
	// another revision.
	Runs bool
	// Waits are the children that are not available, by revision, kind and name. Children that cannot be created come
	// first.
	Waits []Wait
	// Held are sentences about children that the update strategy keeps as they are.
	Held []string
	// Warnings are sentences about what is unusual, or could not be read.
	Warnings []string

	lags      bool // the conditions are about an older spec
	childless bool // the revisions do not say what is made from them
	without   bool // the parent has no history
	empty     bool // there are no revisions

	terminating bool
	// rolledBack says that its last rollout failed and was undone, nil if not.
	rolledBack *rollback.Note

	now time.Time
}

// Reported are the types of the conditions about revisions: how far the rollout is, and whether the history can be
// kept.
var Reported = []string{"Updated", "HistoryHealthy"}

// Of says whether what parent asks for has come about, and how far its rollout is if it has a history; it need not
// have one. now is compared with the time since when a child has passed its checks, if a strategy asks for some time
// (minReadySeconds). Nothing is stored or changed.
//
// Errors: [*inspect.ChangedError] if parent keeps changing while it is read (ask again), or what the API server says.
func Of(ctx context.Context, i *inspect.Inspector, parent client.Object, now time.Time) (*Status, error) {
	r, err := i.Read(ctx, parent)
	if unknown := (*object.UnknownKindError)(nil); errors.As(err, &unknown) {
		return plain(ctx, i, parent, now, unknown.Hidden)
	} else if apierrors.IsForbidden(err) {
		return plain(ctx, i, parent, now, err)
	}
	if err != nil {
		return nil, err
	}
	m, err := r.Kind.Members(ctx, r.Parent, r.Revisions)
	if err != nil {
		return nil, fmt.Errorf("find the %s of %s: %w", r.Children, object.ParentOf(r.Kind, r.Parent), err)
	}
	o, err := object.Fields(r.Parent, r.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	r.CountMembers(m)
	s := statusOf(r, o, m, now)
	explain(ctx, i, s, o, m, now)
	return s, nil
}

// statusOf describes a parent, given as a tree, and its children, without the state.
func statusOf(r *inspect.Log, parent *unstructured.Unstructured, m *object.Members, now time.Time) *Status {
	h := r.History()
	s := &Status{
		Parent: h.Parent, Controller: h.Controller, Children: h.Children, Update: h.Current(), childless: h.Children == "",
		Conditions: reported(parent.Object), Counters: counters(parent.Object), Runs: r.Runs, Held: m.Held,
		Warnings: slices.Concat(h.Warnings, m.Doubts), now: now,
	}
	s.rolledBack, s.empty = inspect.RolledBack(parent), len(h.Entries) == 0
	if why := unobserved(parent.Object); why != "" && !r.Runs {
		s.lags, s.Warnings = true, append(s.Warnings, why)
	}
	if s.Children == "pods" {
		s.Wanted = wanted(parent.Object)
	}
	s.share(h, m, now)
	return s
}

// wanted is how many pods a parent asks for, 0 if it does not say.
func wanted(parent map[string]any) int {
	for _, path := range [][]string{{"spec", "replicas"}, {"status", "desiredNumberScheduled"}} {
		if n, found, err := unstructured.NestedInt64(parent, path...); err == nil && found {
			return int(n)
		}
	}
	return 0
}

// share counts the children by revision, and says which of them are not available.
func (s *Status) share(h *inspect.History, m *object.Members, now time.Time) {
	s.Total = len(m.Children)
	shares := make([]Share, len(h.Entries)+1) // the last one is that of children of no revision
	for n := range h.Entries {
		shares[n].Entry = &h.Entries[n]
	}
	slices.SortStableFunc(m.Children, func(a, b object.Member) int { return compareMembers(a, b, len(h.Entries)) })
	for _, child := range m.Children {
		share := &shares[len(shares)-1]
		if child.Of >= 0 {
			share = &shares[child.Of]
		}
		share.Children++
		if child.Rolled {
			s.Rolled++
		}
		if why := unavailableReason(child, now); why != "" {
			s.Waits = append(s.Waits, Wait{Child: nameOf(child), Entry: share.Entry, For: why})
			continue
		}
		share.Available++
		s.Available++
	}
	for _, share := range shares {
		current := share.Entry != nil && share.Entry.Current
		if current {
			s.Updated = share.Children
		}
		if current || share.Children > 0 {
			s.Shares = append(s.Shares, share)
		}
	}
}

// compareMembers sorts children by revision, those of no revision last, as if they had the index none.
func compareMembers(a, b object.Member, none int) int {
	index := func(m object.Member) int {
		if m.Of < 0 {
			return none
		}
		return m.Of
	}
	if d := index(a) - index(b); d != 0 {
		return d
	}
	switch {
	case nameOf(a) < nameOf(b):
		return -1
	case nameOf(a) > nameOf(b):
		return 1
	}
	return 0
}

// reported returns those conditions of a parent that are about revisions. If there are none, it returns all: they are
// of a controller that is not ours, and mean what that says.
func reported(parent map[string]any) []Condition {
	var all, kept []Condition
	for _, c := range conditionsOf(parent) {
		all = append(all, Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	for _, kind := range Reported {
		if n := slices.IndexFunc(all, func(c Condition) bool { return c.Type == kind }); n >= 0 {
			kept = append(kept, all[n])
		}
	}
	if len(kept) > 0 {
		return kept
	}
	return all
}

// unobserved says that a status is about an older spec than the parent's, or about none. Objects of a few built-in
// kinds have no generation, and no status; some controllers do not say which generation they have observed.
func unobserved(parent map[string]any) string {
	generation, _, _ := unstructured.NestedInt64(parent, "metadata", "generation")
	observed, found, err := unstructured.NestedInt64(parent, "status", "observedGeneration")
	switch {
	case err != nil || generation == 0 || observed >= generation || !found && reports(&unstructured.Unstructured{Object: parent}):
		return ""
	case !found:
		return "Its controller has not reported on it yet, or does not run."
	}
	return fmt.Sprintf("The conditions are about generation %d of the spec, which is at %d by now.", observed, generation)
}
