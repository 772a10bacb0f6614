package history_test

// Creating a revision where something is in the way: taken names, lost responses, refusals, size.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// behind is a client whose lists of revisions show nothing: a cache that lags.
type behind struct{ client.Client }

func (behind) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// lagging returns a log whose cache shows no revision.
func lagging(s *server) *history.Log {
	return history.New(history.DaemonSet(), history.Options{Client: behind{s}, Live: s, Indexed: true})
}

// TestTakenName puts an object under the name that the first revision wants. Only a revision of this very parent
// with this very content may be used; everything else is somebody else's and stays as it is.
func TestTakenName(t *testing.T) {
	counts := map[string]*int32{"no count": nil, "count 3": new(int32(3))}
	for name, c := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		used   bool
	}{
		"same data and ours":        {func(*appsv1.ControllerRevision) {}, true},
		"same data in 1.33's form":  {func(o *appsv1.ControllerRevision) { o.Data.Raw = with133(o.Data.Raw) }, true},
		"other data":                {func(o *appsv1.ControllerRevision) { o.Data = revisionOf(t, agent(""), "agent:0", 1).Data }, false},
		"data that nobody can read": {func(o *appsv1.ControllerRevision) { o.Data.Raw = []byte(`{"spec":7}`) }, false},
		"other owner": {func(o *appsv1.ControllerRevision) {
			o.OwnerReferences[0].UID = "other"
			o.OwnerReferences[0].Name = "other"
		}, false},
		"old parent of our name":  {func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].UID = "old-uid" }, false},
		"no owner, not adoptable": {func(o *appsv1.ControllerRevision) { o.OwnerReferences = nil; o.Labels["app"] = "other" }, false},
		"owned, not controlled":   {func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].Controller = nil; o.Labels["app"] = "other" }, false},
		"terminating and ours": {func(o *appsv1.ControllerRevision) {
			now := metav1.Now()
			o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/wait"}
		}, true},
		"terminating without an owner": {func(o *appsv1.ControllerRevision) {
			now := metav1.Now()
			o.OwnerReferences, o.DeletionTimestamp, o.Finalizers = nil, &now, []string{"example.com/wait"}
		}, false},
	} {
		for countName, count := range counts {
			t.Run(name+"/"+countName, func(t *testing.T) {
				ds := agent("agent:1")
				ds.Status.CollisionCount = count
				taken := revisionOf(t, ds, "agent:1", 1)
				taken.Name, taken.Labels["controller-revision-hash"] = history.DaemonSet().Named(ds, taken.Data.Raw, count)
				c.change(taken)
				s := newServer(t, agent("agent:1"), taken)
				before := s.stored()[taken.Name].DeepCopy()

				log := newLog(s)
				if c.used { // the cache does not show it yet, or nobody would try to create it
					log = lagging(s)
				}
				_, recorded := mustPass(t, log, ds)
				if c.used {
					if recorded.Update.Name != taken.Name || recorded.CollisionCount != count || len(s.stored()) != 1 {
						t.Errorf("used %s with count %v; stored are %d", recorded.Update.Name, recorded.CollisionCount, len(s.stored()))
					}
					return
				}
				want := int32(1)
				if count != nil {
					want = *count + 1
				}
				if recorded.Update.Name == taken.Name || recorded.CollisionCount == nil || *recorded.CollisionCount != want {
					t.Errorf("used %s with count %v", recorded.Update.Name, recorded.CollisionCount)
				}
				if diff := cmp.Diff(before, s.stored()[taken.Name]); diff != "" {
					t.Errorf("the stranger was changed:\n%s", diff)
				}
				if len(s.Writes()) != 2 || len(s.stored()) != 2 { // the second create succeeded
					t.Errorf("wrote %v", s.Writes())
				}
			})
		}
	}
}

