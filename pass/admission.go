package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file detects children that admission alters. Controllers recognize a child by its owner and its labels. If
// admission strips one of these, the controller would replace the child, and each replacement as well, without end. So
// an altered child of the update revision is not replaced until a dry run shows that admission has stopped. All other
// children are: those that admission has not altered, and those that were made from an earlier revision.

// blindAfter is how long a controller believes what it saw last if the dry runs are refused, by a full quota for
// example. Then it replaces one child to find out.
const blindAfter = 5 * time.Minute

// firstTrial and trialEvery are the first and the longest wait before a controller asks again whether admission alters
// children. The wait doubles with each trial that was altered.
const firstTrial, trialEvery = time.Second, time.Minute

// mostWrong limits how often wrong answers double the longest wait.
const mostWrong = 2

// AlteredError describes how admission alters a child. If Lost is true, the parent cannot own the child, which was
// deleted or not created.
type AlteredError struct {
	What string
	Lost bool
}

// Error describes the change and its consequence.
func (e *AlteredError) Error() string {
	then := "; until it does not, such children are not replaced"
	if e.Lost {
		then = "; until it does not, such children are not created"
	}
	return "admission changes what is created: " + e.What + then
}

// Unaltered returns an [AlteredError] if the parent would not recognize a child that admission has altered: by its
// selector, its owner and the wanted labels. A child without an owner is adopted by the next pass.
func (p *Pass) Unaltered(made client.Object, selector labels.Selector, wanted map[string]string) error {
	has := made.GetLabels()
	switch owner := ownership.ControllerOf(made); {
	case !selector.Matches(labels.Set(has)):
		return &AlteredError{What: "the selector does not match its labels", Lost: true}
	case owner != (ownership.Owner{}) && owner != p.controller.Owner(p.Parent):
		return &AlteredError{What: "it has another owner", Lost: true}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if got, found := has[key]; got != wanted[key] || !found {
			return &AlteredError{What: fmt.Sprintf("label %s is %q and not %q", key, got, wanted[key])}
		}
	}
	return nil
}

func lost(err error) bool {
	altered, ok := errors.AsType[*AlteredError](err)
	return ok && altered.Lost
}

// admission is the memory of what admission does to the children of one parent. Guarded.
type admission struct {
	// lost are the errors of children that were lost when they were created, by place.
	lost map[string]alteration
	// kept are the suspects: see [Pass.suspects]. Each has the time of its creation or last trial, and an error if it was
	// altered.
	kept map[types.UID]alteration
	// tried is the result of the last trial, and seen is when a child was altered last, a dry run's included. blind means
	// that the API server refused the last trial, and tried has an earlier result. wrong counts the children that were
	// altered a moment after a trial with the opposite result. A dry run has no name, and a policy may match names.
	tried alteration
	seen  time.Time
	blind bool
	wrong int
	// update is the update revision of the last pass with suspects.
	update *revision.Revision
}

// alteration is what admission did to a child, or to the dry run for one.
type alteration struct {
	err error
	at  time.Time
	// revision is the label value of the revision that the child was made from. If this process does not know that, it
	// is the update revision when the child was seen first. A child that was not ready then may come from an earlier
	// revision, so that it has none and is replaced once. Trials have none either.
	revision string
	// times counts the trials with that result, one after the other.
	times int
}

// due is how long the next trial must wait.
func (a alteration) due(now time.Time) time.Duration {
	every := trialEvery
	if a.err != nil {
		every = min(firstTrial<<min(a.times, 10), trialEvery)
	}
	return a.at.Add(every).Sub(now)
}

// again is the alteration that a further trial has found.
func (a alteration) again(err error, now time.Time, from string) alteration {
	times := 0
	if err != nil && a.err != nil && a.revision == from {
		times = a.times + 1
	}
	return alteration{err, now, from, times}
}

