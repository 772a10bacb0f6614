package builder

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file is what a plan sees of one place: which children it has from which revision, and which of them is one too
// many. It is pure.

// slot is a place with its children sorted.
type slot struct {
	*place

	// old and updated are the children that are not terminating: those of other revisions, and those of the update
	// revision. The first of each is the one that stays. terminating says that there are others.
	old, updated []*owned
	terminating  bool
	// held says that the place keeps what it has.
	held bool
}

func (p *planner) slotOf(i int) slot {
	at := &p.places[i]
	s := slot{place: at, held: p.update == "" || i >= len(p.places)-p.strategy.Partition}
	var alive []*owned
	for _, c := range at.children {
		if c.terminating {
			s.terminating = true
		} else {
			alive = append(alive, c)
		}
	}
	s.old, s.updated = pass.ByRevision(alive, func(c *owned) bool { return p.update != "" && c.revision == p.update }, p.isAltered)
	p.rank(s.old)
	p.rank(s.updated)
	return s
}

// rank sorts children of one place, the one that stays first: what is available, then what is ready, then what comes
// from the revision that lost children come back from, so that one of a revision that was only on its way is deleted
// first; then by name.
func (p *planner) rank(children []*owned) {
	slices.SortFunc(children, func(a, b *owned) int {
		return cmp.Or(
			pass.TrueFirst(a.available, b.available), pass.TrueFirst(a.ready, b.ready),
			pass.TrueFirst(a.revision == p.older, b.revision == p.older),
			cmp.Compare(a.object.GetName(), b.object.GetName()),
		)
	})
}

// alive are the children that are not terminating.
func (s *slot) alive() []*owned { return slices.Concat(s.updated, s.old) }

// empty reports whether a child is to be made because there is none. With surge, one that is terminating is nothing to
// wait for.
func (s *slot) empty(strategy Strategy) bool {
	if s.terminating && (!s.named || strategy.MaxSurge == 0) {
		return false
	}
	return len(s.old)+len(s.updated) == 0
}

func (s *slot) available() bool {
	is := func(c *owned) bool { return c.available }
	return slices.ContainsFunc(s.old, is) || slices.ContainsFunc(s.updated, is)
}

// child returns the child of that name.
func (s *slot) child(name string) *owned {
	i := slices.IndexFunc(s.children, func(c *owned) bool { return c.object.GetName() == name })
	return s.children[i]
}

// count adds one place to what is known of all. The counters are of places, so that two children of one are not two.
func (p *planner) count(s *slot) {
	alive := s.alive()
	if len(alive) == 0 {
		if s.terminating && !s.held && !s.empty(p.strategy) {
			p.fresh++ // the rollout took it, or somebody else; what follows comes from the update revision
		}
		return
	}
	p.current++
	if slices.ContainsFunc(alive, func(c *owned) bool { return c.ready }) {
		p.ready++
	}
	if len(s.old) == 0 {
		p.updated++
	}
	switch {
	case s.available():
		p.available++
	case len(s.updated) > 0:
		p.fresh++
	}
	for _, c := range alive {
		if !c.available && p.blocker == "" {
			p.blocker = c.object.GetName() + ": " + c.why
		}
		p.LookAgain(c.left)
	}
}

// visit makes the rollout's picture of one place, and plans what is not the rollout's to decide: children that have
// failed, and those that are too many.
func (p *planner) visit(s *slot) {
	old, updated := p.running(s.old), p.running(s.updated)
	u := rollout.Unit{Key: s.key, Old: p.keepOne(s, old), New: p.keepOne(s, updated)}
	u.Keeps = s.held && s.older != nil
	u.Held = s.held || p.strategy.OnDelete || slices.ContainsFunc(old, p.isAltered)
	// Children are created before others are deleted: a surge beside one that is too many would make three of them.
	left := len(old) + len(updated)
	u.Crowded = len(old) > 1 || len(updated) > 1 || left > 0 && left < len(s.old)+len(s.updated)
	if u.Old != nil && p.failed != nil {
		u.Refused = p.failed(s.rule, old[0].object)
		if s.update != nil {
			u.Refused = max(u.Refused, p.failed(s.rule, s.update))
		}
	}
	if u.Old != nil && u.New == nil && !u.Held {
		u.Stays = p.stays(s, old[0])
		if p.strategy.MaxSurge > 0 && p.most == 0 {
			// What does not serve is replaced by surge as well: a place that it left could not be told from one whose child was
			// lost.
			u.Old.Ready, u.Old.Available = true, true
		}
	}
	p.units = append(p.units, u)
}

func (f *facts) isAltered(c *owned) bool { return f.altered != nil && f.altered(c.object, f.update) }

// running plans the deletion of children that have failed, and returns the others.
func (p *planner) running(children []*owned) []*owned {
	var out []*owned
	for _, c := range children {
		if c.failed && c.pause <= 0 {
			p.Deletes = append(p.Deletes, deletion{child: c, reason: "it has failed", failed: true})
			continue
		}
		if c.failed {
			p.LookAgain(c.pause)
		}
		out = append(out, c)
	}
	return out
}

// keepOne keeps the first of the children of a place that are of the update revision, or of the others that are not,
// and plans the deletion of the rest. Nobody can say which is wanted before the update revision is recorded.
func (p *planner) keepOne(s *slot, children []*owned) *rollout.Instance {
	if len(children) == 0 {
		return nil
	}
	keep := children[0]
	for _, c := range children[1:] {
		reason := fmt.Sprintf("%s is at %s as well, from the same revision", keep.object.GetName(), s.name)
		if c.revision != keep.revision {
			reason = fmt.Sprintf("it comes from revision %s, which is not wanted any more, and %s is at %s as well",
				c.revision, keep.object.GetName(), s.name)
		}
		if p.update != "" && p.isAltered(c) == p.isAltered(keep) && (!p.strategy.Paused || c.revision == keep.revision) {
			p.Deletes = append(p.Deletes, deletion{child: c, reason: reason})
		}
	}
	return keep.instance()
}

// stays says why the rollout may not touch the old child of a place now, empty if it may.
func (p *planner) stays(s *slot, c *owned) string {
	surge := p.strategy.MaxSurge > 0
	if surge {
		if why := s.taken[s.update.GetName()]; why != "" {
			p.waitForName(s.update.GetName(), why)
			return s.update.GetName() + ": " + why
		}
	}
	switch {
	case c.available && !surge:
		return ""
	case surge && (c.ready || p.most == 0):
		if p.surge() > 0 {
			return ""
		}
		return p.enough(p.most + p.strategy.MaxSurge)
	default:
		return p.turn()
	}
}

// instance is a child as the rollout sees it.
func (c *owned) instance() *rollout.Instance {
	return &rollout.Instance{Name: c.object.GetName(), Revision: c.revision, Ready: c.ready, Available: c.available}
}