// One of ours without the labels by which revisions are listed is let go by a pass that sees it, and used by none: no
// list would show it.
func TestTakenNameWithoutLabels(t *testing.T) {
	ds := agent("agent:1")
	taken := revisionOf(t, ds, "agent:1", 1)
	taken.Labels = nil
	s := newServer(t, ds, taken)
	if _, _, err := pass(t.Context(), lagging(s), s.parent()); !errors.Is(err, history.ErrStale) {
		t.Errorf("error %v", err)
	}
	_, recorded := mustPass(t, newLog(s), s.parent())
	if recorded.Update.Name == taken.Name || len(s.stored()) != 2 || len(s.stored()[taken.Name].OwnerReferences) != 0 {
		t.Errorf("used %s; stored are %v", recorded.Update.Name, s.stored())
	}
}

// with133 puts creationTimestamp: null into a template, as Kubernetes before 1.34 did (kubernetes#134773).
func with133(data []byte) []byte {
	return []byte(strings.Replace(string(data), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
}

// A revision that a lost response hid is used under a number that is the newest.
func TestTakenNameWithALowNumber(t *testing.T) {
	ds := agent("agent:1")
	s := newServer(t, ds.DeepCopy(), revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:2", 2))
	hidden := func(o client.Object) bool { return imageOf(t, o.(*appsv1.ControllerRevision)) == "agent:1" }
	log := history.New(history.DaemonSet(), history.Options{Client: hiding{s, hidden}, Live: s, Indexed: true})
	_, recorded := mustPass(t, log, s.parent())
	if recorded.Update.Number != 3 || recorded.CollisionCount != nil {
		t.Errorf("revision %d, count %v", recorded.Update.Number, recorded.CollisionCount)
	}
	if diff := cmp.Diff(map[string]int64{"agent:1": 3, "agent:2": 2}, s.numbers()); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}

// TestLostResponse has the create carried out and answered with a timeout: whoever tries again finds what the
// first try made (kubernetes#56355, #55159).
func TestLostResponse(t *testing.T) {
	for name, again := range map[string]func(*server) *history.Log{
		"fresh cache":   func(s *server) *history.Log { return newLog(s) },
		"lagging cache": lagging,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"))
			s.After = fail("create", apierrors.NewTimeoutError("the response got lost", 0))
			if _, _, err := pass(t.Context(), lagging(s), s.parent()); !apierrors.IsTimeout(err) {
				t.Fatalf("the first try: %v", err)
			}
			s.After = nil
			_, recorded := mustPass(t, again(s), s.parent())
			if recorded.CollisionCount != nil || recorded.Update.Number != 1 || len(s.stored()) != 1 {
				t.Errorf("revision %d, count %v, %d stored", recorded.Update.Number, recorded.CollisionCount, len(s.stored()))
			}
		})
	}
}

// After any error of the create there is no result that a caller could act on, and no bumped count.
func TestRefusedCreate(t *testing.T) {
	exists := apierrors.NewAlreadyExists(revisions, "x")
	for name, c := range map[string]struct {
		before func(fakeserver.Call) error
		want   string
	}{
		"forbidden":         {fail("create", apierrors.NewForbidden(revisions, "x", errors.New("no"))), "forbidden"},
		"invalid":           {fail("create", apierrors.NewInvalid(schema.GroupKind{}, "x", nil)), "invalid"},
		"internal":          {fail("create", apierrors.NewInternalError(errors.New("boom"))), "boom"},
		"gone at read back": {fail("create", exists), "it existed and was deleted meanwhile"},
		"no read back": {func(c fakeserver.Call) error {
			return errors.Join(fail("create", exists)(c), failRevision("get", apierrors.NewInternalError(errors.New("boom")))(c))
		}, "read back revision"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"))
			s.Before = c.before
			_, recorded, err := pass(t.Context(), newLog(s), s.parent())
			if recorded != nil || err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, history.ErrStale) {
				t.Errorf("recorded %v, %v", recorded, err)
			}
			if len(s.stored()) != 0 || len(s.Writes()) != 1 {
				t.Errorf("wrote %v", s.Writes())
			}
		})
	}
}

