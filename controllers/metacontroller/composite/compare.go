package composite

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file compares children with their desired state. How to compare is in package children.

// comparison compares the children of one parent in one pass, and notes those that it could not compare.
type comparison struct {
	*children.Pass

	parent     *unstructured.Unstructured
	newest     map[metacontroller.Child]*unstructured.Unstructured
	strategies map[schema.GroupKind]strategy
	doubts     []children.Pair
}

// childrenOf returns what compares and writes the children of a parent in a pass.
func (s *settings) childrenOf(parent *unstructured.Unstructured, k *children.Keeper) *children.Pass {
	return k.Of(namesFor(parent), s.parent.Kind)
}

// compare says whether a child is as desired, and notes when only the API server can tell.
func (c *comparison) compare(observed, desired *unstructured.Unstructured) children.Verdict {
	key := child(c.parent, observed)
	w := children.Pair{
		Variant: variant(c.newest[key] == desired), Observed: observed, Desired: desired, InPlace: c.strategies[key.GroupKind].inPlace(),
	}
	v := c.Compare(w)
	if v.Is == children.Doubt {
		c.doubts = append(c.doubts, w)
	}
	return v
}

// same reports whether applying desired to a child would change nothing of its content. If in doubt it reports false.
func (c *comparison) same(observed, desired *unstructured.Unstructured) bool {
	return c.compare(observed, desired).Is == children.Same
}

// compareErr returns why a child could not be compared, nil if it could.
func (c *comparison) compareErr(observed, desired *unstructured.Unstructured) error {
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

// variant keeps the comparisons with the newest and with an older revision apart, so that both stay in the cache.
func variant(newest bool) string {
	if newest {
		return "newest"
	}
	return "older"
}
