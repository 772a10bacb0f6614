package composite

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history/metacontroller"
)

// This file is what is remembered of a parent from pass to pass, each part of it for one step of a pass. Losing it only
// costs requests.

// memory is that of one parent. There is one pass over a parent at a time, so it needs no lock.
type memory struct {
	pause     pause
	confirmed confirmed
	answers   answers
	version   versions
	status    statusMemory
	// changed is when children were changed in place, for minReadySeconds. A process that just started does not know, and
	// may change the next child a little sooner.
	changed changes
	// sharers are the other controllers of the parent that the last pass has seen.
	sharers []sharer
}

// pause is until when the children are left alone, and for which of them that is.
type pause struct {
	until  time.Time
	awaits []awaited
}

// awaited is a child that a pass has written. One that was deleted, and not replaced at once, has settled when no
// object has its UID any more; any other one when it passes its checks.
type awaited struct {
	key  metacontroller.Child
	gone types.UID
}

// confirmed says what was compared with the API server: the parent, and its revisions.
type confirmed struct{ parent, revisions bool }

// answers are what is remembered of the hook's answers.
type answers struct {
	// refused says that the last answer could not be used, because we or the API server refused it. Package hook would
	// return it again; so the hook is called again, although its input has not changed.
	refused bool
	// busy counts the passes in a row in which the hook answered 429.
	busy int
	// wanted are the children of the last answers, without objects, by revision.
	wanted map[string]wanted
	// orphans match the selector and were not in an answer when the last pass looked.
	orphans []metacontroller.Child
}

// wants reports whether the hook wants a child of the parent as it is.
func (a *answers) wants(key metacontroller.Child) bool {
	_, wants := a.wanted[""].objects[key]
	return wants
}

// versions are which resourceVersion of the parent the hook was called with last, and which one our own write of the
// status made of it. The latter is empty if the hook is to be called with that status.
type versions struct{ asked, own string }

// of is the resourceVersion under which a hook is called with a parent. It stays the same if only we wrote the status,
// and only what the hook had answered.
func (v *versions) of(parent *unstructured.Unstructured) string {
	if at := parent.GetResourceVersion(); at != v.own {
		v.asked = at
	}
	return v.asked
}

// again is when to make another pass because the hook is to be called with the status that was just written: the event
// of our own write enqueues nobody.
func (v *versions) again() time.Duration {
	if v.own != "" {
		return 0
	}
	return time.Millisecond
}

// statusMemory is what was done about the status of a parent.
type statusMemory struct {
	// at is when it was written last.
	at time.Time
	// sent is what was written, got what the API server made of it: schemas drop unknown fields, which must not cause a
	// write in every pass.
	sent, got map[string]any
	// event is the text of the last event, so that a parent that waits says so once. lost is that of the event about
	// children whose revision is lost: other problems come and go meanwhile.
	event, lost string
}

// memories are those of all parents, by UID.
type memories struct{ byUID sync.Map }

func (m *memories) of(uid types.UID) *memory {
	one, _ := m.byUID.LoadOrStore(uid, &memory{answers: answers{wanted: map[string]wanted{}}, changed: changes{}})
	return one.(*memory)
}

// forgetConfirmed has a parent and its revisions compared with the API server again before the next write.
func (m *memories) forgetConfirmed(uid types.UID) {
	if one, ok := m.byUID.Load(uid); ok {
		one.(*memory).confirmed = confirmed{}
	}
}

func (m *memories) forget(uid types.UID) { m.byUID.Delete(uid) }
