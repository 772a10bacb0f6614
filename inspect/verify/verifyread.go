package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/inspect/tree"
	"github.com/cairn-dev/cairn/ownership"
)

// This file reads what verify.go judges: the revisions of one parent or of a namespace, their parents, and objects that
// name their creator in an annotation.

// createdBy is the annotation by which objects named their creator before Kubernetes 1.6, and bare pods of kubectl
// still may.
const createdBy = "kubernetes.io/created-by"

// settling is how old a revision must be to be judged by its parent: the parent may have been created, or deleted, a
// moment ago.
const settling = 10 * time.Second

// Verified is what was found.
type Verified struct {
	// Revisions and Parents count what was looked at.
	Revisions, Parents int
	// Problems are by kind and name of the object.
	Problems []Problem
	// Warnings are sentences about what could not be looked at.
	Warnings []string
}

func (v *Verified) warnf(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// Parent returns what is wrong with the history of one parent, and with what belongs to it.
//
// Errors: those of [inspect.Inspector.History].
func Parent(ctx context.Context, i *inspect.Inspector, parent client.Object) (*Verified, error) {
	r, err := i.Read(ctx, parent)
	if err != nil {
		return nil, err
	}
	r.Count(ctx)
	out := &Verified{Revisions: len(r.Revisions), Parents: 1, Problems: check(r)}
	if r.Lost != nil {
		out.warnf("Which revisions of %s have the same content is not known: %v.", object.ParentOf(r.Kind, r.Parent), r.Lost)
	}
	if r.ChildrenErr != nil {
		out.warnf("The %s of %s could not be counted: %v.", r.Children, object.ParentOf(r.Kind, r.Parent), r.ChildrenErr)
	}
	return out, ctx.Err()
}

// Namespace returns what is wrong in a namespace, or in all if it is empty: with the revisions of each parent as
// [Parent], with revisions that have no parent, and with objects of kinds that name their creator only
// in an annotation. now is compared with the ages of revisions: what was made a moment ago is not judged by a parent
// that is not seen yet.
//
// Errors: what the API server says if revisions cannot be listed at all. What else cannot be looked at is a warning.
func Namespace(
	ctx context.Context, i *inspect.Inspector, namespace string, kinds []schema.GroupVersionKind, now time.Time,
) (*Verified, error) {
	out := &Verified{}
	each := i.Once()
	parents := map[ownership.Owner]client.Object{}
	seen := false
	var hidden error
	for _, gvk := range object.RevisionKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := i.Client().List(ctx, list, client.InNamespace(namespace)); err != nil {
			switch {
			case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // Metacontroller's API is not installed
				continue
			case apierrors.IsForbidden(err):
				hidden = err
				out.warnf("Revisions of kind %s could not be looked at: %v.", object.KindName(gvk.GroupKind()), err)
				continue
			}
			return nil, fmt.Errorf("list revisions: %w", err)
		}
		seen = true
		for n := range list.Items {
			list.Items[n].SetGroupVersionKind(gvk)
			out.Revisions++
			if p := unparented(ctx, i, &list.Items[n], parents, now, out); p != nil {
				out.Problems = append(out.Problems, *p)
			}
		}
	}
	if !seen && hidden != nil {
		return nil, fmt.Errorf("list revisions: %w", hidden)
	}
	for _, parent := range parents {
		if parent == nil {
			continue
		}
		one, err := Parent(ctx, each, parent)
		if unknown := (*object.UnknownKindError)(nil); errors.As(err, &unknown) {
			continue // it controls revisions that are no history of its own
		}
		if err != nil {
			out.warnf("The history of %s/%s could not be looked at: %v.", parent.GetNamespace(), parent.GetName(), err)
			continue
		}
		out.Parents++
		out.Problems = append(out.Problems, one.Problems...)
		out.Warnings = append(out.Warnings, one.Warnings...)
	}
	unreferenced(ctx, i, namespace, kinds, out)
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return strings.Compare(a.Object.Namespace+" "+a.Object.String()+" "+a.Reason, b.Object.Namespace+" "+b.Object.String()+" "+b.Reason)
	})
	slices.Sort(out.Warnings)
	return out, ctx.Err()
}

