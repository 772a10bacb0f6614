package ownership_test

// Reading a parent such that it shows our own writes: events come between a read and the next question.

import (
	"context"
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

// TestReadOfAParentShowsOwnWrites: see docs/design/ownership.md.
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
			l := ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{daemonSets: cache})
			l.WroteAt(written.UID, daemonSets, written)
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
	l := ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{daemonSets: cache})
	l.WroteAt("other", daemonSets, parent("one", version("15"), withUID("other")))
	var read appsv1.DaemonSet
	unseen, err := l.Read(t.Context(), cache, client.ObjectKeyFromObject(old), &read)
	if want := "the cache of daemonsets.apps has not reached resource version 15"; err != nil || unseen != want {
		t.Errorf("unseen is %q, error %v, want %q", unseen, err, want)
	}
}