func failRevision(verb string, err error) func(fakeserver.Call) error {
	return func(c fakeserver.Call) error {
		if c.Kind == "ControllerRevision" {
			return fail(verb, err)(c)
		}
		return nil
	}
}

func TestAllNamesTaken(t *testing.T) {
	ds := agent("agent:1")
	s := newServer(t, ds.DeepCopy())
	stranger := revisionOf(t, ds, "agent:1", 1)
	stranger.OwnerReferences = nil
	stranger.Labels = nil
	data := stranger.Data.Raw
	for i := range int32(16) {
		count := &i
		if i == 0 {
			count = nil
		}
		o := stranger.DeepCopy()
		o.Name, _ = history.DaemonSet().Named(ds, data, count)
		if err := s.Raw.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	_, recorded, err := pass(t.Context(), newLog(s), ds)
	want := "record a revision of DaemonSet default/agent: 16 names in a row are taken by other ControllerRevisions; delete those that have no owner"
	if recorded != nil || err == nil || err.Error() != want {
		t.Errorf("recorded %v, %v", recorded, err)
	}
	if got := len(s.stored()); got != 16 {
		t.Errorf("%d stored", got)
	}
}

func TestTooLarge(t *testing.T) {
	sized := func(size int) *appsv1.DaemonSet {
		ds := agent("agent:1")
		ds.Spec.Template.Annotations = map[string]string{"big": ""}
		empty, err := history.DaemonSet().Target().Snapshot(ds)
		if err != nil {
			t.Fatal(err)
		}
		ds.Spec.Template.Annotations["big"] = strings.Repeat("x", size-len(empty.Data()))
		return ds
	}
	for name, c := range map[string]struct {
		size    int
		answer  error
		creates int
		bytes   int
		want    string
	}{
		"just fits":         {history.MaxData, nil, 1, 0, ""},
		"a byte too long":   {history.MaxData + 1, nil, 0, history.MaxData + 1, "the snapshot has 1048577 bytes, and at most 1048576 can be stored; make the template smaller"},
		"server says 413":   {500, apierrors.NewRequestEntityTooLargeError("limit is 3"), 1, 500, "the snapshot of 500 bytes cannot be stored: Request entity too large: limit is 3"},
		"store says so":     {500, apierrors.NewInternalError(errors.New("etcdserver: request is too large")), 1, 500, "etcdserver: request is too large"},
		"server says other": {500, apierrors.NewInternalError(errors.New("etcdserver: too many requests")), 1, -1, "too many requests"},
	} {
		t.Run(name, func(t *testing.T) {
			ds := sized(c.size)
			s := newServer(t, ds.DeepCopy())
			if c.answer != nil {
				s.Before = fail("create", c.answer)
			}
			_, _, err := pass(t.Context(), newLog(s), ds)
			var large *history.TooLargeError
			if (c.bytes > 0) != errors.As(err, &large) || (err == nil) != (c.want == "") {
				t.Fatalf("%T: %v", err, err)
			}
			if c.want != "" && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
			if large != nil && (large.Bytes != c.bytes || !errors.Is(large.Err, c.answer)) {
				t.Errorf("%d bytes, %v", large.Bytes, large.Err)
			}
			if got := s.Calls("create"); len(got) != c.creates {
				t.Errorf("creates %v", got)
			}
		})
	}
}

// hiding is a client whose lists lack some objects: a cache that lags.
type hiding struct {
	client.Client
	hidden func(client.Object) bool
}

func (h hiding) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := h.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	revisions, ok := list.(*appsv1.ControllerRevisionList)
	if !ok {
		return fmt.Errorf("hiding among %T", list)
	}
	var shown []appsv1.ControllerRevision
	for i := range revisions.Items {
		if !h.hidden(&revisions.Items[i]) {
			shown = append(shown, revisions.Items[i])
		}
	}
	revisions.Items = shown
	return nil
}