// Make creates the child of a place: see [ownership.Writer.Create]. intact returns an [AlteredError] if admission
// altered the created child. A child that is lost to the parent is deleted immediately, and the error of the deletion
// is joined. Its place is tried by dry runs from then on, once a minute at most. Concurrent calls for several places
// are safe.
func (ch *Children[C]) Make(
	ctx context.Context, p *Pass, place string, child C, ours func(found client.Object) bool, intact func(made C) error,
) (ownership.Creation, error) {
	from := child.GetLabels()[ch.Label]
	if err := ch.wouldBeLost(ctx, p, place, from, child, intact); err != nil {
		return 0, err
	}
	how, err := ch.Create(ctx, p.Parent, child, ours)
	if err != nil || how != ownership.Created {
		return how, err
	}
	altered := intact(child)
	p.admitted(place, from, child.GetUID(), altered)
	if !lost(altered) {
		return how, altered
	}
	return how, errors.Join(altered, ch.removeLost(ctx, p, child, intact))
}

// removeLost deletes a child that was lost when it was created, also if the scheduler or a kubelet writes to it
// meanwhile. A child with other owners by now stays. So does a child that is no longer lost in the same way: a pod
// without affinity may be bound to a node that needs it.
func (ch *Children[C]) removeLost(ctx context.Context, p *Pass, made C, intact func(made C) error) error {
	why := intact(made).Error()
	for range 5 {
		deleted, err := ch.Removed(ctx, p, made, "admission has changed it")
		if deleted || err != nil {
			return err
		}
		found, _, err := ownership.Changed(ctx, ch.Live, made)
		if err != nil || found == nil || found.GetUID() != made.GetUID() || found.GetDeletionTimestamp() != nil ||
			!equality.Semantic.DeepEqual(found.GetOwnerReferences(), made.GetOwnerReferences()) {
			return err
		}
		made = found.(C)
		if now := intact(made); now == nil || now.Error() != why {
			return nil
		}
	}
	return nil
}

// wouldBeLost returns the [AlteredError] that a new child would get. It makes a dry run only after a child of the
// parent was lost. If the dry run is refused, by a quota for example, the creation itself gives the answer.
func (ch *Children[C]) wouldBeLost(ctx context.Context, p *Pass, place, from string, child C, intact func(made C) error) error {
	p.controller.mu.Lock()
	all := p.memory.admission.lost
	maps.DeleteFunc(all, func(_ string, a alteration) bool { return p.Now().Sub(a.at) > 10*trialEvery }) // not wanted any more
	known, never := all[place], len(all) == 0
	p.controller.mu.Unlock()
	switch {
	case never:
		return nil
	case known.err != nil && known.revision == from && known.due(p.Now()) > 0:
		return known.err
	}
	trial := child.DeepCopyObject().(C)
	if ch.Client.Create(ctx, trial, client.DryRunAll) == nil {
		if altered := intact(trial); lost(altered) {
			p.admitted(place, from, "", altered)
			return altered
		}
	}
	return nil
}

// admitted remembers what admission did to a new child, which was to be of the revision from.
func (p *Pass) admitted(place, from string, uid types.UID, altered error) {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	m := &p.memory.admission
	switch {
	case altered == nil:
		delete(m.lost, place)
	case lost(altered):
		if m.lost == nil {
			m.lost = map[string]alteration{}
		}
		m.lost[place] = m.lost[place].again(altered, p.Now(), from)
	default:
		if m.kept == nil {
			m.kept = map[types.UID]alteration{}
		}
		if m.tried.err == nil && p.Now().Sub(m.tried.at) < trialEvery {
			m.wrong++
		}
		m.kept[uid] = alteration{altered, p.Now(), from, 0}
		m.tried, m.seen, m.blind = alteration{altered, p.Now(), "", m.tried.times}, p.Now(), false
	}
}

