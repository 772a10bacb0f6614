package history_test

// Changing revisions that exist: renumbering on a rollback, stamps, labels that are missing, duplicates; and the fence
// that keeps an old read of the parent from writing anything (H7).

import (
	"context"
	"encoding/json"
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
	"github.com/cairn-dev/cairn/revision"
)

// twoRevisions is a server where agent:1 and then agent:2 were recorded.
func twoRevisions(t *testing.T) *server {
	t.Helper()
	s := newServer(t, agent("agent:1"))
	mustPass(t, newLog(s), s.parent())
	mustPass(t, newLog(s), s.image("agent:2"))
	return s
}

func TestRenumber(t *testing.T) {
	s := twoRevisions(t)
	ds := s.image("agent:1")
	before := s.stored()
	s.Forget()
	v, recorded := mustPass(t, newLog(s), ds)
	if v.Change != revision.Rollback || recorded.Update.Number != 3 || recorded.Update.Hash == "" || recorded.Update.Stamp.Generation != 3 {
		t.Errorf("%s to %+v", v.Change, recorded.Update)
	}
	writes := s.Writes()
	if len(writes) != 1 {
		t.Fatalf("wrote %v", writes)
	}
	// Exactly the number, the stamp and the number before, of exactly the object that was read.
	o := before[recorded.Update.Name]
	var got map[string]any
	if err := json.Unmarshal([]byte(writes[0].Body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"revision": 3.0, "metadata": map[string]any{
		"uid": string(o.UID), "resourceVersion": o.ResourceVersion,
		"annotations": map[string]any{
			history.ParentUIDAnnotation: "agent-uid", history.ParentGenerationAnnotation: "3", history.WasRevisionAnnotation: "1",
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if recorded.Update.ResourceVersion == o.ResourceVersion || recorded.Update.ResourceVersion != s.stored()[o.Name].ResourceVersion {
		t.Errorf("returned version %s", recorded.Update.ResourceVersion)
	}
}

// Somebody else wrote first: nothing is done, and nothing is half done.
func TestRenumberConflicts(t *testing.T) {
	for name, meanwhile := range map[string]func(*server, *appsv1.ControllerRevision) error{
		"changed": func(s *server, o *appsv1.ControllerRevision) error {
			o.Annotations["seen"] = "yes"
			return s.Raw.Update(context.Background(), o)
		},
		"replaced": func(s *server, o *appsv1.ControllerRevision) error {
			twin := o.DeepCopy()
			twin.UID, twin.ResourceVersion = "twin", ""
			return errors.Join(s.Raw.Delete(context.Background(), o), s.Raw.Create(context.Background(), twin))
		},
		"deleted": func(s *server, o *appsv1.ControllerRevision) error { return s.Raw.Delete(context.Background(), o) },
	} {
		t.Run(name, func(t *testing.T) {
			s := twoRevisions(t)
			ds, log := s.image("agent:1"), newLog(s)
			v := resolve(t, log, ds)
			var before map[string]*appsv1.ControllerRevision
			s.Forget()
			s.Before = func(c fakeserver.Call) error { // after the fence
				if c.Verb != "patch" {
					return nil
				}
				err := meanwhile(s, s.stored()[v.Update.Name].DeepCopy())
				before = s.stored()
				return err
			}
			recorded, err := log.Record(t.Context(), ds, v, nil, nil)
			if recorded != nil || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("recorded %v, %v", recorded, err)
			}
			if diff := cmp.Diff(before, s.stored()); diff != "" || len(s.Writes()) != 1 {
				t.Errorf("wrote %v:\n%s", s.Writes(), diff)
			}
			s.Before = nil
			s.Forget()
			if _, err := log.Record(t.Context(), ds, v, nil, nil); !errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 {
				t.Errorf("and again: %v, wrote %v", err, s.Writes())
			}
		})
	}
}

// TestStaleParent has the live parent differ from the one that was read, for every write that must not rest on an old
// read. Nothing is written.
func TestStaleParent(t *testing.T) {
	for name, change := range map[string]func(*server){
		"newer generation": func(s *server) { s.image("agent:9") },
		"gone":             func(s *server) { s.drop(s.parent()) },
		"other UID": func(s *server) {
			ds := s.parent()
			s.drop(ds)
			ds.UID, ds.ResourceVersion = "new-uid", ""
			s.add(ds)
		},
		"being deleted": func(s *server) {
			ds := s.parent()
			ds.Finalizers = []string{"example.com/wait"}
			if err := s.Raw.Update(context.Background(), ds); err != nil {
				s.t.Fatal(err)
			}
			s.drop(ds)
		},
	} {
		for image, kind := range map[string]revision.Change{"agent:1": revision.Rollback, "agent:3": revision.RollForward} {
			t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) {
				s := twoRevisions(t)
				ds, log := s.image(image), newLog(s)
				v := resolve(t, log, ds)
				if v.Change != kind {
					t.Fatalf("%s: %s", v.Change, v.Reason)
				}
				change(s)
				s.Forget()
				if recorded, err := log.Record(t.Context(), ds, v, nil, nil); recorded != nil || !errors.Is(err, history.ErrStale) {
					t.Errorf("recorded %v, %v", recorded, err)
				}
				if len(s.Writes()) != 0 {
					t.Errorf("wrote %v", s.Writes())
				}
			})
		}
	}
}

func TestParentThatCannotBeRead(t *testing.T) {
	s := twoRevisions(t)
	ds := s.image("agent:1")
	s.Forget()
	s.Before = func(c fakeserver.Call) error {
		if c.Kind == "DaemonSet" {
			return apierrors.NewInternalError(errors.New("boom"))
		}
		return nil
	}
	if _, _, err := pass(t.Context(), newLog(s), ds); !apierrors.IsInternalError(err) || errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 {
		t.Errorf("wrote %v, %v", s.Writes(), err)
	}
}

// TestFence reads a parent that is older than the stamp on the log.
func TestFence(t *testing.T) {
	s := twoRevisions(t)
	old := s.parent()
	mustPass(t, newLog(s), s.image("agent:3"))
	s.Forget()
	if v, _, err := pass(t.Context(), newLog(s), old); v != nil || !errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 {
		t.Errorf("%v, wrote %v, %v", v, s.Writes(), err)
	}
	// A stamp that the API server itself contradicts was forged, or comes from a backup, and blocks nobody.
	for _, o := range s.stored() {
		o.Annotations[history.ParentGenerationAnnotation] = "99"
		if err := s.Raw.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	v, _ := mustPass(t, newLog(s), s.parent())
	if v.Change != revision.NoChange || v.Update.Number != 3 {
		t.Errorf("%s: %s", v.Change, v.Reason)
	}
}

// TestMissingLabels: revisions of Kubernetes 1.7 carry no hash label; their own name becomes its value.
func TestMissingLabels(t *testing.T) {
	ds := agent("agent:2")
	first, second := revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:2", 2)
	first.Name, second.Name = "agent-old", "agent-"+strings.Repeat("long", 16)
	delete(first.Labels, "controller-revision-hash")
	delete(second.Labels, "controller-revision-hash")
	s := newServer(t, ds, first, second)
	log := newLog(s)
	if _, _, err := pass(t.Context(), log, s.parent()); !errors.Is(err, history.ErrStale) {
		t.Errorf("%v, want a fresh pass", err)
	}
	for _, w := range s.Writes() {
		if w.UID == "" || w.Version == "" {
			t.Errorf("no precondition in %s", w.Body)
		}
	}
	for name, want := range map[string]string{first.Name: "agent-old", second.Name: strings.Repeat("long", 16)[1:]} {
		if got := s.stored()[name].Labels; got["controller-revision-hash"] != want || got["app"] != "agent" {
			t.Errorf("%s is labelled %v", name, got)
		}
	}
	v, recorded := mustPass(t, log, s.parent())
	if v.Change != revision.NoChange || recorded.Update.Name != second.Name || len(v.Relabel) != 0 {
		t.Errorf("%s: %s", v.Change, v.Reason)
	}
}

// TestALabelThatIsTaken: the name of a revision without a label is the hash of another revision, that of what pods run.
func TestALabelThatIsTaken(t *testing.T) {
	ds := agent("agent:2")
	first, second := revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:2", 2)
	first.Name, first.UID = "agent-old", "first-uid"
	delete(first.Labels, "controller-revision-hash")
	second.Labels["controller-revision-hash"] = "agent-old"
	s := newServer(t, ds, first, second)
	log := newLog(s)
	if _, _, err := pass(t.Context(), log, s.parent()); !errors.Is(err, history.ErrStale) {
		t.Errorf("%v, want a fresh pass", err)
	}
	if got := s.stored()[first.Name].Labels["controller-revision-hash"]; got != "agent-old-first-uid" {
		t.Errorf("it is labelled %q", got)
	}
}

// TestLabelsThatAreEqual: a user gives a revision the label of another one, and two names without a label end alike.
func TestLabelsThatAreEqual(t *testing.T) {
	ds, tail := agent("agent:2"), strings.Repeat("x", 63)
	ours, planted := revisionOf(t, ds, "agent:2", 2), revisionOf(t, ds, "agent:1", 1)
	planted.Name, planted.UID = "planted", "planted-uid"
	planted.Labels["controller-revision-hash"] = ours.Labels["controller-revision-hash"]
	one, two := revisionOf(t, ds, "agent:3", 3), revisionOf(t, ds, "agent:4", 4)
	one.Name, one.UID, two.Name, two.UID = "a"+tail, "one-uid", "b"+tail, "two-uid"
	delete(one.Labels, "controller-revision-hash")
	delete(two.Labels, "controller-revision-hash")
	s := newServer(t, ds, ours, planted, one, two)
	if _, _, err := pass(t.Context(), newLog(s), s.parent()); !errors.Is(err, history.ErrStale) {
		t.Errorf("%v, want a fresh pass", err)
	}
	labels := map[string]string{}
	for name, o := range s.stored() {
		labels[o.Labels["controller-revision-hash"]] = name
	}
	if len(labels) != 4 || labels["planted"] != "planted" || labels[ours.Labels["controller-revision-hash"]] != ours.Name {
		t.Errorf("%v", labels)
	}
}

// puttingBack is an API server whose admission puts a hash label back onto the revisions that are patched.
type puttingBack struct {
	client.Client

	raw   client.Client
	label string
}

func (c puttingBack) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := c.Client.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	o.GetLabels()["controller-revision-hash"] = c.label
	return c.raw.Update(ctx, o)
}

// TestALabelThatCannotBeWritten: a planted revision has the hash label of the update revision. The API server refuses
// to change that label, or admission restores it. Each revision has its own hash anyway, edits are recorded, and the
// caller gets a [history.LabelError].
func TestALabelThatCannotBeWritten(t *testing.T) {
	ours := revisionOf(t, agent(""), "agent:2", 2)
	label := ours.Labels["controller-revision-hash"]
	for name, behind := range map[string]func(*server) client.Client{
		"refused": func(s *server) client.Client {
			s.Before = func(c fakeserver.Call) error {
				if c.Name == "planted" {
					return fail("patch", apierrors.NewForbidden(schema.GroupResource{}, c.Name, errors.New("keep it")))(c)
				}
				return nil
			}
			return s
		},
		"put back": func(s *server) client.Client { return puttingBack{s, s.Raw, label} },
	} {
		planted := revisionOf(t, agent(""), "agent:evil", 5)
		planted.Name, planted.UID, planted.Labels["controller-revision-hash"] = "planted", "planted-uid", label
		s := newServer(t, agent("agent:2"), ours.DeepCopy(), planted)
		log := newLog(behind(s))
		var failed *history.LabelError
		_, recorded := mustPass(t, log, s.parent())
		if !errors.As(recorded.Unlabelled, &failed) || failed.Revision != "planted" || recorded.Update.Hash != label {
			t.Errorf("%s: %v, the update revision has hash %q", name, recorded.Unlabelled, recorded.Update.Hash)
		}
		_, recorded = mustPass(t, log, s.image("agent:3"))
		if got := imageOf(t, s.stored()[recorded.Update.Name]); got != "agent:3" || recorded.Unlabelled == nil {
			t.Errorf("%s: recorded %q, %v", name, got, recorded.Unlabelled)
		}
		for _, e := range resolve(t, log, s.parent()).Entries {
			if (e.Hash == label) != (e.Name == ours.Name) {
				t.Errorf("%s: %s has hash %q", name, e.Name, e.Hash)
			}
		}
	}
}

// TestTwoNamesOfALongDaemonSet: its revisions are named <parent>-<hash>, uncut. One with the cut name was planted.
func TestTwoNamesOfALongDaemonSet(t *testing.T) {
	ds := agent("agent:2")
	ds.Name = strings.Repeat("x", 230)
	ours, planted := revisionOf(t, ds, "agent:2", 2), revisionOf(t, ds, "agent:evil", 5)
	label := ours.Labels["controller-revision-hash"]
	planted.Name, planted.Labels["controller-revision-hash"] = revision.Name(ds.Name, label), label
	entries := history.New(history.DaemonSet(), history.Options{Client: newServer(t)}).Revisions(ds, []client.Object{ours, planted})
	for _, e := range entries {
		if (e.Hash == label) != (e.Name == ours.Name) || e.Name == planted.Name != e.Unlabelled {
			t.Errorf("revision %d has hash %q", e.Number, e.Hash)
		}
	}
}

// TestALabelThatIsTakenAway: admission strips the hash label of each revision of a StatefulSet. Its pods carry the name
// of their revision, so nothing is written.
func TestALabelThatIsTakenAway(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent-uid", Generation: 1},
		Spec:       appsv1.StatefulSetSpec{Selector: agent("").Spec.Selector, Template: agent("agent:1").Spec.Template},
	}
	s := newServer(t, set.DeepCopy())
	log := history.New(history.StatefulSet(), history.Options{Client: s, Indexed: true})
	for range 2 {
		entries, err := log.Claim(t.Context(), set, matching)
		if err != nil {
			t.Fatal(err)
		}
		v, err := log.Resolve(t.Context(), set, entries)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := log.Record(t.Context(), set, v, nil, nil)
		if err != nil || recorded.Unlabelled != nil {
			t.Fatalf("%+v, %v", recorded, err)
		}
		stored := s.stored()[recorded.Update.Name]
		delete(stored.Labels, "controller.kubernetes.io/hash")
		if err := s.Raw.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Writes()) != 1 {
		t.Errorf("%v", s.Writes())
	}
}

