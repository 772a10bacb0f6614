package composite

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file says for how long a parent is left alone after its children were written: until all of them are what they are
// to become, and for a tenth of a second at most. A pod that is made, scheduled and ready is three events and one question
// to the hook.

// settleTime is how long a parent is left alone at most. What becomes of its children meanwhile is one question to the hook, and
// the next steps of a rollout are taken together.
const settleTime = 100 * time.Millisecond

// awaits are the children that a plan has written, once it is carried out. There are none if nothing but time tells: a child
// that was changed in place may pass its checks for a moment only because nobody has looked at it yet.
func (p *plan) awaits() []awaited {
	if len(p.updates) > 0 {
		return nil
	}
	out := make([]awaited, 0, len(p.creates)+len(p.deletes))
	for _, c := range p.creates {
		out = append(out, awaited{key: c.key})
	}
	for _, d := range p.deletes {
		a := awaited{key: d.key}
		if d.instead == nil || !children.GoesAtOnce(d.observed) {
			a.gone = d.observed.GetUID()
		}
		out = append(out, a)
	}
	return out
}

// settler looks at children that were written.
type settler struct {
	*settings

	cache client.Reader
	clock clock.PassiveClock
}

// settled reports whether everything that the last pass wrote has come to what it is to be. It reads the cache only, which
// must show those writes. Where a kind has no status checks nothing tells how far a child has got, so that there only time
// does.
func (r *settler) settled(ctx context.Context, parent *unstructured.Unstructured, m *memory) bool {
	now := r.clock.Now()
	for _, a := range m.pause.awaits {
		s := r.strategies[a.key.GroupKind]
		child, err := r.cached(ctx, parent, a.key)
		switch {
		case a.gone != "":
			if !apierrors.IsNotFound(err) && (err != nil || child.GetUID() == a.gone) {
				return false
			}
		case len(s.ready.Checks) == 0, err != nil, child.GetDeletionTimestamp() != nil,
			!healthOf(a.key, child, s, m.changed[child.GetUID()], now).available():
			return false
		}
	}
	return len(m.pause.awaits) > 0
}

// cached reads a child of a parent from the cache.
func (r *settler) cached(
	ctx context.Context, parent *unstructured.Unstructured, key metacontroller.Child,
) (*unstructured.Unstructured, error) {
	child := &unstructured.Unstructured{}
	for _, kind := range r.children {
		if kind.Kind.GroupKind() == key.GroupKind {
			child.SetGroupVersionKind(kind.Kind)
		}
	}
	name := types.NamespacedName{Namespace: parent.GetNamespace(), Name: key.Name}
	if name.Namespace == "" {
		name.Namespace = key.Namespace
	}
	return child, r.cache.Get(ctx, name, child)
}