// updateTo forgets the trials if the update revision is another one than in the last pass. If it has the same content,
// under another name, the children of the earlier one are of this one.
func (m *admission) updateTo(families []Family, update *revision.Revision) {
	was := m.update
	if update == nil {
		return
	}
	if m.update = update; was == nil || was.Hash == update.Hash {
		return
	}
	if was.Snapshot == nil || update.Snapshot == nil || revision.Compare(was.Snapshot, update.Snapshot) == revision.RuleNone {
		m.tried, m.wrong, m.blind = alteration{}, 0, false
		return
	}
	for _, f := range families {
		for uid, a := range m.kept {
			if a.revision == f.value(*was) {
				a.revision = f.value(*update)
				m.kept[uid] = a
			}
		}
	}
}

// suspects returns the children that admission may have altered, the least recently tried first. The label of such a
// child names none of the known revisions, or the child was altered when it was created. The memory forgets children
// that no longer exist, and the trials for another revision than update.
func (p *Pass) suspects(families []Family, known []revision.Revision, update *revision.Revision) []client.Object {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	m, kept := &p.memory.admission, map[types.UID]alteration{}
	m.updateTo(families, update)
	var out []client.Object
	for _, f := range families {
		for _, child := range f.suspects(known, func(child client.Object) bool { return m.kept[child.GetUID()].err != nil }) {
			a := m.kept[child.GetUID()]
			if a.revision == "" && update != nil && f.serves(child) {
				a.revision = f.value(*update)
			}
			kept[child.GetUID()] = a
			out = append(out, child)
		}
	}
	if m.kept = kept; len(kept) == 0 {
		m.update = nil // there may be thousands of parents without a suspect
	}
	slices.SortStableFunc(out, func(a, b client.Object) int {
		return cmp.Or(kept[a.GetUID()].at.Compare(kept[b.GetUID()].at), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// Altered reports whether admission has altered a child that comes from the revision that wanted names, and would alter
// its replacement as well. Such a child is not replaced by a child of the same revision.
type Altered func(child client.Object, wanted string) bool

// held returns which of the suspects are not replaced after a trial: all that may come from the wanted revision. If the
// API server refuses dry runs, only the suspects that were altered when they were created or tried.
func (p *Pass) held(suspects []client.Object) Altered {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	m, of := &p.memory.admission, make(map[types.UID]string, len(suspects))
	for _, o := range suspects {
		if a := m.kept[o.GetUID()]; a.err != nil || !m.blind {
			of[o.GetUID()] = a.revision
		}
	}
	return func(child client.Object, wanted string) bool {
		from, held := of[child.GetUID()]
		return held && from == wanted
	}
}

// Trial asks by a dry run whether admission would alter the replacement of a suspect: see [Row]. It asks after 1, 2, 4
// seconds and so on, once a minute at most, and every four minutes after wrong answers. child is the replacement,
// without a name. intact returns an [AlteredError] if admission altered it. If the API server refuses the dry run, the
// last result remains for five minutes, for the children that were altered.
func (ch *Children[C]) Trial(ctx context.Context, p *Pass, suspect client.Object, child C, intact func(made C) error) error {
	m := &p.memory.admission // no child is being created
	if left := m.tried.due(p.Now()) + trialEvery*(1<<min(m.wrong, mostWrong)-1); left > 0 {
		if m.tried.err != nil {
			p.RequeueAfter(left)
		}
		return m.tried.err
	}
	err := ch.Client.Create(ctx, child, client.DryRunAll)
	altered := m.tried.err
	switch m.blind = err != nil; {
	case !m.blind:
		altered = intact(child)
	case p.Now().Sub(m.seen) > blindAfter:
		altered = nil
		log.FromContext(ctx).V(1).Info("Admission cannot be tried", "refused", err.Error())
	}
	m.tried = m.tried.again(altered, p.Now(), "")
	switch {
	case altered == nil:
		for uid, a := range m.kept {
			a.err = nil
			m.kept[uid] = a
		}
		return nil
	case !m.blind:
		m.kept[suspect.GetUID()] = alteration{altered, p.Now(), m.kept[suspect.GetUID()].revision, 0}
		m.seen = p.Now()
	}
	p.RequeueAfter(m.tried.due(p.Now()))
	return altered
}
