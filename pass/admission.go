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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file detects children that admission alters. Controllers recognize a child by its owner and its labels. If
// admission strips one of these, the controller would replace the child, and each replacement as well, without end. So
// an altered child is not replaced until a dry run shows that admission has stopped. All other children are.

// blindAfter is how long a controller believes what it saw last if the dry runs are refused, by a full quota for
// example. Then it replaces one child to find out.
const blindAfter = 5 * time.Minute

// trialEvery is how often a controller asks whether admission still alters children.
const trialEvery = time.Minute

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
func Unaltered(parent, made client.Object, selector labels.Selector, wanted map[string]string) error {
	has := made.GetLabels()
	switch owner := metav1.GetControllerOfNoCopy(made); {
	case !selector.Matches(labels.Set(has)):
		return &AlteredError{What: "the selector does not match its labels", Lost: true}
	case owner != nil && owner.UID != parent.GetUID():
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
	// lost are the errors and times of children that were lost when they were created, by place.
	lost map[string]alteration
	// kept are the altered children that exist, with the time of their creation or last trial.
	kept map[types.UID]time.Time
	// tried is the result and time of the last trial, and seen is when a child was altered last, a dry run's included.
	// blind means that the API server refused the last trial, and tried has an earlier result. wrong counts the
	// children that were altered a moment after a trial with the opposite result: a dry run has no name, and a policy
	// may match one.
	tried alteration
	seen  time.Time
	blind bool
	wrong int
}

type alteration struct {
	err error
	at  time.Time
}

// Make creates the child of a place: see [ownership.Writer.Create]. intact returns an [AlteredError] if admission
// altered the created child. A child that is lost to the parent is deleted immediately, and the error is joined with
// that of the deletion. Its place is tried by dry runs from then on, once a minute. Concurrent calls for several places
// are safe.
func (ch *Children[C]) Make(
	ctx context.Context, p *Pass, place string, child C, ours func(found client.Object) bool, intact func(made C) error,
) (ownership.Creation, error) {
	if err := ch.wouldBeLost(ctx, p, place, child, intact); err != nil {
		return 0, err
	}
	how, err := ch.Create(ctx, p.Parent, child, ours)
	if err != nil || how != ownership.Created {
		return how, err
	}
	altered := intact(child)
	p.admitted(place, child.GetUID(), altered)
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
func (ch *Children[C]) wouldBeLost(ctx context.Context, p *Pass, place string, child C, intact func(made C) error) error {
	p.controller.mu.Lock()
	all := p.memory.admission.lost
	maps.DeleteFunc(all, func(_ string, a alteration) bool { return p.Now().Sub(a.at) > 10*trialEvery }) // not wanted any more
	known, never := all[place], len(all) == 0
	p.controller.mu.Unlock()
	switch {
	case never:
		return nil
	case known.err != nil && p.Now().Sub(known.at) < trialEvery:
		return known.err
	}
	trial := child.DeepCopyObject().(C)
	if ch.Client.Create(ctx, trial, client.DryRunAll) == nil {
		if altered := intact(trial); lost(altered) {
			p.admitted(place, "", altered)
			return altered
		}
	}
	return nil
}

// admitted remembers what admission did to a new child.
func (p *Pass) admitted(place string, uid types.UID, altered error) {
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
		m.lost[place] = alteration{altered, p.Now()}
	default:
		if m.kept == nil {
			m.kept = map[types.UID]time.Time{}
		}
		if m.tried.err == nil && p.Now().Sub(m.tried.at) < trialEvery {
			m.wrong++
		}
		m.kept[uid], m.tried, m.seen, m.blind = p.Now(), alteration{altered, p.Now()}, p.Now(), false
	}
}

// suspects returns the children that admission may have altered, the least recently tried first: those whose label
// names none of the known revisions, and those that were altered when they were created. The memory forgets children
// that no longer exist.
func (p *Pass) suspects(families []Family, known []revision.Revision) []client.Object {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	m, kept := &p.memory.admission, map[types.UID]time.Time{}
	var out []client.Object
	for _, f := range families {
		out = append(out, f.suspects(known, func(child client.Object) bool {
			at, altered := m.kept[child.GetUID()]
			if altered {
				kept[child.GetUID()] = at
			}
			return altered
		})...)
	}
	m.kept = kept
	slices.SortStableFunc(out, func(a, b client.Object) int {
		return cmp.Or(kept[a.GetUID()].Compare(kept[b.GetUID()]), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// held are the suspects that are not replaced after a trial: all suspects. If the API server refuses dry runs, only the
// suspects that were altered when they were created or tried.
func (p *Pass) held(suspects []client.Object) map[types.UID]bool {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	m, out := &p.memory.admission, make(map[types.UID]bool, len(suspects))
	for _, o := range suspects {
		_, altered := m.kept[o.GetUID()]
		out[o.GetUID()] = altered || !m.blind
	}
	return out
}

// Trial asks by a dry run whether admission would alter the replacement of a suspect: see [Row]. It asks once a minute
// at most, and every 16 minutes after several wrong answers. child is the replacement, without a name. intact returns
// an [AlteredError] if admission altered it. If the API server refuses the dry run, the last result remains for five
// minutes, for the children that were altered.
func (ch *Children[C]) Trial(ctx context.Context, p *Pass, suspect client.Object, child C, intact func(made C) error) error {
	m := &p.memory.admission // no child is being created
	if left := m.tried.at.Add(trialEvery << min(m.wrong, 4)).Sub(p.Now()); left > 0 {
		if m.tried.err != nil {
			p.RequeueAfter(left)
		}
		return m.tried.err
	}
	err := ch.Client.Create(ctx, child, client.DryRunAll)
	m.tried.at, m.blind = p.Now(), err != nil
	switch {
	case !m.blind:
		m.tried.err = intact(child)
	case p.Now().Sub(m.seen) > blindAfter:
		m.tried.err = nil
		log.FromContext(ctx).V(1).Info("Admission cannot be tried", "refused", err.Error())
	}
	switch {
	case m.tried.err == nil:
		m.kept = nil
		return nil
	case !m.blind:
		m.kept[suspect.GetUID()], m.seen = p.Now(), p.Now()
	}
	p.RequeueAfter(trialEvery)
	return m.tried.err
}
