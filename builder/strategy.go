package builder

import (
	"cmp"
	"time"

	"github.com/cairn-dev/cairn/pass"
)

// This file is what an author says about the rollout of one parent, and which of it cannot be meant.

// Strategy is how the children of one parent are replaced. A number below zero, and MaxSurge for a kind whose children
// are not [Rule.NamedByRevision], are an event and a condition, InvalidStrategy, and nothing is done for the parent
// until it is changed.
type Strategy struct {
	// MaxUnavailable is how many places of rolled kinds may be without an available child at once. Zero means 1, unless
	// MaxSurge is more than zero: then it means none, and children are replaced by surge only.
	MaxUnavailable int
	// MaxSurge is how many places may have a new child beside the old one, which is deleted once the new one is
	// available. The rollout uses MaxUnavailable first, so that it goes on under a quota without room for one more
	// child. Leave MaxUnavailable zero for a parent that has to keep all of its children. Zero means none. Children
	// that are terminating do not count, as in the built-in kinds.
	MaxSurge int
	// Partition is how many places, the last ones of the rollout's order, keep what they have.
	Partition int
	// Ordered says that no child is replaced before all that come before it are updated and available.
	Ordered bool
	// OnDelete says that a child is replaced only when somebody deletes it.
	OnDelete bool
	// Paused stops the rollout where it is. Children that are missing are still made.
	Paused bool
	// ProgressDeadline is after how long without progress a rollout has failed: the condition Updated gets the reason
	// ProgressDeadlineExceeded, and Stalled is True. The annotation cairn.dev/progress-deadline of a parent comes first.
	// Zero means never. See [pass.Pass.NoteRollout].
	ProgressDeadline time.Duration
}

// strategyOf asks the author for the strategy of a parent.
func (r *reconciler[P]) strategyOf(parent P) (Strategy, error) {
	if r.author.Strategy == nil {
		return Strategy{}, nil
	}
	s := r.author.Strategy(parent.DeepCopyObject().(P))
	for _, number := range []struct {
		name  string
		value int
	}{{"MaxUnavailable", s.MaxUnavailable}, {"MaxSurge", s.MaxSurge}, {"Partition", s.Partition}} {
		if number.value < 0 {
			return s, pass.Refusef("InvalidStrategy", "Strategy of the controller %s returned %s %d, which is less than 0",
				r.author.Name, number.name, number.value)
		}
	}
	if s.ProgressDeadline < 0 {
		return s, pass.Refusef("InvalidStrategy", "Strategy of the controller %s returned ProgressDeadline %s, which is less than 0",
			r.author.Name, s.ProgressDeadline)
	}
	for _, k := range r.kinds {
		if s.MaxSurge > 0 && !k.applied && !k.named {
			return s, pass.Refusef("InvalidStrategy", "Strategy of the controller %s returned MaxSurge %d, which needs a second name for a %s "+
				"at the same place: add NamedByRevision to its rule", r.author.Name, s.MaxSurge, k.gvk.Kind)
		}
	}
	return s, nil
}

// budget is how many places may be without an available child.
func (s Strategy) budget() int {
	if s.MaxSurge > 0 {
		return s.MaxUnavailable
	}
	return cmp.Or(s.MaxUnavailable, 1)
}
