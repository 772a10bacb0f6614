package builder

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file gives a history to a reconciler that is there already, and changes nothing else of it: no children, no
// status, no events, no queue. What one call records is in recorded.go.

// History is the revision log of the parents of one kind, for a reconciler that makes of them what it likes. Make one
// with [Attach]. It is safe for concurrent use on different parents; there is one [History.Record] at a time for a
// parent, as in a reconciler.
type History[P client.Object] struct {
	versioned

	// Relabel points what carries the label of one revision at another one that holds the same, before the first is
	// deleted: two are equal after a backup was restored, say. Its error keeps both, and is that of [History.Record].
	// Optional: set it before the manager starts, if objects of yours carry [Recorded.Label]. They would else name a
	// revision that does not exist.
	Relabel func(ctx context.Context, parent P, from, to revision.Revision) error
	// Upgrade is as in [Controller]: it reads what an earlier release recorded under other versions. Optional: set it
	// before the manager starts.
	Upgrade func(old *unstructured.Unstructured) (P, error)

	stored      format
	log         *history.Log
	consistency *ownership.ConsistencyStore
	started     sync.Once
}

// Attach prepares the history of the parents of a reconciler: parent is an empty one, typed, or
// *unstructured.Unstructured with apiVersion and kind set, and versions are the field paths that revisions hold, for
// instance "spec" or "data" (Controller History proposal, "Target Object State"). The kind has to be in a namespace; it
// needs neither a status nor a generation, and there need not be children. Call it once for a kind, before the manager
// starts. Then
//
//   - call [History.Record] early in each reconcile, before anything is made of the parent;
//   - call [Recorded.Truncate] last;
//   - add Owns(&appsv1.ControllerRevision{}) to the controller, so that a revision which somebody deletes is recorded
//     again. Without it that waits for the next reconcile. Nothing else has to be watched: a revision changes only when
//     its parent does.
//
// The error joins all that is wrong with the parent and its paths, or says what the API server does not serve, or that
// the cache cannot be used: it has to show the ControllerRevisions of all namespaces, or of one. It is for the author:
// return it.
//
// What the manager's role has to grant beside what the reconciler needs: get on parents; get, list, watch, create,
// patch, delete on controllerrevisions.apps; update on parents/finalizers where OwnerReferencesPermissionEnforcement is
// on. With patch on parents, revisions from before the API server had a new default are found equal by a dry run;
// without it they count as different.
func Attach[P client.Object](ctx context.Context, mgr ctrl.Manager, parent P, versions ...string) (*History[P], error) {
	v, err := describeParent(mgr.GetScheme(), mgr.GetRESTMapper(), parent, versions, arguments{"parent", "versions"})
	if err == nil {
		err = v.inServedSchema(mgr)
	}
	if err != nil {
		return nil, fmt.Errorf("attach a history to %T: %w", parent, err)
	}
	if _, taken := history.FormatOf(v.parent.GroupKind()); taken {
		return nil, fmt.Errorf("attach a history to %T: a %s has one already, which its own controller keeps in ControllerRevisions as well",
			parent, v.parent.Kind)
	}
	if err := claimKind(mgr, v.parent.GroupKind()); err != nil {
		return nil, fmt.Errorf("attach a history to %T: %w", parent, err)
	}
	stored := map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}}
	consistency, err := ownership.NewConsistencyStoreFor(ctx, mgr, stored, nil)
	if err != nil {
		return nil, fmt.Errorf("attach a history to %T: %w", parent, err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &appsv1.ControllerRevision{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: forgetOwner(consistency)})
	}
	if err != nil {
		return nil, fmt.Errorf("attach a history to %T: %w", parent, err)
	}
	o := history.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Lists: mgr.GetCache(), Indexed: true}
	return newHistory[P](v, consistency, o), nil
}

// newHistory returns the history of a sound kind. o says where its revisions are.
func newHistory[P client.Object](v versioned, consistency *ownership.ConsistencyStore, o history.Options) *History[P] {
	h := &History[P]{versioned: v, consistency: consistency}
	o.AskServer, o.Consistency = true, consistency
	h.stored = h.format(h.label)
	h.log = history.New(h.stored, o)
	return h
}

// forgetOwner drops what the consistency store remembers of a parent once the cache shows it. A parent that was deleted
// is not asked for any more, but its revisions are deleted after it.
func forgetOwner(consistency *ownership.ConsistencyStore) func(deleted any) {
	return func(deleted any) {
		if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
			deleted = unknown.Obj
		}
		if o, ok := deleted.(client.Object); ok {
			if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
				consistency.Unseen(ref.UID)
			}
		}
	}
}

// Between two records of a parent a cache needs some milliseconds to show what the first one wrote. A reconciler that
// came back with an error each time would fill the log with what is no error.
const (
	catchUpEvery = 5 * time.Millisecond
	catchUpFor   = time.Second
)

// caughtUp waits a moment until the cache shows our own writes for a parent.
func (h *History[P]) caughtUp(ctx context.Context, parent P) error {
	unseen := ""
	err := wait.PollUntilContextTimeout(ctx, catchUpEvery, catchUpFor, true, func(context.Context) (bool, error) {
		unseen = h.consistency.Unseen(parent.GetUID())
		return unseen == "", nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %s", ownership.ErrStale, unseen)
	}
	return nil
}
