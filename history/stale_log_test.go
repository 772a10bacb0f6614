package history_test

// The cache of revisions lags, and nothing else does: what it does not show must not be recorded twice (H1), and
// its numbers must not be given twice (H2, kubernetes#80698).

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/revision"
)

func TestLaggingLog(t *testing.T) {
	for name, c := range map[string]struct {
		image  string
		shown  int64 // the highest number that the cache shows
		kind   revision.Change
		stale  bool
		number map[string]int64
	}{
		"a new revision, one is hidden":       {"agent:4", 2, revision.RollForward, true, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3}},
		"a new revision, all are hidden":      {"agent:4", 0, revision.RollForward, true, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3}},
		"a rollback, one is hidden":           {"agent:1", 2, revision.Rollback, true, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3}},
		"the one that is wanted is hidden":    {"agent:3", 2, revision.RollForward, false, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3}},
		"an old one that is wanted is hidden": {"agent:1", 0, revision.RollForward, true, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3}},
		"a new revision, all are shown":       {"agent:4", 3, revision.RollForward, false, map[string]int64{"agent:1": 1, "agent:2": 2, "agent:3": 3, "agent:4": 4}},
		"a rollback, all are shown":           {"agent:1", 3, revision.Rollback, false, map[string]int64{"agent:1": 4, "agent:2": 2, "agent:3": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := recordedTo(t, 3)
			newest := map[string]bool{}
			for _, r := range entries {
				newest[r.Name] = r.Number > c.shown
			}
			ds := s.image(c.image)
			var told []client.Object
			log := history.New(history.DaemonSet(), history.Options{
				Client: hiding{s, func(o client.Object) bool { return newest[o.GetName()] }}, Live: s, Indexed: true,
				Consistency: consistency{wrote: func(_ types.UID, o client.Object) { told = append(told, o) }},
			})
			v, recorded, err := pass(t.Context(), log, ds)
			if v == nil || v.Change != c.kind || errors.Is(err, history.ErrStale) != c.stale || (recorded == nil) != c.stale {
				t.Errorf("%+v, %v", recorded, err)
			}
			// The consistency store waits for what is hidden: nobody lists again before the cache shows it.
			if c.stale && (len(told) != 1 || !newest[told[0].GetName()] || told[0].GetResourceVersion() == "") {
				t.Errorf("told of %v", told)
			}
			if recorded != nil && recorded.CollisionCount != nil {
				t.Errorf("collision count %d", *recorded.CollisionCount)
			}
			if diff := cmp.Diff(c.number, s.numbers()); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			// With a cache that has caught up, the next pass gets there.
			_, recorded = mustPass(t, newLog(s), ds)
			for image, number := range s.numbers() {
				if image != c.image && number >= recorded.Update.Number {
					t.Errorf("%s has number %d, the update revision has %d", image, number, recorded.Update.Number)
				}
			}
		})
	}
}

// What the cache does not show has the name that is wanted, and the number. It is the revision that is wanted only if a
// lost response hides it: a revision with other content takes the number (H2).
func TestTakenNameWithTheNumber(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		stale  bool
	}{
		"the very same": {func(*appsv1.ControllerRevision) {}, false},
		"terminating": {func(o *appsv1.ControllerRevision) {
			now := metav1.Now()
			o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/wait"}
		}, false},
		"something else":    {func(o *appsv1.ControllerRevision) { o.Data = revisionOf(t, agent(""), "agent:0", 1).Data }, true},
		"not to be read":    {func(o *appsv1.ControllerRevision) { o.Data.Raw = []byte(`{"spec":7}`) }, true},
		"of another parent": {func(o *appsv1.ControllerRevision) { o.OwnerReferences[0].UID = "other" }, false},
		"a number below it": {func(o *appsv1.ControllerRevision) { o.Revision = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent("agent:2")
			hidden := revisionOf(t, ds, "agent:2", 2)
			c.change(hidden)
			s := newServer(t, ds, revisionOf(t, ds, "agent:1", 1), hidden)
			log := history.New(history.DaemonSet(), history.Options{
				Client: hiding{s, func(o client.Object) bool { return o.GetName() == hidden.Name }}, Live: s, Indexed: true,
			})
			_, recorded, err := pass(t.Context(), log, s.parent())
			if errors.Is(err, history.ErrStale) != c.stale || (recorded == nil) != c.stale {
				t.Errorf("%+v, %v", recorded, err)
			}
			if c.stale && len(s.Writes()) != 0 {
				t.Errorf("wrote %v", s.Writes())
			}
		})
	}
}

