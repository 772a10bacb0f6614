package tree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/ownership"
)

// This file reads what an object controls, and what controls it. Nothing is known of any kind: the caller says which
// there are.

const (
	// listsAtOnce is how many kinds are listed at the same time: about what kubectl's own limit on the client's side
	// allows.
	listsAtOnce = 10
	// deepest is how far up owners are followed. Chains of four are long.
	deepest = 32
	// named is how many kinds a warning names.
	named = 5
)

// Below returns what parent controls, directly and indirectly. now is as for [status.Of]. kinds are those that may
// be below it, for instance all that discovery says can be listed. They are listed in the namespace of parent or, if
// it is in none, in all.
//
// Errors: what the API server says of parent itself. A kind that cannot be listed is a warning.
func Below(ctx context.Context, c client.Client, parent client.Object, kinds []schema.GroupVersionKind, now time.Time) (*Tree, error) {
	root, err := whole(c, parent)
	if err != nil {
		return nil, err
	}
	out := &Tree{}
	all, refused := everything(ctx, c, root.meta.Namespace, kinds)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	below := belowOf(root, all)
	unread := fill(ctx, c, root.meta.Namespace, below)
	out.Root = grow(root, below, now)
	out.Warnings = append(sentences("could not be listed", refused), sentences("could not be read", unread)...)
	return out, ctx.Err()
}

// Ancestors returns what controls o, up to the object that nothing controls, as a tree with one branch that ends at o.
//
// Errors: what the API server says of o's kind. An owner that cannot be read is a node with the state Unknown, one that
// was deleted or has another UID has the state [NotFound].
func Ancestors(ctx context.Context, c client.Client, o client.Object, now time.Time) (*Tree, error) {
	at, err := whole(c, o)
	if err != nil {
		return nil, err
	}
	top := grow(at, nil, now)
	for range deepest {
		ref := metav1.GetControllerOfNoCopy(at.meta)
		if ref == nil {
			break
		}
		owner, n := owner(ctx, c, ref, at.meta.Namespace, now)
		n.Children = []*Node{top}
		top = n
		if owner == nil {
			break
		}
		at = owner
	}
	return &Tree{Root: top}, ctx.Err()
}

// owner reads what ref names, nil if it is not there, and describes it.
func owner(ctx context.Context, c client.Client, ref *metav1.OwnerReference, namespace string, now time.Time) (*found, *Node) {
	read, err := object.ReadOwner(ctx, c, ref, namespace)
	n := &Node{Parent: read.Parent, State: string(status.Unknown)}
	switch {
	case meta.IsNoMatchError(err):
		n.Message = fmt.Sprintf("%s is not served any more: %v", ref.APIVersion, err)
	case err != nil:
		n.Message = err.Error()
	case read.Another != "":
		n.State = NotFound
		n.Message = fmt.Sprintf("an object of this name exists, but it is another one: its UID is %s, and not %s", read.Another, ref.UID)
	case read.Object == nil:
		n.State, n.Message = NotFound, "it does not exist; what it controls will be deleted by the garbage collector"
	default:
		f := foundOf(read.Object)
		return f, grow(f, nil, now)
	}
	return nil, n
}

// whole returns an object that the caller has read.
func whole(c client.Client, o client.Object) (*found, error) {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		return nil, fmt.Errorf("tell the kind of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	u, err := object.Fields(o, gvk)
	if err != nil {
		return nil, err
	}
	return foundOf(u), nil
}

func foundOf(o *unstructured.Unstructured) *found {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind())
	m.Namespace, m.Name, m.UID = o.GetNamespace(), o.GetName(), o.GetUID()
	m.Labels, m.Annotations, m.OwnerReferences = o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences()
	m.CreationTimestamp, m.DeletionTimestamp, m.Finalizers = o.GetCreationTimestamp(), o.GetDeletionTimestamp(), o.GetFinalizers()
	return &found{meta: m, whole: o}
}

