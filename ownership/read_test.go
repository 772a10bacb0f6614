package ownership_test

// Reading a parent such that it shows our own writes: events come between a read and the next question.

import (
	"cmp"
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

var daemonSets = schema.GroupResource{Group: "apps", Resource: "daemonsets"}

// moving is a cache of one DaemonSet. It has the next of its states after each read.
type moving struct {
	client.Reader
	*store

	states []*appsv1.DaemonSet // nil is none
	reads  int
}

func (m *moving) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	state := m.states[min(m.reads, len(m.states)-1)]
	if m.reads++; m.reads < len(m.states) && m.states[m.reads] != nil {
		m.show(m.states[m.reads].ResourceVersion, m.states[m.reads])
	}
	if state == nil {
		return apierrors.NewNotFound(daemonSets, key.Name)
	}
	*into.(*appsv1.DaemonSet) = *state
	return nil
}

// TestReadOfAParentShowsOwnWrites: see docs/design/2026-11-21-read-after-asking.md.
func TestReadOfAParentShowsOwnWrites(t *testing.T) {
	old, written := parent("one", version("10")), parent("one", version("12"))
	other := parent("one", version("14"), withUID("other"))
	for name, c := range map[string]struct {
		states []*appsv1.DaemonSet
		read   string // the version that is read
		unseen string
		gone   bool
	}{
		"shown already":             {states: []*appsv1.DaemonSet{written}, read: "12"},
		"not shown yet":             {states: []*appsv1.DaemonSet{old}, read: "10", unseen: "the cache of daemonsets.apps has not reached resource version 12"},
		"shown after the read":      {states: []*appsv1.DaemonSet{old, written}, read: "12"},
		"replaced after the read":   {states: []*appsv1.DaemonSet{old, other}, read: "14"},
		"gone":                      {states: []*appsv1.DaemonSet{nil}, gone: true},
		"gone after the first read": {states: []*appsv1.DaemonSet{written, nil}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			cache := &moving{store: &store{at: "10"}, states: c.states}
			if first := c.states[0]; first != nil {
				cache.show(first.ResourceVersion, first)
			}
			l := ownership.NewLedger(map[schema.GroupResource]ownership.Store{daemonSets: cache})
			l.Wrote(written.UID, daemonSets, written)
			var read appsv1.DaemonSet
			unseen, err := l.Read(t.Context(), cache, client.ObjectKeyFromObject(old), &read)
			if apierrors.IsNotFound(err) != c.gone || err != nil && !c.gone {
				t.Fatalf("the error is %v, want one for a parent that is gone: %t", err, c.gone)
			}
			if err == nil && (read.ResourceVersion != c.read || unseen != c.unseen) {
				t.Errorf("read version %s, unseen %q, want %s, %q", read.ResourceVersion, unseen, c.read, c.unseen)
			}
		})
	}
}

// A parent that another one has replaced meanwhile has writes of its own to wait for.
func TestReadAsksAboutTheParentThatIsRead(t *testing.T) {
	old, other := parent("one", version("10")), parent("one", version("14"), withUID("other"))
	cache := &moving{store: &store{at: "10"}, states: []*appsv1.DaemonSet{old, other}}
	l := ownership.NewLedger(map[schema.GroupResource]ownership.Store{daemonSets: cache})
	l.Wrote("other", daemonSets, parent("one", version("15"), withUID("other")))
	var read appsv1.DaemonSet
	unseen, err := l.Read(t.Context(), cache, client.ObjectKeyFromObject(old), &read)
	if want := "the cache of daemonsets.apps has not reached resource version 15"; err != nil || unseen != want {
		t.Errorf("unseen is %q, error %v, want %q", unseen, err, want)
	}
}

// TestUnedited (docs/design/2026-11-22-edited-while-acting.md): what the cache shows of a parent while a pass about it goes on.
func TestUnedited(t *testing.T) {
	at := func(generation int64, changes ...option) *appsv1.DaemonSet {
		p := parent("one", changes...)
		p.Generation = generation
		return p
	}
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		shown *appsv1.DaemonSet // nil is none
		err   error
		want  error
	}{
		"the same":              {shown: at(3)},
		"its status is written": {shown: at(3, version("99"))},
		"the cache is behind":   {shown: at(2)},
		"edited":                {shown: at(4), want: ownership.ErrStale},
		"going":                 {shown: at(3, deleting), want: ownership.ErrGone},
		"gone":                  {want: ownership.ErrGone},
		"replaced":              {shown: at(3, withUID("other")), want: ownership.ErrGone},
		"not to be read":        {err: boom},
	} {
		t.Run(name, func(t *testing.T) {
			cache := shows{c.shown, c.err}
			if err := ownership.Unedited(t.Context(), cache, at(3))(); !errors.Is(err, c.want) || c.want == nil && err != nil ||
				ownership.Superseded(err) != (c.want != nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if err := ownership.Unedited(t.Context(), shows{at(4, deleting), nil}, at(4, deleting))(); err != nil {
		t.Error("a pass about a parent that is going:", err)
	}
}

// shows is a cache of one DaemonSet, or of none.
type shows struct {
	parent *appsv1.DaemonSet
	err    error
}

func (s shows) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.err != nil || s.parent == nil {
		return cmp.Or(s.err, error(apierrors.NewNotFound(daemonSets, key.Name)))
	}
	*into.(*appsv1.DaemonSet) = *s.parent
	return nil
}

func (shows) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("nothing is listed")
}
