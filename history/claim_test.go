package history_test

// Whose revision is it? Adoption, release, and what is never touched: other kinds, other parents, other namespaces; and
// objects that come from a cache are only read.

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/revision"
)

// one changes a revision of agent:1 as change says.
func one(t *testing.T, change func(*appsv1.ControllerRevision)) *appsv1.ControllerRevision {
	t.Helper()
	o := revisionOf(t, agent("agent:1"), "agent:1", 1)
	change(o)
	return o
}

func TestClaim(t *testing.T) {
	orphan := func(o *appsv1.ControllerRevision) { o.OwnerReferences = nil }
	for name, c := range map[string]struct {
		change  func(*appsv1.ControllerRevision)
		claimed bool
		owner   types.UID
	}{
		"ours":                     {func(*appsv1.ControllerRevision) {}, true, "agent-uid"},
		"an orphan":                {orphan, true, "agent-uid"},
		"an orphan without a hash": {func(o *appsv1.ControllerRevision) { orphan(o); delete(o.Labels, "controller-revision-hash") }, true, "agent-uid"},
		"an orphan of a StatefulSet": {func(o *appsv1.ControllerRevision) {
			orphan(o)
			delete(o.Labels, "controller-revision-hash")
			o.Labels["controller.kubernetes.io/hash"] = "x"
		}, false, ""},
		"an orphan that does not match":  {func(o *appsv1.ControllerRevision) { orphan(o); o.Labels["app"] = "other" }, false, ""},
		"an orphan of another namespace": {func(o *appsv1.ControllerRevision) { orphan(o); o.Namespace = "other" }, false, ""},
		"ours, in another namespace":     {func(o *appsv1.ControllerRevision) { o.Namespace = "other" }, false, "agent-uid"},
		"an orphan that goes": {func(o *appsv1.ControllerRevision) {
			orphan(o)
			now := metav1.Now()
			o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/wait"}
		}, false, ""},
		"somebody else's":        {func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].UID = "other" }, false, "other"},
		"our namesake's":         {func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].UID = "old-uid" }, false, "old-uid"},
		"ours, matching no more": {func(o *appsv1.ControllerRevision) { o.Labels["app"] = "other" }, false, ""},
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/indexed %v", name, indexed), func(t *testing.T) {
				o := one(t, c.change)
				s := newServer(t, agent("agent:1"), o)
				wrote := 0
				log := history.New(history.DaemonSet(), history.Options{
					Client: s, Indexed: indexed,
					Consistency: consistency{wrote: func(parent types.UID, _ client.Object) {
						if parent == "agent-uid" {
							wrote++
						}
					}},
				})
				entries, err := log.Claim(t.Context(), s.parent(), matching)
				if err != nil || (len(entries) == 1) != c.claimed {
					t.Errorf("claimed %d, %v", len(entries), err)
				}
				var after appsv1.ControllerRevision
				if err := s.Raw.Get(t.Context(), client.ObjectKeyFromObject(o), &after); err != nil {
					t.Fatal(err)
				}
				var owner types.UID
				if ref := metav1.GetControllerOf(&after); ref != nil {
					owner = ref.UID
				}
				if owner != c.owner {
					t.Errorf("its controller is %q, want %q", owner, c.owner)
				}
				changed := 0
				if before := metav1.GetControllerOf(o); (before == nil) != (owner == "") {
					changed = 1
				}
				if len(s.Writes()) != changed || wrote != changed {
					t.Errorf("%d changes wanted, wrote %v, told of %d", changed, s.Writes(), wrote)
				}
				for _, w := range s.Writes() {
					if w.UID != string(o.UID) || w.Version == "" {
						t.Errorf("no precondition in %s", w.Body)
					}
				}
			})
		}
	}
}

// An adopted revision is used at once, and an orphan's history is restarted by nobody.
func TestAdoptedHistoryIsUsed(t *testing.T) {
	orphan := one(t, func(o *appsv1.ControllerRevision) { o.OwnerReferences = nil; o.Revision = 5 })
	s := newServer(t, agent("agent:1"), orphan)
	v, recorded := mustPass(t, newLog(s), s.parent())
	if v.Change != revision.NoChange || recorded.Update.Name != orphan.Name || recorded.Update.Number != 5 || len(s.Calls("create")) != 0 {
		t.Errorf("%s: %s", v.Change, v.Reason)
	}
}

