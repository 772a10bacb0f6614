package composite

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/rollout"
)

// This file is the rollout's part of a plan: which children are a set with a budget, and what the planner of package
// rollout is told of each. It is pure.

// set is the children that share a budget, in the order of the hook's answer. kind is empty for the set of all kinds that
// have no budget of their own.
type set struct {
	kind     schema.GroupKind
	strategy strategy
	keys     []metacontroller.Child
}

type sets []*set

func (s *sets) add(key metacontroller.Child, strategy strategy) {
	kind := schema.GroupKind{}
	if strategy.alone() {
		kind = key.GroupKind
	}
	i := slices.IndexFunc(*s, func(other *set) bool { return other.kind == kind })
	if i < 0 {
		i = len(*s)
		*s = append(*s, &set{kind: kind, strategy: strategy})
	}
	(*s)[i].keys = append((*s)[i].keys, key)
}

// budget is how many children of a set may be unavailable at once.
func (s *set) budget() (int, error) {
	if s.strategy.maxUnavailable == nil {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.strategy.maxUnavailable, len(s.keys), false)
	if err != nil {
		return 0, fmt.Errorf("updateStrategy.maxUnavailable of %s: %w", s.kind, err)
	}
	return max(1, n), nil
}

// held reports whether the i-th child of a set keeps its revision.
func (s *set) held(i int) bool {
	return s.kind != schema.GroupKind{} && (s.strategy.paused || i >= len(s.keys)-s.strategy.partition)
}

// guarded are the children that keep their revision.
func (s *sets) guarded() map[metacontroller.Child]bool {
	out := map[metacontroller.Child]bool{}
	for _, one := range *s {
		for i, key := range one.keys {
			if one.held(i) {
				out[key] = true
			}
		}
	}
	return out
}

// roll plans the next steps of every set.
func (p *planner) roll() error {
	for _, s := range p.sets {
		budget, err := s.budget()
		if err != nil {
			return err
		}
		units := make([]rollout.Unit, 0, len(s.keys))
		for i, key := range s.keys {
			units = append(units, p.unit(s, i, key))
		}
		p.contain(s, units, budget)
		rolled := rollout.New(units, rollout.Strategy{MaxUnavailable: budget, Ordered: true})
		for _, step := range rolled.Steps {
			i := slices.IndexFunc(units, func(u rollout.Unit) bool { return u.Key == step.Unit })
			p.step(s, i, step.Reason)
		}
		p.waits = append(p.waits, rolled.Waiting...)
	}
	return nil
}

// contain keeps a child that happens to be unavailable at its revision while as many as the budget are down at the newest
// one: to replace it costs nothing, but what comes might not serve either, and it would not come back by itself.
func (p *planner) contain(s *set, units []rollout.Unit, budget int) {
	down := 0
	for i, u := range units {
		isNew := u.New != nil || u.Old == nil && p.claims[s.keys[i]] == p.newest
		if isNew && (u.New == nil || !u.New.Available) {
			down++
		}
	}
	if down < budget {
		return
	}
	for i := range units {
		if old := units[i].Old; old != nil && !old.Available && p.claims[s.keys[i]] != p.newest {
			units[i].Stays = fmt.Sprintf("%d of the children that are updated are not available", down)
		}
	}
}

// unit makes the rollout's picture of one child. A child that is held is to be what its own revision asks for; every other
// one, what the newest does. One that differs from that is an old instance, wherever the difference comes from: a new
// revision, a field of the parent that no revision covers, or somebody's edit. So all of these share one budget. A child
// that is held at a revision that is lost is what it is to be: nobody knows better.
func (p *planner) unit(s *set, i int, key metacontroller.Child) rollout.Unit {
	u := rollout.Unit{Key: key.String()}
	child := p.observed[key]
	if child == nil || child.GetDeletionTimestamp() != nil {
		if child != nil {
			p.waits = append(p.waits, rollout.Wait{Unit: u.Key, Reason: "it is terminating"})
		}
		return u
	}
	h := healthOf(key, child, p.strategies[key.GroupKind], p.changed[child.GetUID()], p.now)
	p.lookAgain(h.left)
	instance := &rollout.Instance{
		Name: child.GetName(), Revision: cmp.Or(p.claims[key], "unknown"), Ready: h.failing == "", Available: h.available(),
	}
	if h.available() {
		p.serving++
	}
	if h.failing != "" {
		p.waits = append(p.waits, rollout.Wait{Unit: u.Key, Reason: h.failing})
	}
	if p.same(child, p.newestAnswer().objects[key]) {
		p.updated++
	}
	target := p.target(s, i, key)
	if s.held(i) && p.isLost(p.claims[key]) || p.same(child, target) {
		u.New = instance
	} else {
		u.Old, u.Stays = instance, p.unknown(key, child, target)
	}
	return u
}

// target is what a child is to become.
func (p *planner) target(s *set, i int, key metacontroller.Child) *unstructured.Unstructured {
	if s.held(i) {
		_, object := p.source(key)
		return object
	}
	return p.newestAnswer().objects[key]
}

// step carries a step of the rollout into the plan: the child belongs to its target's revision before it is touched.
func (p *planner) step(s *set, i int, reason string) {
	key := s.keys[i]
	object := p.target(s, i, key)
	if !s.held(i) {
		p.claims[key] = p.newest
	}
	if p.strategies[key.GroupKind].inPlace() {
		newest := p.newestAnswer().objects[key] == object
		p.updates = append(p.updates, update{key, p.observed[key], object, newest, reason})
		return
	}
	p.deletes = append(p.deletes, deletion{key, p.observed[key], object, p.claims[key], reason})
}
