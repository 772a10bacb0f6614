package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file keeps revisions such that they can be collected when an API version of their parent is served no more: the
// garbage collector finds an owner by the version that the reference names.

// RecordedVersionAnnotation is the API version of the parent in which a revision was recorded, which says how its data
// are read. It is there where the owner reference names another one by now.
const RecordedVersionAnnotation = "cairn.dev/recorded-version"

// RecordedIn is the API version of the parent in which a revision was recorded, "" if it does not say.
func RecordedIn(revision metav1.Object) string {
	if version := revision.GetAnnotations()[RecordedVersionAnnotation]; version != "" {
		return version
	}
	if ref := metav1.GetControllerOfNoCopy(revision); ref != nil {
		return ref.APIVersion
	}
	return ""
}

// follow lets the owner references of revisions name the version of the parent that is in use now, if theirs is an
// older one, and ends the pass if there were any. It goes to newer versions only: two releases of a controller would
// else write against each other.
func (l *Log) follow(ctx context.Context, parent client.Object, claimed []client.Object) error {
	moved := 0
	for _, o := range claimed {
		refs, older := outdated(o.GetOwnerReferences(), parent, l.OwnerKind(parent))
		if !older {
			continue
		}
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "ownerReferences": refs,
			"annotations": map[string]string{RecordedVersionAnnotation: RecordedIn(o)},
		}})
		if err != nil {
			return err
		}
		stored := l.Empty()
		stored.SetNamespace(o.GetNamespace())
		stored.SetName(o.GetName())
		err = l.opts.Client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, raw))
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			continue // nothing else waits for it
		}
		if err != nil {
			return fmt.Errorf("let revision %s name its owner in %s: %w", o.GetName(), l.OwnerKind(parent).GroupVersion(), err)
		}
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), stored)
		moved++
	}
	if moved > 0 {
		return fmt.Errorf("%w: %d of its revisions name it in another version now", ErrStale, moved)
	}
	return nil
}

// outdated returns owner references in which that of parent names kind, and whether it named an older version of it.
func outdated(refs []metav1.OwnerReference, parent metav1.Object, kind schema.GroupVersionKind) ([]metav1.OwnerReference, bool) {
	at := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == parent.GetUID() })
	if at < 0 || refs[at].APIVersion == kind.GroupVersion().String() {
		return refs, false
	}
	named := schema.FromAPIVersionAndKind(refs[at].APIVersion, refs[at].Kind)
	if named.GroupKind() != kind.GroupKind() || apimachineryversion.CompareKubeAwareVersionStrings(kind.Version, named.Version) <= 0 {
		return refs, false
	}
	refs = slices.Clone(refs)
	refs[at].APIVersion = kind.GroupVersion().String()
	return refs, true
}
