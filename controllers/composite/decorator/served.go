package decorator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/composite/apply"
	"github.com/cairn-dev/cairn/controllers/composite/serverside"
	"github.com/cairn-dev/cairn/ownership"
)

// This file compares attachments with what is wanted of them, knowing what the API server makes of that: defaults are not
// a difference. It is part of the reads of a pass.

// compare says what applying desired to an attachment comes to.
func (r *Reconciler) compare(ctx context.Context, o *observed, attachment, desired *unstructured.Unstructured) (apply.Result, error) {
	if r.applier != nil {
		same, err := r.applier.Try(ctx, "", attachment, owned(o, desired))
		return apply.Result{Object: desired.Object, Changed: !same, Content: !same}, err
	}
	known := r.served.of(attachment, desired)
	result, err := r.memo.Child("", attachment, desired, known)
	doubt := err == nil && result.Content && result.Reapplied && known == nil
	if !doubt || r.methods[keyOf(desired).GroupKind] != v1alpha1.ChildUpdateRecreate {
		return result, err // a patch that changes nothing costs one request, and its answer settles the doubt
	}
	served, err := r.dryRun(ctx, o, desired)
	if err != nil {
		return apply.Result{}, err
	}
	if served == nil {
		return apply.Result{}, nil // nobody can tell, and an attachment that serves is worth more than a guess
	}
	r.served.put(attachment, desired, served)
	return r.memo.Child("", attachment, desired, served)
}

// owned is what is applied of a desired attachment by server-side apply.
func owned(o *observed, desired *unstructured.Unstructured) *unstructured.Unstructured {
	return serverside.Owned(desired, append(desired.GetOwnerReferences(), *metav1.NewControllerRef(o.object, o.resource.Kind)))
}

// dryRun asks the API server what it makes of an attachment, under a name that is free. It returns nil if that is refused:
// an address or a port that only one object can have, say.
func (r *Reconciler) dryRun(ctx context.Context, o *observed, desired *unstructured.Unstructured) (apply.Served, error) {
	probe, err := r.newAttachment(o, desired)
	if err != nil {
		return nil, err
	}
	probe.SetName("")
	probe.SetGenerateName("dry-run-")
	err = r.client.Create(ctx, probe, client.DryRunAll)
	switch {
	case err == nil:
		return probe.Object, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return nil, nil //nolint:nilnil // the caller knows what that means
	}
	return nil, fmt.Errorf("dry run of %s: %w", ownership.Describe(desired), err)
}

// servings keeps what the API server made of desired attachments, by the UID of what came of them. Losing one costs a
// request. It is safe for concurrent use.
type servings struct{ kept *lru.Cache }

// serving is what the API server made of desired.
type serving struct {
	desired map[string]any
	object  apply.Served
}

func newServings(size int) *servings { return &servings{lru.New(size)} }

// of returns what the API server made of desired, nil if that is not known.
func (s *servings) of(attachment, desired *unstructured.Unstructured) apply.Served {
	if v, ok := s.kept.Get(attachment.GetUID()); ok {
		if known := v.(serving); apply.Equal(known.desired, desired.Object) { //nolint:forcetypeassert // put stores them
			return known.object
		}
	}
	return nil
}

func (s *servings) put(attachment, desired *unstructured.Unstructured, object apply.Served) {
	s.kept.Add(attachment.GetUID(), serving{desired.Object, object})
}