// withDuplicate has agent:1 recorded twice (kubernetes#111280).
func withDuplicate(t *testing.T) (*server, *history.Log, *revision.Duplicate, *history.Verdict) {
	t.Helper()
	ds := agent("agent:2")
	older, newer := revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:1", 2)
	older.Name, older.UID, older.Labels["controller-revision-hash"] = "agent-twin", "twin", "twin"
	s := newServer(t, ds, older, newer, revisionOf(t, ds, "agent:2", 3))
	log := newLog(s)
	v := resolve(t, log, s.parent())
	if v.Change != revision.NoChange || len(v.Duplicates) != 1 {
		t.Fatalf("%s with %d duplicates", v.Change, len(v.Duplicates))
	}
	s.Forget()
	return s, log, &v.Duplicates[0], v
}

// TestDuplicates has agent:1 recorded twice (kubernetes#111280). Its children are pointed at the one that stays before
// the other one goes.
func TestDuplicates(t *testing.T) {
	t.Run("relabelled, then deleted", func(t *testing.T) {
		s, log, d, v := withDuplicate(t)
		var asked []string
		recorded, err := log.Record(t.Context(), s.parent(), v, nil, func(_ context.Context, from, to revision.Revision) error {
			if len(s.Writes()) != 0 {
				t.Errorf("relabelled after %v", s.Writes())
			}
			asked = append(asked, from.Hash+" to "+to.Hash)
			return nil
		})
		if err != nil || len(recorded.Deleted) != 1 || recorded.Deleted[0].UID != "twin" {
			t.Fatalf("%+v, %v", recorded, err)
		}
		if diff := cmp.Diff([]string{"twin to " + d.Of.Hash}, asked); diff != "" {
			t.Errorf("asked to relabel (-want +got):\n%s", diff)
		}
		writes := s.Writes()
		if len(writes) != 2 || writes[1].Verb != "patch" || writes[0].Verb != "delete" || // the patch stamps agent:2
			writes[0].UID != "twin" || writes[0].Version != d.Revision.ResourceVersion {
			t.Errorf("wrote %+v", writes)
		}
		if diff := cmp.Diff(map[string]int64{"agent:1": 2, "agent:2": 3}, s.numbers()); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
	})
	t.Run("not relabelled, kept", func(t *testing.T) {
		s, log, _, v := withDuplicate(t)
		boom := errors.New("boom")
		recorded, err := log.Record(t.Context(), s.parent(), v, nil, func(context.Context, revision.Revision, revision.Revision) error { return boom })
		if recorded != nil || !errors.Is(err, boom) || !strings.Contains(err.Error(), "point the children of revision agent-twin") {
			t.Errorf("%+v, %v", recorded, err)
		}
		if len(s.Writes()) != 0 || len(s.stored()) != 3 {
			t.Errorf("wrote %v", s.Writes())
		}
	})
	t.Run("not deleted, recorded nevertheless", func(t *testing.T) {
		s, log, _, v := withDuplicate(t)
		s.Before = fail("delete", apierrors.NewInternalError(errors.New("boom")))
		recorded, err := log.Record(t.Context(), s.parent(), v, nil, func(context.Context, revision.Revision, revision.Revision) error { return nil })
		if err != nil || !apierrors.IsInternalError(recorded.Kept) || recorded.Update.Name == "" || len(recorded.Deleted) > 0 {
			t.Errorf("%+v, %v", recorded, err)
		}
	})
}

