package check

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/rollback"
)

// This file holds what is true only when nobody has anything left to do: H1, H2, H9, S1, R4, C1 and X1 at rest, and
// that nothing is written then.

// rest looks at one world.
type rest struct {
	h     *History
	s     *State
	k     Kind
	found []Violation
}

// Rest evaluates what holds at rest, in the world right after that resource version. The caller says that it is at
// rest: the rollouts have ended, or wait for something that will not come, and garbage is collected.
func Rest(h *History, rv uint64, kinds ...Kind) []Violation {
	var found []Violation
	s := worldAt(h, rv)
	for _, k := range eachRemembering(kinds) {
		r := &rest{h: h, s: s, k: k}
		for _, parent := range s.List(k.Parents, "") {
			if parent.GetDeletionTimestamp() != nil {
				continue
			}
			if !slices.ContainsFunc(s.Owned(k.Revisions, parent.GetUID()), func(o client.Object) bool { return !k.mine(o) }) {
				r.log(parent)
				r.limit(parent)
				r.recorded(parent)
			}
			r.status(parent)
			r.units(parent)
			r.reached(parent)
			r.scheduled(parent)
			r.failed(parent)
		}
		r.leftovers()
		found = append(found, r.found...)
	}
	return once(found)
}

func (r *rest) violationf(invariant string, resource schema.GroupVersionResource, o client.Object, format string, args ...any) {
	key, parent := recording.KeyOf(resource, o), o.GetUID()
	if resource != r.k.Parents {
		parent = ownerUID(o)
	}
	r.found = append(r.found, Violation{
		Invariant: invariant, Object: key, RV: r.s.RV, Sentence: fmt.Sprintf(format, args...), Trail: trail(r.h, key, parent, r.s.RV),
		Replay: r.h.Replay,
	})
}

// log is H1 and H2: one revision for each snapshot, and one for each number.
func (r *rest) log(parent client.Object) {
	snapshots, numbers := map[string]string{}, map[int64][]client.Object{}
	for _, revision := range r.s.Owned(r.k.Revisions, parent.GetUID()) {
		number := r.k.Number(revision)
		for _, twin := range numbers[number] {
			if !r.k.Apart && !r.excused(parent, revision, twin) {
				r.violationf("H2", r.k.Revisions, revision, "its number %d is that of %s as well", number, twin.GetName())
			}
		}
		numbers[number] = append(numbers[number], revision)
		snapshot, err := r.k.Snapshot(revision)
		if err != nil {
			continue // what cannot be read is kept
		}
		if twin, taken := snapshots[snapshot]; taken && !r.k.Apart {
			r.violationf("H1", r.k.Revisions, revision, "it holds the same as %s", twin)
		}
		snapshots[snapshot] = revision.GetName()
	}
}

// recorded is C1 for kinds of which nothing but the history is ours: what a parent asks for is in the newest revision.
func (r *rest) recorded(parent client.Object) {
	if !r.k.Children.Empty() || !r.k.HasRevisions() {
		return
	}
	var newest client.Object
	for _, revision := range r.s.Owned(r.k.Revisions, parent.GetUID()) {
		if newest == nil || r.k.Number(revision) > r.k.Number(newest) {
			newest = revision
		}
	}
	if newest == nil || !r.k.asked(parent, newest) {
		r.violationf("C1", r.k.Parents, parent, "what it asks for is not in its newest revision")
	}
}

// excused reports whether it is nobody's fault that two revisions have the same number. What the parent asks for has a
// number of its own in any case. Nothing else is ever renumbered, so that a tie stays if one of the two came into the
// log with its number, or if both were numbered at the same moment: each by a pass that had looked past its cache for
// numbers.
func (r *rest) excused(parent, a, b client.Object) bool {
	if r.k.asked(parent, a) || r.k.asked(parent, b) {
		return false
	}
	first, second := r.numbered(a), r.numbered(b)
	if first == nil || second == nil {
		return true
	}
	if first.RV > second.RV {
		first, second = second, first
	}
	if second.By == nil || second.By.Pass == nil {
		return false
	}
	listed := newRecord(r.h).listed(second.By, r.k.Revisions, second.Key.Namespace)
	return listed > 0 && listed < first.RV
}

// numbered returns the write by which the controllers gave a revision its number, for the parent that it belongs to. It
// is nil if the revision brought the number: it was adopted with it, or somebody else wrote it.
func (r *rest) numbered(revision client.Object) *Event {
	for i, e := range slices.Backward(r.h.Events) {
		switch {
		case e.RV > r.s.RV || e.New == nil || e.New.GetUID() != revision.GetUID():
		case e.Old == nil || r.k.Number(e.Old) != r.k.Number(e.New):
			if !r.h.ByManager(e) {
				return nil
			}
			return &r.h.Events[i]
		case ownerUID(e.Old) != ownerUID(e.New):
			return nil
		}
	}
	return nil // it was there from the start
}

// hashLabel carries the hash of a StatefulSet's revision.
const hashLabel = "controller.kubernetes.io/hash"

