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

// This file says for how long a parent is left alone after its children were written: until all of them have settled,
// and for a tenth of a second at most. A pod that is created, scheduled and ready is three events, and one call of the
// hook.

// settleTime is how long a parent is left alone at most. All changes of its children meanwhile are one call of the
// hook, and the next steps of a rollout are taken together.
const settleTime = 100 * time.Millisecond

// awaits are the children that a plan has written, once it is carried out. It is empty if only time can tell: a child
// that was changed in place may still pass its checks for a moment, because its controller has not observed the change.
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

// settler reports whether the children that the last pass wrote have settled.
type settler struct {
	*settings

	cache client.Reader
	clock clock.PassiveClock
}

// settled reports whether every child that the last pass wrote passes its checks, or is deleted. It reads the cache
// only, which must show those writes. A child of a kind without status checks never settles before the time is over.
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