// TestDuplicateOfWhatIsGone: past the cache, the revision that was to stay is not the parent's any more. Both are kept,
// and no child is pointed at it: with both gone, what the children came from would be lost (H3).
func TestDuplicateOfWhatIsGone(t *testing.T) {
	for name, change := range map[string]func(*server, *appsv1.ControllerRevision) error{
		"gone": func(s *server, o *appsv1.ControllerRevision) error { return s.Raw.Delete(context.Background(), o) },
		"made again": func(s *server, o *appsv1.ControllerRevision) error {
			again := o.DeepCopy()
			again.UID, again.ResourceVersion = "again", ""
			return errors.Join(s.Raw.Delete(context.Background(), o), s.Raw.Create(context.Background(), again))
		},
		"without its labels": func(s *server, o *appsv1.ControllerRevision) error {
			o.Labels = nil
			return s.Raw.Update(context.Background(), o)
		},
		"terminating": func(s *server, o *appsv1.ControllerRevision) error {
			o.Finalizers = []string{"example.com/wait"}
			return errors.Join(s.Raw.Update(context.Background(), o), s.Raw.Delete(context.Background(), o))
		},
		"let go": func(s *server, o *appsv1.ControllerRevision) error {
			o.OwnerReferences = nil
			return s.Raw.Update(context.Background(), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, log, d, v := withDuplicate(t)
			if err := change(s, s.stored()[d.Of.Name]); err != nil {
				t.Fatal(err)
			}
			recorded, err := log.Record(t.Context(), s.parent(), v, nil, func(context.Context, revision.Revision, revision.Revision) error {
				t.Error("children were pointed at it")
				return nil
			})
			if recorded != nil || !errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 || s.stored()["agent-twin"] == nil {
				t.Errorf("%+v, %v, wrote %v", recorded, err, s.Writes())
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		s, log, _, v := withDuplicate(t)
		s.Before = failRevision("get", apierrors.NewInternalError(errors.New("boom")))
		recorded, err := log.Record(t.Context(), s.parent(), v, nil, nil)
		if recorded != nil || !apierrors.IsInternalError(err) || errors.Is(err, history.ErrStale) || len(s.Writes()) != 0 {
			t.Errorf("%+v, %v, wrote %v", recorded, err, s.Writes())
		}
	})
}

func (s *server) drop(ds *appsv1.DaemonSet) {
	s.t.Helper()
	if err := s.Raw.Delete(context.Background(), ds); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) add(ds *appsv1.DaemonSet) {
	s.t.Helper()
	ds.DeletionTimestamp = (*metav1.Time)(nil)
	if err := s.Raw.Create(context.Background(), ds); err != nil {
		s.t.Fatal(err)
	}
}

// A revision that its parent goes back to gets those annotations again that are about the edit; in between nothing is
// written.
func TestAnnotationsOfAnUndo(t *testing.T) {
	s := newServer(t, agent("agent:1"))
	format, edits := history.DaemonSet(), 0
	format.Anew = func(client.Object) map[string]any {
		edits++
		return map[string]any{"by": fmt.Sprint("edit ", edits), "kubernetes.io/change-cause": nil}
	}
	l := history.New(format, history.Options{Client: s, Indexed: true})
	_, first := mustPass(t, l, s.edit(func(ds *appsv1.DaemonSet) { ds.Annotations = map[string]string{"kubernetes.io/change-cause": "first"} }))
	mustPass(t, l, s.image("agent:2"))
	mustPass(t, l, s.parent())
	if edits != 0 {
		t.Errorf("asked %d times for new revisions", edits)
	}
	mustPass(t, l, s.image("agent:1"))
	got := s.stored()[first.Update.Name].Annotations
	if _, left := got["kubernetes.io/change-cause"]; got["by"] != "edit 1" || left || edits != 1 {
		t.Errorf("asked %d times: %v", edits, got)
	}
}