// Nothing is adopted for a parent that is not there any more as it was read, and nothing happens on any other error.
func TestClaimErrors(t *testing.T) {
	boom := apierrors.NewInternalError(errors.New("boom"))
	for name, c := range map[string]struct {
		before func(fakeserver.Call) error
		want   string
	}{
		"list":  {fail("list", boom), "boom"},
		"get":   {fail("get", boom), "boom"},
		"patch": {fail("patch", boom), "claim the revisions of DaemonSet default/agent"},
		"race":  {fail("patch", apierrors.NewConflict(revisions, "x", errors.New("changed"))), "changed while it was being adopted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"), one(t, func(o *appsv1.ControllerRevision) { o.OwnerReferences = nil }))
			s.Before = c.before
			entries, err := newLog(s).Claim(t.Context(), s.parent(), matching)
			if len(entries) != 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("claimed %d, %v", len(entries), err)
			}
		})
	}
	s := newServer(t, agent("agent:1"))
	if _, err := newLog(s).Claim(t.Context(), s.parent(), labels.Everything()); err == nil || !strings.Contains(err.Error(), "empty selector") {
		t.Errorf("an empty selector: %v", err)
	}
	s.Before = fail("list", boom)
	if _, err := newLog(s).List(t.Context(), s.parent()); !apierrors.IsInternalError(err) {
		t.Errorf("list: %v", err)
	}
}

// TestOddRevisions reads what other people wrote: it is kept, and no pass fails over it.
func TestOddRevisions(t *testing.T) {
	broken := one(t, func(o *appsv1.ControllerRevision) {
		o.Name, o.UID, o.Revision = "agent-broken", "broken", 7
		o.Data.Raw = []byte(`{"spec":{"template":"none"}}`)
		o.Annotations = map[string]string{history.ParentUIDAnnotation: "agent-uid", history.ParentGenerationAnnotation: "one"}
	})
	s := newServer(t, agent("agent:1"), broken)
	log := newLog(s)
	for range 2 { // the second time from what is remembered
		entries, err := log.List(t.Context(), s.parent())
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d revisions, %v", len(entries), err)
		}
		var undecodable *revision.UndecodableError
		if r := entries[0]; !errors.As(r.Err, &undecodable) || undecodable.Revision != "agent-broken" || r.Snapshot != nil || r.Stamp != (revision.Stamp{}) {
			t.Errorf("%+v", r)
		}
	}
	v, recorded := mustPass(t, log, s.parent())
	if v.Change != revision.RollForward || recorded.Update.Number != 8 || len(v.Undecodable) != 1 || len(s.stored()) != 2 {
		t.Errorf("%s to %d, %d undecodable", v.Change, recorded.Update.Number, len(v.Undecodable))
	}
}

// sharing is a cache that hands out its own objects, as one without deep copies does.
type sharing struct {
	client.Client
	items []appsv1.ControllerRevision
}

func (c sharing) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	into := list.(*appsv1.ControllerRevisionList)
	into.Items = nil
	for _, item := range c.items { // the struct is copied, what is below it is shared
		orphan := metav1.GetControllerOfNoCopy(&item) == nil
		if wanted := options.FieldSelector == nil || strings.HasSuffix(options.FieldSelector.String(), "=none") == orphan; wanted {
			into.Items = append(into.Items, item)
		}
	}
	return nil
}

func TestCachedObjectsAreOnlyRead(t *testing.T) {
	ds := agent("agent:2")
	orphan := revisionOf(t, ds, "agent:1", 1)
	orphan.OwnerReferences = nil
	released := revisionOf(t, ds, "agent:0", 1)
	released.Labels["app"] = "other"
	unlabelled := revisionOf(t, ds, "agent:3", 3)
	delete(unlabelled.Labels, "controller-revision-hash")
	s := newServer(t, ds, orphan, released, unlabelled, revisionOf(t, ds, "agent:2", 2))
	parent := s.parent()
	cache := sharing{Client: s}
	for _, o := range s.stored() {
		cache.items = append(cache.items, *o)
	}
	var before []appsv1.ControllerRevision
	for i := range cache.items {
		before = append(before, *cache.items[i].DeepCopy())
	}
	log := history.New(history.DaemonSet(), history.Options{Client: cache, Live: s, Indexed: true})
	if _, _, err := pass(t.Context(), log, parent); !errors.Is(err, history.ErrStale) {
		t.Errorf("%v, want a fresh pass after the label", err)
	}
	if len(s.Writes()) != 3 { // adopted, released, labelled
		t.Errorf("wrote %v", s.Writes())
	}
	if diff := cmp.Diff(before, cache.items); diff != "" {
		t.Errorf("the cache's objects changed:\n%s", diff)
	}
}