// unparented judges a revision by its controller, which goes into parents if it exists.
func unparented(
	ctx context.Context, i *inspect.Inspector, o *metav1.PartialObjectMetadata, parents map[ownership.Owner]client.Object, now time.Time,
	out *Verified,
) *Problem {
	name := object.Parent{GroupVersionKind: o.GroupVersionKind(), Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	young := now.Sub(o.CreationTimestamp.Time) < settling || o.DeletionTimestamp != nil
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		if young {
			return nil
		}
		p := orphaned(o, name)
		return &p
	}
	owner := ownership.ControllerOf(o)
	if _, known := parents[owner]; known {
		return nil
	}
	parent, err := object.ReadOwner(ctx, i.Client(), ref, o.Namespace)
	switch {
	case apierrors.IsForbidden(err): // rights on revisions are not those on what they are made from
		parents[owner] = nil
		out.warnf("You may read %s, which holds what was recorded of %s %s, and may not read that: %v. "+
			"So may everybody who may read ControllerRevisions.", name, ref.Kind, ref.Name, err)
	case err != nil:
		parents[owner] = nil
		out.warnf("%s %s, which controls %s, could not be read: %v.", ref.Kind, ref.Name, name, err)
	case parent.Object != nil:
		parents[owner] = parent.Object
	case !young:
		p := abandoned(o, name, ref, parent.Another != "")
		return &p
	}
	return nil
}

// unreferenced finds objects that name their creator, and have no ControllerRef.
func unreferenced(ctx context.Context, i *inspect.Inspector, namespace string, kinds []schema.GroupVersionKind, out *Verified) {
	all, warnings := tree.List(ctx, i.Client(), namespace, kinds)
	out.Warnings = append(out.Warnings, warnings...)
	for _, o := range all {
		text, has := o.Annotations[createdBy]
		if !has || metav1.GetControllerOfNoCopy(o) != nil || o.DeletionTimestamp != nil {
			continue
		}
		if p := created(ctx, i, o, text); p != nil {
			out.Problems = append(out.Problems, *p)
		}
	}
}

// created judges an object by the creator that text names.
func created(ctx context.Context, i *inspect.Inspector, o *metav1.PartialObjectMetadata, text string) *Problem {
	var said corev1.SerializedReference
	name := object.Parent{GroupVersionKind: o.GroupVersionKind(), Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Reference.UID == "" {
		return nil // whatever that is, it names no creator
	}
	by := &metav1.OwnerReference{
		APIVersion: said.Reference.APIVersion, Kind: said.Reference.Kind, Name: said.Reference.Name, UID: said.Reference.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	p := &Problem{Reason: NoControllerRef, Object: name}
	p.Message = fmt.Sprintf("Its annotation %s names %s %s, and it has no controller reference: nothing deletes it with its creator.",
		createdBy, by.Kind, by.Name)
	creator, err := object.ReadOwner(ctx, i.Client(), by, o.Namespace)
	switch {
	case err != nil:
		p.Message += fmt.Sprintf(" The creator could not be read: %v.", err)
	case creator.Another != "":
		p.Message += " The creator was deleted, and another object of that name exists; delete this one by hand if it is not needed."
	case creator.Object == nil:
		p.Message += " The creator does not exist any more; delete this one by hand if it is not needed."
	case creator.Object.GetDeletionTimestamp() != nil:
		p.Message += " The creator is terminating, so nothing is added to it."
	default:
		p.Fix = &Fix{object: o, adopt: by, Message: fmt.Sprintf(
			"set the controller reference of %s to %s %s, which has the UID that the annotation names", name, by.Kind, by.Name)}
	}
	return p
}
