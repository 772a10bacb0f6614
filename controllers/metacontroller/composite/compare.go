package composite

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file compares children with what the plan is about. What a comparison takes is in package children.

// comparison compares the children of one parent in one pass, and keeps what it could not tell.
type comparison struct {
	*children.Pass

	parent     *unstructured.Unstructured
	newest     map[metacontroller.Child]*unstructured.Unstructured
	strategies map[schema.GroupKind]strategy
	doubts     []children.Wish
}

// childrenOf returns what a pass over a parent works with.
func (s *settings) childrenOf(parent *unstructured.Unstructured, k *children.Keeper) *children.Pass {
	return k.Of(namesFor(parent), s.parent.Kind)
}

// compare says whether a child is what is wanted of it, and notes what only the API server can tell.
func (c *comparison) compare(observed, desired *unstructured.Unstructured) children.Verdict {
	key := child(c.parent, observed)
	w := children.Wish{
		Variant: variant(c.newest[key] == desired), Observed: observed, Desired: desired, InPlace: c.strategies[key.GroupKind].inPlace(),
	}
	v := c.Compare(w)
	if v.Is == children.Doubt {
		c.doubts = append(c.doubts, w)
	}
	return v
}

// same reports whether applying desired to a child would change nothing of its content. In doubt it would.
func (c *comparison) same(observed, desired *unstructured.Unstructured) bool {
	return c.compare(observed, desired).Is == children.Same
}

// untold returns why nobody can tell whether a child is what is wanted, nil if somebody can.
func (c *comparison) untold(observed, desired *unstructured.Unstructured) error {
	if v := c.compare(observed, desired); v.Is == children.Unknown {
		return v.Why
	}
	return nil
}

// askDoubts asks the API server about every doubt, and reports whether there was one.
func (c *comparison) askDoubts(ctx context.Context) (bool, error) {
	doubts := c.doubts
	c.doubts = nil
	return len(doubts) > 0, c.Ask(ctx, doubts)
}

// variant tells the newest revision's wish from an older one's, so that they do not push each other out of what is remembered.
func variant(newest bool) string {
	if newest {
		return "newest"
	}
	return "older"
}
