package composite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/controllers/composite/apply"
	"github.com/cairn-dev/cairn/controllers/composite/serverside"
	"github.com/cairn-dev/cairn/history/record"
	"github.com/cairn-dev/cairn/ownership"
)

// This file tells whether a child is what is wanted of it. Where the answer depends on what the API server makes of a
// desired child, it asks: a default that is taken for a difference recreates a child for ever (metacontroller#863).

// comparison compares the children of one parent in one pass, and keeps what it could not tell.
type comparison struct {
	*reconciler

	parent *unstructured.Unstructured
	newest map[record.Child]*unstructured.Unstructured
	doubts []doubt
}

// doubt is a child that was told to be what is wanted, and differs from it: by somebody's edit, or by what the API server
// makes of it.
type doubt struct {
	observed, desired *unstructured.Unstructured
	// newest says that the newest revision wants it.
	newest bool
}

// servedChild is what the API server makes of a desired child. unknown says that it would not tell.
type servedChild struct {
	desired map[string]any
	object  apply.Served
	unknown bool
}

// same reports whether applying desired to a child would change nothing of its content. In doubt it would.
func (c *comparison) same(observed, desired *unstructured.Unstructured) bool {
	newest := c.newest[child(c.parent, observed)] == desired
	if c.applier != nil {
		same, known := c.applier.Known(variant(newest), observed, c.owned(c.parent, desired))
		if !known {
			c.doubts = append(c.doubts, doubt{observed, desired, newest})
		}
		return same
	}
	result, served, err := c.applied(newest, observed, desired)
	switch {
	case err != nil:
		return true // what cannot be encoded cannot be applied
	case !result.Content, served.unknown:
		return true // if nobody can tell, a child that serves is worth more than a guess
	case result.Reapplied && served.desired == nil:
		c.doubts = append(c.doubts, doubt{observed, desired, newest})
	}
	return false
}

// applied is what applying desired to a child comes to. newest says whether the newest revision wants it: its wish and an
// older one's do not push each other out of the memo.
func (r *reconciler) applied(newest bool, observed, desired *unstructured.Unstructured) (apply.Result, servedChild, error) {
	served := r.servedFor(observed, desired)
	result, err := r.memo.Child(variant(newest), observed, desired, served.object)
	return result, served, err
}

func variant(newest bool) string {
	if newest {
		return "newest"
	}
	return "older"
}

// owned is what is applied of a desired child by server-side apply.
func (r *reconciler) owned(parent, desired *unstructured.Unstructured) *unstructured.Unstructured {
	return serverside.Owned(desired, append(otherOwners(desired), *metav1.NewControllerRef(parent, r.parent.Kind)))
}

func (r *reconciler) servedFor(observed, desired *unstructured.Unstructured) servedChild {
	v, ok := r.served.Get(observed.GetUID())
	if !ok {
		return servedChild{}
	}
	if s := v.(servedChild); apply.Equal(s.desired, desired.Object) { //nolint:forcetypeassert // every caller of Add adds one
		return s
	}
	return servedChild{}
}

// settle asks the API server about every doubt, and reports whether there was one.
func (c *comparison) settle(ctx context.Context) (bool, error) {
	doubts := c.doubts
	c.doubts = nil
	err := ownership.Each(doubts, func(d doubt) error {
		if c.applier != nil {
			_, err := c.applier.Try(ctx, variant(d.newest), d.observed, c.owned(c.parent, d.desired))
			return err
		}
		served, err := c.dryRun(ctx, d.desired)
		if err == nil {
			c.served.Add(d.observed.GetUID(), served)
		}
		return err
	})
	return len(doubts) > 0, err
}

// dryRun asks what the API server makes of a desired child, by a dry run of its creation under a name that is free. A
// refusal says nothing about the child: a quota is full, or admission has a mind of its own.
func (c *comparison) dryRun(ctx context.Context, desired *unstructured.Unstructured) (servedChild, error) {
	o, err := c.newChild(c.parent, desired)
	if err != nil {
		return servedChild{}, err
	}
	o.SetName(trialName(desired.GetName(), c.parent))
	err = c.client.Create(ctx, o, client.DryRunAll)
	if err == nil {
		return servedChild{desired: desired.Object, object: o.Object}, nil
	}
	if ownership.OutcomeUnknown(err) || apierrors.IsTooManyRequests(err) {
		return servedChild{}, fmt.Errorf("ask what the API server makes of %s: %w", child(c.parent, desired), err)
	}
	log.FromContext(ctx).Info("The API server does not say what it makes of a child; it is left as it is",
		"child", child(c.parent, desired).String(), "error", err.Error())
	return servedChild{desired: desired.Object, unknown: true}, nil
}

// trialName is a name for a dry run that no child has: names of children do not know the parent's UID.
func trialName(name string, parent *unstructured.Unstructured) string {
	const suffix = 10
	sum := sha256.Sum256([]byte(name + string(parent.GetUID())))
	return name[:min(len(name), 63-suffix-1)] + "-" + hex.EncodeToString(sum[:])[:suffix]
}

// newChild is a child as it is created.
func (r *reconciler) newChild(parent, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.applier != nil {
		return r.owned(parent, desired), nil
	}
	object, err := apply.New(desired.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", child(parent, desired), err)
	}
	// The API server's answer is decoded over it, and the hook's answer is shared.
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	o.SetOwnerReferences(append(otherOwners(o), *metav1.NewControllerRef(parent, r.parent.Kind)))
	return o, nil
}

// otherOwners are the owner references that a hook asked for. A second controller is none of its business (O1).
func otherOwners(o *unstructured.Unstructured) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller == nil || !*ref.Controller {
			out = append(out, ref)
		}
	}
	return out
}

// remember keeps what the API server made of a desired child if that differs from it, from the answer to its creation.
func (r *reconciler) remember(created, desired *unstructured.Unstructured) {
	result, err := apply.Child(created.Object, desired.Object, nil)
	if err == nil && result.Content {
		r.served.Add(created.GetUID(), servedChild{desired: desired.Object, object: created.Object})
	}
}
