package rollback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollback"
)

// stored is a revision of web with an image, as a controller records it.
func stored(image string, number int64) *appsv1.ControllerRevision {
	web := inspecttest.Web(image)
	format := history.DaemonSet()
	snapshot, err := format.Snapshot(web)
	if err != nil {
		panic(err)
	}
	r := inspecttest.StoredOf(&testing.T{}, web, number, strings.TrimPrefix(format.Name(web, snapshot, nil), web.Name+"-"))
	return r
}

// failed is a DaemonSet whose rollout to its second revision has failed, and what Undo is given of it.
func failed(funcs interceptor.Funcs) (client.Client, pass.Failure) {
	web := inspecttest.Web("web:2")
	web.Annotations = map[string]string{history.OnDeadlineAnnotation: "undo"}
	good, bad := stored("web:1", 1), stored("web:2", 2)
	bad.Annotations = map[string]string{history.CompletedRevisionsAnnotation: good.Name}
	c := inspecttest.Server(funcs, web, good, bad)
	return c, pass.Failure{
		Client: c, Live: c, Parent: web, Revision: bad.Name, Reason: "no progress for 10m: pod web-x: CrashLoopBackOff",
		Now: time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC),
	}
}

func ExampleUndo() {
	c, failure := failed(interceptor.Funcs{})
	did, err := rollback.Undo(context.Background(), failure) // package pass does, when the deadline is over
	fmt.Println(did, err)
	web := &appsv1.DaemonSet{}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(failure.Parent), web); err != nil {
		fmt.Println(err)
	}
	fmt.Println(web.Spec.Template.Spec.Containers[0].Image)
	// Output:
	// revision 2 (web-65944864cc) failed: no progress for 10m: pod web-x: CrashLoopBackOff; back to revision 1 (web-65d5f5b68d) <nil>
	// web:1
}

// TestWhatFollows: an answer, a stale read, or what is tried again.
func TestWhatFollows(t *testing.T) {
	refusing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		}}
	}
	resource := appsv1.Resource("daemonsets")
	for name, c := range map[string]struct {
		funcs        interceptor.Funcs
		change       func(*pass.Failure)
		refused, old bool
	}{
		"no right": {funcs: refusing(apierrors.NewForbidden(resource, "web", errors.New("no patch"))), refused: true},
		"denied":   {funcs: refusing(apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind(), "web", nil)), refused: true},
		"busy":     {funcs: refusing(apierrors.NewInternalError(errors.New("busy")))},
		"conflict": {funcs: refusing(apierrors.NewConflict(resource, "web", errors.New("changed"))), old: true},
		"edited":   {change: func(f *pass.Failure) { f.Parent.SetGeneration(99) }, old: true},
		"to nothing": {change: func(f *pass.Failure) {
			revisions := &appsv1.ControllerRevisionList{}
			if err := f.Live.List(t.Context(), revisions); err != nil {
				t.Fatal(err)
			}
			for _, r := range revisions.Items {
				r.Annotations = nil
				if err := f.Client.Update(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
			}
		}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, failure := failed(c.funcs)
			if c.change != nil {
				c.change(&failure)
			}
			did, err := rollback.Undo(t.Context(), failure)
			_, refused := errors.AsType[*pass.NotUndoneError](err)
			if err == nil || refused != c.refused || errors.Is(err, ownership.ErrStale) != c.old {
				t.Errorf("%q, %v", did, err)
			}
		})
	}
}
