package history_test

// Truncation deletes only what nothing depends on, as it was read, and never more than it knows about.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/revision"
)

// recordedTo returns a server where images agent:1 to agent:n were recorded, and the revisions as claimed.
func recordedTo(t *testing.T, n int) (*server, []revision.Revision) {
	t.Helper()
	s := newServer(t, agent("agent:1"))
	log := newLog(s)
	mustPass(t, log, s.parent())
	for i := 2; i <= n; i++ {
		mustPass(t, log, s.image(fmt.Sprintf("agent:%d", i)))
	}
	entries, err := log.Claim(t.Context(), s.parent(), matching)
	if err != nil || len(entries) != n {
		t.Fatalf("%d revisions, %v", len(entries), err)
	}
	s.Forget()
	return s, entries
}

func (s *server) images() []string {
	var out []string
	for image := range s.numbers() {
		out = append(out, image)
	}
	slices.Sort(out)
	return out
}

func TestTruncatePreconditions(t *testing.T) {
	s, entries := recordedTo(t, 3)
	if err := newLog(s).Truncate(t.Context(), s.parent(), entries, entries[2], revision.NewInUse(), 0); err != nil {
		t.Fatal(err)
	}
	want := []fakeserver.Call{
		{Verb: "delete", Kind: "ControllerRevision", Name: entries[0].Name, UID: string(entries[0].UID), Version: entries[0].ResourceVersion},
		{Verb: "delete", Kind: "ControllerRevision", Name: entries[1].Name, UID: string(entries[1].UID), Version: entries[1].ResourceVersion},
	}
	if diff := cmp.Diff(want, s.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Whoever renumbered, replaced or deleted a revision meanwhile knows better. That is no failure.
func TestTruncateAfterAChange(t *testing.T) {
	s, entries := recordedTo(t, 4)
	renumbered, replaced, gone := s.stored()[entries[0].Name], s.stored()[entries[1].Name], s.stored()[entries[2].Name]
	renumbered.Revision = 9
	if err := s.Raw.Update(t.Context(), renumbered); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{replaced, gone} {
		if err := s.Raw.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	version := replaced.ResourceVersion
	replaced.UID, replaced.ResourceVersion = "another", ""
	err := s.Raw.Create(t.Context(), replaced)
	if err == nil {
		err = s.Raw.Update(t.Context(), replaced) // as the server does, so that the versions are the same
	}
	if err != nil || replaced.ResourceVersion != version {
		t.Fatalf("the UID alone must tell them apart, but the version is %s, not %s (%v)", replaced.ResourceVersion, version, err)
	}
	deleted := 0
	log := history.New(history.DaemonSet(), history.Options{Client: s, Consistency: consistency{deleted: func(types.UID, client.Object) { deleted++ }}})
	if err := log.Truncate(t.Context(), s.parent(), entries, entries[3], revision.NewInUse(), 0); !errors.Is(err, history.ErrStale) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"agent:1", "agent:2", "agent:4"}, s.images()); diff != "" || deleted != 0 {
		t.Errorf("%d deleted; what stays (-want +got):\n%s", deleted, diff)
	}
}

// A conflict about a revision that nobody has changed is a refusal.
func TestTruncateRefusedAsAConflict(t *testing.T) {
	s, entries := recordedTo(t, 2)
	s.Before = fakeserver.Refuse("delete", "ControllerRevision", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("no")))
	err := newLog(s).Truncate(t.Context(), s.parent(), entries, entries[1], revision.NewInUse(), 0)
	if !apierrors.IsConflict(err) || errors.Is(err, history.ErrStale) {
		t.Error(err)
	}
}

func TestTruncateKeeps(t *testing.T) {
	all := []string{"agent:1", "agent:2", "agent:3"}
	for name, c := range map[string]struct {
		live  func([]revision.Revision) revision.InUse
		keep  bool
		limit int
		want  []string
	}{
		"everything while live is not known":      {func([]revision.Revision) revision.InUse { return revision.InUse{} }, true, 0, all},
		"everything of which not enough is there": {func([]revision.Revision) revision.InUse { return revision.NewInUse() }, true, 2, all},
		"the update revision at a negative limit": {func([]revision.Revision) revision.InUse { return revision.NewInUse() }, true, -5, []string{"agent:3"}},
		"what a label names":                      {func(e []revision.Revision) revision.InUse { return revision.NewInUse(e[0].Hash) }, true, 0, []string{"agent:1", "agent:3"}},
		"what a status names":                     {func(e []revision.Revision) revision.InUse { return revision.NewInUse(e[1].Name) }, true, 0, []string{"agent:2", "agent:3"}},
		// On an error path there may be no update revision. The full live set still holds.
		"the live ones without an update revision": {func(e []revision.Revision) revision.InUse { return revision.NewInUse(e[0].Hash, e[2].Hash) }, false, 0, []string{"agent:1", "agent:3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, entries := recordedTo(t, 3)
			update := revision.Revision{}
			if c.keep {
				update = entries[2]
			}
			if err := newLog(s).Truncate(t.Context(), s.parent(), entries, update, c.live(entries), c.limit); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, s.images()); diff != "" {
				t.Errorf("what stays (-want +got):\n%s", diff)
			}
		})
	}
}

// One delete that fails does not keep the others, and all errors are returned.
func TestTruncateErrors(t *testing.T) {
	s, entries := recordedTo(t, 4)
	s.Before = func(c fakeserver.Call) error {
		if c.Name == entries[0].Name || c.Name == entries[2].Name {
			return apierrors.NewInternalError(errors.New("boom"))
		}
		return nil
	}
	var told []string
	log := history.New(history.DaemonSet(), history.Options{Client: s, Consistency: consistency{deleted: func(parent types.UID, o client.Object) {
		told = append(told, string(parent)+" "+string(o.GetUID()))
	}}})
	err := log.Truncate(context.Background(), s.parent(), entries, entries[3], revision.NewInUse(), 0)
	if err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 2 || !apierrors.IsInternalError(errors.Unwrap(err.(interface{ Unwrap() []error }).Unwrap()[0])) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"agent:1", "agent:3", "agent:4"}, s.images()); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"agent-uid " + string(entries[1].UID)}, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
}

func TestWithout(t *testing.T) {
	_, entries := recordedTo(t, 3)
	before := slices.Clone(entries)
	got := history.Without(entries, []revision.Revision{{Name: "renamed", UID: entries[1].UID}, {Name: entries[0].Name, UID: "other"}})
	if len(got) != 2 || got[0].UID != entries[0].UID || got[1].UID != entries[2].UID {
		t.Errorf("%d are left: %+v", len(got), got)
	}
	for i := range before {
		if before[i].UID != entries[i].UID {
			t.Errorf("entry %d was changed", i)
		}
	}
}