// refers reports whether one of names is that of a revision, or is what somebody wrote into its hash label: children
// refer to revisions by either, so that controllers keep both.
func refers(names map[string]bool, revision client.Object) bool {
	hash, ok := revision.GetLabels()[hashLabel]
	return names[revision.GetName()] || ok && names[hash]
}

// namesake reports whether a revision has the hash label of another one that holds what its parent asks for: somebody
// gave it that.
func (r *rest) namesake(parent, revision client.Object) bool {
	hash := revision.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
	return hash != "" && slices.ContainsFunc(r.s.Owned(r.k.Revisions, parent.GetUID()), func(other client.Object) bool {
		return other.GetUID() != revision.GetUID() && other.GetLabels()[appsv1.ControllerRevisionHashLabelKey] == hash && r.k.asked(parent, other)
	})
}

// limit is H9: of revisions that nothing came from, not more than the limit are kept. One that says that a child which
// is wanted is its own, and to come back, is not among them. Neither is one to which the parent may be rolled back.
func (r *rest) limit(parent client.Object) {
	named := map[string]bool{}
	for _, name := range r.k.StatusRevisions(parent) {
		named[name] = true
	}
	if parent.GetAnnotations()[rollback.OnDeadlineAnnotation] != "" {
		for _, name := range rollback.GoodOf(parent).Names() {
			named[name] = true
		}
	}
	idle, bytes := 0, 0
	for _, revision := range r.s.Owned(r.k.Revisions, parent.GetUID()) {
		snapshot, err := r.k.Snapshot(revision)
		if err != nil {
			continue // what cannot be read is kept
		}
		if r.k.NamesOthers != nil && r.k.NamesOthers(revision) {
			continue
		}
		if r.namesake(parent, revision) {
			continue // children of the update revision may be taken for its own
		}
		if !refers(named, revision) && !r.k.asked(parent, revision) && r.k.user(r.s, revision) == nil && !r.k.claimsWanted(parent, revision) {
			idle++
			bytes += len(snapshot)
		}
	}
	if r.k.Bytes > 0 && idle > 1 && bytes > r.k.Bytes {
		r.violationf("H9", r.k.Parents, parent, "it keeps %d bytes in revisions that nothing came from, and the limit is %d", bytes, r.k.Bytes)
	}
	if limit := r.k.Limit(parent); idle > limit {
		r.violationf("H9", r.k.Parents, parent, "it keeps %d revisions that nothing came from, and the limit is %d", idle, limit)
	}
}

// status is C1, S1 and R4: the last edit was seen, the counters are what one counts, and complete means so.
func (r *rest) status(parent client.Object) {
	if observed := r.k.ObservedGeneration(parent); observed < parent.GetGeneration() {
		r.violationf("C1", r.k.Parents, parent, "generation %d is observed, and there is %d", observed, parent.GetGeneration())
		return
	}
	for _, sentence := range r.k.Miscounted(r.s, parent) {
		r.violationf("S1", r.k.Parents, parent, "%s", sentence)
	}
	if !r.k.Complete(parent) {
		return
	}
	for _, u := range r.k.Units(r.s, parent) {
		for _, child := range r.k.alive(u) {
			if strays := r.k.StraysNow(child, parent); u.Wanted && strays != "" {
				r.violationf("R4", r.k.Children, child, "the status of %s says that the rollout is over, but %s", parent.GetName(), strays)
			}
		}
		if r.k.CompleteServes && u.Wanted && !r.k.serves(u, parent, nil, time.Time{}) {
			r.violationf("R4", r.k.Parents, parent, "its status says that the rollout is over, and nothing serves at %s", u.Name)
		}
	}
}

// leftovers is X1: beside a parent that was made again, nothing belongs to the one that is gone.
func (r *rest) leftovers() {
	again := map[Key]types.UID{}
	for _, parent := range r.s.List(r.k.Parents, "") {
		again[recording.KeyOf(r.k.Parents, parent)] = parent.GetUID()
	}
	for _, resource := range []schema.GroupVersionResource{r.k.Children, r.k.Revisions} {
		for _, o := range r.s.List(resource, "") {
			was, ok := r.s.Identity(ownerUID(o))
			if uid, lives := again[was]; ok && lives && uid != ownerUID(o) {
				r.violationf("X1", resource, o, "it belongs to the %s that is gone, and there is a new one", was.Name)
			}
		}
	}
}

// Quiet is H8 and C1: between two points at which nothing was left to do, and with no edit between them, the
// controllers write nothing. It returns a violation for each write to a parent, a child or a revision.
func Quiet(h *History, from, to uint64, kinds ...Kind) []Violation {
	var found []Violation
	for _, e := range h.Between(from, to) {
		for _, k := range kinds {
			if r := e.Key.Resource; h.ByManager(e) && (r == k.Parents || r == k.Children || r == k.Revisions) {
				found = append(found, Violation{
					Invariant: "H8", Object: e.Key, RV: e.RV, Sentence: "it is written, and nobody asked for anything", Trail: []Event{e},
					Replay: h.Replay,
				})
				break
			}
		}
	}
	return found
}
