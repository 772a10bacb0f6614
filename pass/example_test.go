package pass_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file is a whole controller: a Shelf, a custom resource that is read without a Go type, has one ConfigMap for
// each book in spec.books.

var (
	shelfKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shelf"}
	shelfResource = schema.GroupResource{Group: "example.com", Resource: "shelves"}
	bookKind      = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	bookResource  = schema.GroupResource{Resource: "configmaps"}
)

type shelfReconciler struct {
	*pass.Controller

	books *pass.Children[*corev1.ConfigMap]
}

// shelves is the kind of the parents, with the kind of their children.
var shelves = pass.Kind{
	Name: "shelf", GVK: shelfKind, Resource: shelfResource, New: newShelf, NewList: newShelfList,
	Selector: func(parent client.Object) (labels.Selector, error) { return shelfSelector(parent), nil },
	Owned:    map[schema.GroupResource]client.Object{bookResource: &corev1.ConfigMap{}},
}

func newShelfReconciler(config pass.Config) *shelfReconciler {
	r := &shelfReconciler{}
	config.Run = r.pass
	r.Controller = pass.New(config)
	r.books = pass.NewChildren[*corev1.ConfigMap](r.Controller, bookKind, bookResource,
		func() client.ObjectList { return &corev1.ConfigMapList{} })
	return r
}

var _ func(context.Context, ctrl.Manager) error = setupShelves // a main function calls it

// setupShelves adds the controller to a manager.
func setupShelves(ctx context.Context, mgr ctrl.Manager) error {
	config, err := shelves.In(ctx, mgr, pass.Options{})
	if err != nil {
		return err
	}
	r := newShelfReconciler(config)
	return r.Watch(mgr, 4).Complete(r)
}

// pass is one pass over one Shelf that is there. What begins it, ends it and retries it is package pass's.
func (r *shelfReconciler) pass(ctx context.Context, p *pass.Pass) error {
	shelf := p.Parent
	owned, err := r.books.Claim(ctx, p, shelfSelector(shelf))
	if err != nil {
		return err // the list may be incomplete: do not act on it
	}
	missing, surplus := planShelf(shelf, owned)
	if len(missing)+len(surplus) == 0 {
		return nil
	}
	// A process that just started may have been told of the past. Before its first write it looks.
	if err := r.books.Confirm(ctx, p, shelfSelector(shelf), owned); err != nil {
		return err
	}
	err = errors.Join(
		pass.SlowStart(p, pass.Writes[*corev1.ConfigMap]{
			Items: missing,
			Name:  (*corev1.ConfigMap).GetName,
			Still: p.Unedited(ctx),
			Do: func(book *corev1.ConfigMap) error {
				how, err := r.books.Create(ctx, shelf, book, func(client.Object) bool { return true })
				switch how {
				case ownership.Taken:
					err = fmt.Errorf("the name %s is somebody else's", book.Name)
					p.Warn(nil, "FailedCreate", "Create", "%v", err)
				case ownership.Created:
					p.Normal(book, "SuccessfulCreate", "Create", "Created %s", book.Name)
				case ownership.Existed: // an answer was lost
				}
				return err
			},
		}),
		pass.SlowStart(p, pass.Writes[*corev1.ConfigMap]{
			Items: surplus,
			Name:  (*corev1.ConfigMap).GetName, // what is surplus is not missing: no two writes have the same name
			Do: func(book *corev1.ConfigMap) error {
				_, err := r.books.Delete(ctx, shelf, book)
				return err
			},
		}),
	)
	p.NoteUnknownOutcome(err) // nobody told us what was written, if an answer was lost
	return err
}

// planShelf says what is missing and what is too much. Names follow from what a child is for, so that a lost response,
// or a second manager, makes no second one.
func planShelf(shelf client.Object, owned []*corev1.ConfigMap) (missing, surplus []*corev1.ConfigMap) {
	wanted := map[string]bool{}
	titles, _, _ := unstructured.NestedStringSlice(shelf.(*unstructured.Unstructured).Object, "spec", "books")
	for _, title := range titles {
		wanted[shelf.GetName()+"-"+title] = true
	}
	for _, book := range owned {
		if !wanted[book.GetName()] {
			surplus = append(surplus, book)
		}
		delete(wanted, book.GetName())
	}
	for name := range wanted {
		missing = append(missing, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: shelf.GetNamespace(), Name: name, Labels: map[string]string{"shelf": shelf.GetName()},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shelf, shelfKind)},
		}})
	}
	return missing, surplus
}

func shelfSelector(shelf client.Object) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"shelf": shelf.GetName()})
}

func newShelf() client.Object {
	shelf := &unstructured.Unstructured{}
	shelf.SetGroupVersionKind(shelfKind)
	return shelf
}

func newShelfList() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(shelfKind.GroupVersion().WithKind("ShelfList"))
	return list
}

// A whole controller, from its watches to its writes. Here it makes two passes by hand, over an API server that has a
// Shelf, a book that is nobody's, and one that is on another Shelf.
func Example() {
	ctx := context.Background()
	shelf := newShelf().(*unstructured.Unstructured)
	shelf.SetNamespace("home")
	shelf.SetName("novels")
	shelf.SetUID("u1")
	shelf.Object["spec"] = map[string]any{"books": []any{"emma", "ulysses"}}
	server := library(shelf, book("novels-emma", nil), book("novels-theirs", &metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Shelf", Name: "other", UID: "u2", Controller: new(true),
	}))
	// A manager's controller: see setupShelves.
	r := newShelfReconciler(pass.Config{
		Kind: shelves, Client: server, Live: server, Consistency: ownership.NewConsistencyStore(nil),
		Recorder: &fakeserver.Recorder{}, Clock: clock.RealClock{},
	})
	reconcileOnce := func() {
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shelf)}); err != nil {
			fmt.Println(err)
		}
		var list corev1.ConfigMapList
		if err := server.List(ctx, &list); err != nil {
			fmt.Println(err)
		}
		for _, b := range list.Items {
			fmt.Println(b.Name, "is on", metav1.GetControllerOf(&b).Name)
		}
	}
	reconcileOnce()
	fmt.Println("emma is sold")
	shelf.Object["spec"] = map[string]any{"books": []any{"ulysses"}}
	if err := server.Update(ctx, shelf); err != nil {
		fmt.Println(err)
	}
	reconcileOnce()
	// Output:
	// novels-emma is on novels
	// novels-theirs is on other
	// novels-ulysses is on novels
	// emma is sold
	// novels-theirs is on other
	// novels-ulysses is on novels
}
