package ownership_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
)

// This file is a whole controller: a Shelf, a custom resource that is read without a Go type, has one ConfigMap for each
// book in spec.books.

var (
	shelfKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shelf"}
	shelfResource = schema.GroupResource{Group: "example.com", Resource: "shelves"}
	bookResource  = schema.GroupResource{Resource: "configmaps"}
)

type shelfReconciler struct {
	client client.Client // reads from the cache
	live   client.Reader // reads past it
	ledger *ownership.Ledger
	books  ownership.Writer
	fresh  *ownership.Confirmer
}

func newShelfReconciler(c client.Client, live client.Reader, ledger *ownership.Ledger) *shelfReconciler {
	return &shelfReconciler{
		client: c, live: live, ledger: ledger,
		books: ownership.Writer{Client: c, Live: live, Ledger: ledger, Resource: bookResource},
		fresh: &ownership.Confirmer{
			Live: live, Children: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Ledger: ledger, Resource: bookResource,
		},
	}
}

var _ func(context.Context, ctrl.Manager) error = setupShelves // a main function calls it

// setupShelves adds the controller to a manager.
func setupShelves(ctx context.Context, mgr ctrl.Manager) error {
	ledger, err := ownership.Wire(ctx, mgr,
		map[schema.GroupResource]client.Object{bookResource: &corev1.ConfigMap{}},
		map[schema.GroupResource]client.Object{shelfResource: newShelf()})
	if err != nil {
		return err
	}
	r := newShelfReconciler(mgr.GetClient(), mgr.GetAPIReader(), ledger)
	parents := ownership.Parents{
		Reader: r.client, Kind: shelfKind.GroupKind(), New: newShelf, NewList: newShelfList,
		Selector: func(parent client.Object) (labels.Selector, error) { return shelfSelector(parent), nil },
	}
	return ctrl.NewControllerManagedBy(mgr).Named("shelf").
		Watches(newShelf(), ownership.ParentEvents(func(gone types.UID) { ledger.Forget(gone); r.fresh.Forget(gone) })).
		Watches(&corev1.ConfigMap{}, parents.Router().Handler()).
		Complete(r)
}

// Reconcile is one pass over one Shelf.
func (r *shelfReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shelf := newShelf()
	unseen, err := r.ledger.Read(ctx, r.client, req.NamespacedName, shelf)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shelf.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil // what it owned is the garbage collector's business
	}
	if unseen != "" {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil // the caches do not show our own last writes yet
	}
	owned, err := r.claim(ctx, shelf)
	if err != nil {
		return reconcile.Result{}, err // the list may be incomplete: do not act on it
	}
	missing, surplus := planShelf(shelf, owned)
	if len(missing)+len(surplus) == 0 {
		return reconcile.Result{}, nil
	}
	// A process that just started may have been told of the past. Before its first write it looks.
	if why, err := r.fresh.Confirm(ctx, shelf, shelfSelector(shelf), owned); err != nil || why != "" {
		return reconcile.Result{RequeueAfter: time.Second}, err
	}
	err = ownership.SlowStart(missing, ownership.Unedited(ctx, r.client, shelf), func(book *corev1.ConfigMap) error {
		how, err := r.books.Create(ctx, shelf, book, func(client.Object) bool { return true })
		if how == ownership.Taken {
			return fmt.Errorf("the name %s is somebody else's", book.Name)
		}
		return err
	})
	if err == nil {
		err = ownership.Each(surplus, func(book client.Object) error {
			_, err := r.books.Delete(ctx, shelf, book)
			return err
		})
	}
	if ownership.OutcomeUnknown(err) {
		r.fresh.Forget(shelf.GetUID()) // nobody told us what was written, so the ledger cannot wait for it
	}
	return reconcile.Result{}, err
}

// claim returns what belongs to the Shelf, after adopting orphans that match and releasing what does not match any more.
func (r *shelfReconciler) claim(ctx context.Context, shelf client.Object) ([]client.Object, error) {
	var candidates []client.Object
	err := ownership.Candidates(ctx, r.client, &corev1.ConfigMapList{}, shelf.GetNamespace(), shelf.GetUID(), shelfSelector(shelf), true,
		func(o client.Object) error {
			candidates = append(candidates, o)
			return nil
		})
	if err != nil {
		return nil, err
	}
	claimer := &ownership.Claimer{
		Parent: shelf, Kind: shelfKind, Selector: shelfSelector(shelf), Writer: r.client, Live: r.live,
		Wrote: func(child client.Object) { r.ledger.Wrote(shelf.GetUID(), bookResource, child) },
	}
	owned, err := ownership.Claim(ctx, claimer, candidates)
	if err == nil && claimer.Lost {
		err = apierrors.NewConflict(bookResource, "", fmt.Errorf("a book changed while it was claimed")) // come back soon
	}
	return owned, err
}

// planShelf says what is missing and what is too much. Names follow from what a child is for, so that a lost response, or a
// second manager, makes no second one.
func planShelf(shelf client.Object, owned []client.Object) (missing []*corev1.ConfigMap, surplus []client.Object) {
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

// A whole controller, from its watches to its writes. Here it runs two passes by hand, over an API server that has a Shelf,
// a book that is nobody's, and one that is on another Shelf.
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
	r := newShelfReconciler(server, server, ownership.NewLedger(nil)) // a manager's controller: see setupShelves
	pass := func() {
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
	pass()
	fmt.Println("emma is sold")
	shelf.Object["spec"] = map[string]any{"books": []any{"ulysses"}}
	if err := server.Update(ctx, shelf); err != nil {
		fmt.Println(err)
	}
	pass()
	// Output:
	// novels-emma is on novels
	// novels-theirs is on other
	// novels-ulysses is on novels
	// emma is sold
	// novels-theirs is on other
	// novels-ulysses is on novels
}