// The revision that a lost response hides is taken from the parent between the list of numbers and the look at it. Its
// number may come back with it, so that nothing else gets that number.
func TestTakenNameIsLetGo(t *testing.T) {
	ds := agent("agent:1")
	hidden := revisionOf(t, ds, "agent:1", 1)
	s := newServer(t, ds, hidden)
	log := history.New(history.DaemonSet(), history.Options{
		Client: hiding{s, func(client.Object) bool { return true }}, Live: s, Indexed: true,
	})
	s.Before = func(c fakeserver.Call) error {
		if c.Verb != "get" || c.Kind != "ControllerRevision" {
			return nil
		}
		o := s.stored()[hidden.Name]
		o.OwnerReferences, o.Labels["app"] = nil, "other"
		return s.Raw.Update(t.Context(), o)
	}
	_, recorded, err := pass(t.Context(), log, s.parent())
	if recorded != nil || !errors.Is(err, history.ErrStale) || len(s.stored()) != 1 {
		t.Errorf("%+v, %v, stored %v", recorded, err, s.numbers())
	}
}

// Another parent's revisions have numbers of their own, even where the labels are the same.
func TestNumbersOfOthers(t *testing.T) {
	ds := agent("agent:1")
	other := revisionOf(t, ds, "agent:9", 9)
	other.OwnerReferences[0].UID = "other"
	s := newServer(t, ds, other)
	if _, recorded := mustPass(t, newLog(s), s.parent()); recorded.Update.Number != 1 {
		t.Errorf("recorded as number %d", recorded.Update.Number)
	}
}

// A number that cannot be checked is not given.
func TestUncheckedNumber(t *testing.T) {
	s, _ := recordedTo(t, 1)
	ds := s.image("agent:2")
	lists := 0
	s.Before = func(c fakeserver.Call) error {
		if c.Verb != "list" {
			return nil
		}
		if lists++; lists <= 2 { // Claim's
			return nil
		}
		return apierrors.NewInternalError(errors.New("boom"))
	}
	if _, recorded, err := pass(t.Context(), newLog(s), ds); recorded != nil || !apierrors.IsInternalError(err) || len(s.Writes()) != 0 {
		t.Errorf("%+v, %v", recorded, err)
	}
}

// Whoever makes the cache wait for our own writes is told of each of them, and of what is found by a read past the
// cache, in the version that the cache has to show.
func TestToldOfEveryWrite(t *testing.T) {
	unlabelled := func(o *appsv1.ControllerRevision) { delete(o.Labels, "controller-revision-hash") }
	for name, c := range map[string]struct {
		image   string
		change  func(*appsv1.ControllerRevision) // of agent:1, which is not the newest
		lagging bool
	}{
		"a create":       {"agent:3", nil, false},
		"a renumbering":  {"agent:1", nil, false},
		"a stamp":        {"agent:2", nil, false},
		"a label":        {"agent:2", unlabelled, false},
		"what was found": {"agent:2", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent(c.image)
			first := revisionOf(t, ds, "agent:1", 1)
			if c.change != nil {
				c.change(first)
			}
			s := newServer(t, ds, first, revisionOf(t, ds, "agent:2", 2))
			told := map[string]string{}
			options := history.Options{Client: s, Live: s, Indexed: true, Consistency: consistency{wrote: func(parent types.UID, o client.Object) {
				told[string(parent)+"/"+o.GetName()] = o.GetResourceVersion()
			}}}
			if c.lagging {
				options.Client = hiding{s, func(o client.Object) bool { return o.(*appsv1.ControllerRevision).Revision == 2 }}
			}
			_, recorded, err := pass(t.Context(), history.New(history.DaemonSet(), options), s.parent())
			if err != nil && !errors.Is(err, history.ErrStale) {
				t.Fatal(err)
			}
			want := map[string]string{"agent-uid/" + first.Name: s.stored()[first.Name].ResourceVersion}
			if recorded != nil {
				want = map[string]string{"agent-uid/" + recorded.Update.Name: s.stored()[recorded.Update.Name].ResourceVersion}
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("told of (-want +got):\n%s", diff)
			}
		})
	}
}

// The cache shows revisions that are deleted. All of them are waited for at once, oldest first, so that the order of a
// map decides nothing.
func TestDeletedRevisionsAreWaitedFor(t *testing.T) {
	s, entries := recordedTo(t, 4)
	var want []string
	for _, o := range s.stored() {
		if i := slices.IndexFunc(entries, func(r revision.Revision) bool { return r.Name == o.Name }); entries[i].Number <= 3 {
			if err := s.Raw.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range entries[:3] {
		want = append(want, r.Name+" "+string(r.UID)+" "+r.ResourceVersion)
	}
	for range 8 {
		var outdated []string
		log := history.New(history.DaemonSet(), history.Options{
			Client: s, Indexed: true, Consistency: consistency{outdated: func(_ types.UID, o client.Object) {
				outdated = append(outdated, o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
			}},
		})
		err := log.Confirm(t.Context(), s.parent(), entries)
		if !errors.Is(err, history.ErrStale) || !strings.Contains(err.Error(), entries[0].Name) {
			t.Errorf("%v, want one that names %s", err, entries[0].Name)
		}
		if diff := cmp.Diff(want, outdated); diff != "" {
			t.Errorf("waited for (-want +got):\n%s", diff)
		}
	}
}
