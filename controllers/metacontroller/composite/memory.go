package composite

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history/metacontroller"
)

// This file is what is remembered of a parent from pass to pass, each part of it for one step of a pass. Losing it costs requests
// and nothing else.

// memory is that of one parent. Passes over one parent come one after the other, so it needs no lock.
type memory struct {
	pause     pause
	confirmed confirmed
	answers   answers
	version   versions
	status    statusMemory
	// changed is when children were changed in place, for minReadySeconds. A process that just started does not know, and may
	// change the next child a little sooner.
	changed changes
	// sharers are other controllers of the parent, as far as the last pass has seen.
	sharers []sharer
}

// pause is until when the children are left alone, and for which of them that is.
type pause struct {
	until  time.Time
	awaits []awaited
}

// awaited is a child that a pass has written. One that was deleted, and not replaced at once, has gone when nothing has its
// UID any more; any other one has come when it passes its checks.
type awaited struct {
	key  metacontroller.Child
	gone types.UID
}

// confirmed is what was read past the cache: the parent, and its revisions.
type confirmed struct{ parent, revisions bool }

// answers are what is remembered of those of the hook.
type answers struct {
	// refused says that the last one could not be used, by what we or the API server think of it. What package hook remembers
	// is no help then: it is asked again, although nothing that it is asked about has changed.
	refused bool
	// busy counts the passes in a row in which the hook wanted to be asked later.
	busy int
	// wanted are the children of the last ones, without objects, by revision.
	wanted map[string]wanted
	// orphans match the selector, and nobody has said that they are wanted, as far as the last pass has seen.
	orphans []metacontroller.Child
}

// wants reports whether the hook wants a child of the parent as it is.
func (a *answers) wants(key metacontroller.Child) bool {
	_, wants := a.wanted[""].objects[key]
	return wants
}

// versions are which resourceVersion of the parent the hook was asked about last, and which one our own write of the status made
// of it. The latter is empty if the hook is to be asked about that status.
type versions struct{ asked, own string }

// of is the resourceVersion under which a hook is asked about a parent. It stays the same over a status that we wrote ourselves,
// on the hook's own word.
func (v *versions) of(parent *unstructured.Unstructured) string {
	if at := parent.GetResourceVersion(); at != v.own {
		v.asked = at
	}
	return v.asked
}

// statusMemory is what was done about the status of a parent.
type statusMemory struct {
	// at is when it was written last.
	at time.Time
	// sent is what was written, got what the API server made of it: schemas drop what they do not know, and it must not be
	// written in every pass.
	sent, got map[string]any
	// event is the last text that an event was sent with, so that a parent that waits says so once. lost is that about
	// children whose revision is lost: what else goes wrong comes and goes beside it.
	event, lost string
}

// memories are those of all parents, by UID.
type memories struct{ byUID sync.Map }

func (m *memories) of(uid types.UID) *memory {
	one, _ := m.byUID.LoadOrStore(uid, &memory{answers: answers{wanted: map[string]wanted{}}, changed: changes{}})
	return one.(*memory) //nolint:forcetypeassert // only this method stores
}

// forgetConfirmed has a parent and its revisions read past the cache again before the next write.
func (m *memories) forgetConfirmed(uid types.UID) {
	if one, ok := m.byUID.Load(uid); ok {
		one.(*memory).confirmed = confirmed{} //nolint:forcetypeassert // only of stores
	}
}

func (m *memories) forget(uid types.UID) { m.byUID.Delete(uid) }