// everything lists the metadata of all objects of kinds. refused are the kinds that could not be listed, with the
// reason.
func everything(ctx context.Context, c client.Client, namespace string, kinds []schema.GroupVersionKind) ([]*found, map[string][]string) {
	var all []*found
	lists := func() client.ObjectList { return &metav1.PartialObjectMetadataList{} }
	refused := each(ctx, c, namespace, kinds, lists, func(list client.ObjectList, gvk schema.GroupVersionKind) {
		items := list.(*metav1.PartialObjectMetadataList).Items
		for n := range items {
			items[n].SetGroupVersionKind(gvk)
			all = append(all, &found{meta: &items[n]})
		}
	})
	return all, refused
}

// List returns the metadata of all objects of kinds in a namespace, in all of them if it is empty, and sentences about
// kinds that could not be listed.
func List(ctx context.Context, c client.Client, namespace string, kinds []schema.GroupVersionKind) (
	all []*metav1.PartialObjectMetadata, warnings []string,
) {
	objects, refused := everything(ctx, c, namespace, kinds)
	for _, f := range objects {
		all = append(all, f.meta)
	}
	return all, sentences("could not be listed", refused)
}

// belowOf keeps of all what is below root, so that nothing else has to be read whole.
func belowOf(root *found, all []*found) []*found {
	inside := map[ownership.Owner]bool{root.owner(): true}
	var out []*found
	for grown := true; grown; {
		grown = false
		for _, f := range all {
			if inside[ownership.ControllerOf(f.meta)] && !inside[f.owner()] {
				inside[f.owner()] = true
				out, grown = append(out, f), true
			}
		}
	}
	return out
}

// fill reads the rest of objects, kind by kind.
func fill(ctx context.Context, c client.Client, namespace string, objects []*found) map[string][]string {
	byKind := map[schema.GroupVersionKind]map[types.UID]*found{}
	for _, f := range objects {
		gvk := f.meta.GroupVersionKind()
		if byKind[gvk] == nil {
			byKind[gvk] = map[types.UID]*found{}
		}
		byKind[gvk][f.meta.UID] = f
	}
	lists := func() client.ObjectList { return &unstructured.UnstructuredList{} }
	return each(ctx, c, namespace, slices.Collect(maps.Keys(byKind)), lists, func(list client.ObjectList, gvk schema.GroupVersionKind) {
		items := list.(*unstructured.UnstructuredList).Items
		for n := range items {
			if f := byKind[gvk][items[n].GetUID()]; f != nil {
				items[n].SetGroupVersionKind(gvk)
				f.whole = &items[n]
			}
		}
	})
}

// each lists all kinds, several at the same time, and calls take with each list, one at a time. newList returns an
// empty list. The result has the kinds that could not be listed, by the reason.
func each(
	ctx context.Context, c client.Client, namespace string, kinds []schema.GroupVersionKind, newList func() client.ObjectList,
	take func(list client.ObjectList, gvk schema.GroupVersionKind),
) map[string][]string {
	var group errgroup.Group
	group.SetLimit(listsAtOnce)
	var lock sync.Mutex
	refused := map[string][]string{}
	for _, gvk := range kinds {
		group.Go(func() error {
			list := newList()
			list.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			err := c.List(ctx, list, client.InNamespace(namespace))
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				refuse(refused, gvk, err)
				return nil
			}
			take(list, gvk)
			return nil
		})
	}
	_ = group.Wait() // each error is in refused
	return refused
}

// refuse notes that a kind could not be read. A kind that is not served any more, or cannot be listed, has no objects.
func refuse(refused map[string][]string, gvk schema.GroupVersionKind, err error) {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return
	}
	why := err.Error()
	if apierrors.IsForbidden(err) {
		why = "you may not list them"
	}
	refused[why] = append(refused[why], object.KindName(gvk.GroupKind()))
}

// sentences says which kinds are missing, one sentence for each reason.
func sentences(what string, refused map[string][]string) []string {
	var out []string
	for why, kinds := range refused {
		slices.Sort(kinds)
		which := strings.Join(kinds[:min(len(kinds), named)], ", ")
		if more := len(kinds) - named; more > 0 {
			which += fmt.Sprintf(" and %d other kinds", more)
		}
		out = append(out, fmt.Sprintf("Objects of %s %s: %s.", which, what, why))
	}
	slices.Sort(out)
	return out
}
