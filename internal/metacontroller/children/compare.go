package children

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file tells whether a child is as desired. If that depends on what the API server makes of a desired child, it
// asks the API server: a default that is taken for a difference recreates a child for ever (metacontroller#863).

// Compare says whether a child is as desired, as far as that is known without a request.
func (p *Pass) Compare(w Pair) Verdict {
	if v, ok := p.answers[w.key()]; ok {
		return v
	}
	if fresh, why := p.refused.of(w.Variant, w.Observed, w.Desired, p.Clock.Now()); fresh {
		return p.unknown(w, why)
	}
	if p.applier != nil {
		same, known := p.applier.known(w.Variant, w.Observed, p.applied(w.Desired))
		if !known {
			return Verdict{}
		}
		return applied(same, w.Desired)
	}
	served := p.servedFor(w)
	result, err := p.Memo.Child(w.Variant, w.Observed, w.Desired, served)
	switch {
	case err != nil:
		return p.unknown(w, err) // what cannot be encoded cannot be applied
	case !result.Content:
		return Verdict{Is: Same, Result: result}
	case result.Reapplied && served == nil:
		return Verdict{Result: result} // an edit, or what the API server makes of it
	}
	return Verdict{Is: Different, Result: result}
}

// applied is a verdict about server-side apply.
func applied(same bool, desired *unstructured.Unstructured) Verdict {
	if same {
		return Verdict{Is: Same}
	}
	return Verdict{Is: Different, Result: apply.Result{Object: desired.Object, Changed: true, Content: true}}
}

func (p *Pass) unknown(w Pair, why error) Verdict {
	return Verdict{Is: Unknown, Why: &HeldError{ComparisonRefused, p.names.Describe(w.Desired), why}}
}

func (p *Pass) servedFor(w Pair) apply.Served {
	if v, ok := p.served.Get(w.Observed.GetUID()); ok {
		if s := v.(serving); apply.Equal(s.desired, w.Desired.Object) {
			return s.object
		}
	}
	return nil
}

// remember keeps what the API server made of a desired child if that differs from it.
func (p *Pass) remember(made, desired *unstructured.Unstructured) {
	result, err := apply.Child(made.Object, desired.Object, nil)
	if err == nil && result.Content {
		p.keep(made.GetUID(), desired, made)
	}
}

func (p *Pass) keep(child types.UID, desired, served *unstructured.Unstructured) {
	p.served.Add(child, serving{desired.Object, served.Object})
}

// Ask asks the API server about wishes that [Pass.Compare] was in doubt about. After that it is not in doubt any more.
// An unknown result is asked for again a few seconds later. The error wraps [ownership.ErrStale] if a child has changed
// since it was read; no other error is about one child.
func (p *Pass) Ask(ctx context.Context, wishes []Pair) error {
	var writing sync.Mutex
	return pass.Each(wishes, func(w Pair) error {
		v, err := p.ask(ctx, w)
		switch {
		case err == nil:
		case pass.IsStale(err), apierrors.IsTooManyRequests(err), ctx.Err() != nil:
			return fmt.Errorf("ask whether %s is what is wanted: %w", p.names.Describe(w.Desired), err)
		default:
			p.refused.add(w.Variant, w.Observed, w.Desired, err, p.Clock.Now())
			v = p.unknown(w, err)
		}
		writing.Lock()
		defer writing.Unlock()
		p.answers[w.key()] = v
		return nil
	})
}

// ask asks about one child. An error says nothing about the child.
func (p *Pass) ask(ctx context.Context, w Pair) (Verdict, error) {
	if p.applier != nil {
		same, err := p.applier.try(ctx, w.Variant, w.Observed, p.applied(w.Desired))
		return applied(same, w.Desired), err
	}
	patched, err := p.tryPatch(ctx, w)
	if err != nil && !refusedByKind(err) {
		return Verdict{}, err
	}
	if err == nil {
		p.keep(w.Observed.GetUID(), w.Desired, patched)
		if v := p.Compare(w); w.InPlace || v.Is == Same {
			return v, nil
		}
	}
	// The child would be recreated, and admission may change a new one in the same way. So the dry run of a creation
	// decides, as far as its name, its ports and the quota allow one.
	created, createErr := p.tryCreate(ctx, w)
	switch {
	case createErr == nil:
		p.keep(w.Observed.GetUID(), w.Desired, created)
	case !answered(createErr):
		p.served.Remove(w.Observed.GetUID())
		return Verdict{}, createErr
	case err != nil:
		return Verdict{}, err
	}
	return p.Compare(w), nil
}

// tryPatch asks what the patch that would be sent makes of the child itself, by a dry run. Unlike a creation, that does
// not fail because of the name, a port or a quota.
func (p *Pass) tryPatch(ctx context.Context, w Pair) (*unstructured.Unstructured, error) {
	result, err := p.Memo.Child(w.Variant, w.Observed, w.Desired, nil)
	if err != nil {
		return nil, err
	}
	return p.patch(ctx, w.Observed, result, client.DryRunAll)
}

// patch applies a result to exactly the child that was read, and returns what the API server makes of it.
func (p *Pass) patch(
	ctx context.Context, observed *unstructured.Unstructured, r apply.Result, opts ...client.PatchOption,
) (*unstructured.Unstructured, error) {
	body, err := r.Patch(observed.Object)
	if err != nil {
		return nil, err
	}
	out := anyobject.Blank(observed).(*unstructured.Unstructured)
	err = p.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, body), opts...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %s changed before it could be updated", ownership.ErrStale, p.names.Describe(observed))
	}
	return out, err
}

// tryCreate asks what the API server makes of a new child as desired, by a dry run under a free name.
func (p *Pass) tryCreate(ctx context.Context, w Pair) (*unstructured.Unstructured, error) {
	o, err := p.made(w.Desired)
	if err != nil {
		return nil, err
	}
	o.SetName(freeName(o.GetName(), p.owner.UID))
	return o, p.writer(o).Client.Create(ctx, o, client.DryRunAll)
}

// freeName is a name that no child has: names of children do not know the parent's UID.
func freeName(name string, parent types.UID) string {
	const suffix = 10
	sum := sha256.Sum256([]byte(name + string(parent)))
	return name[:min(len(name), 63-suffix-1)] + "-" + hex.EncodeToString(sum[:])[:suffix]
}
