package composite

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/history/metacontroller"
)

// This file says which children share a budget, and which of them keep their revision. It is pure.

// set is the children that share a budget, in the order of the hook's answer. kind is empty for the set of all kinds
// that have no budget of their own.
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
