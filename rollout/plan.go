package rollout

import (
	"cmp"
	"fmt"
	"slices"
)

// Instance is one object that fills a place: a pod on a node, a child under a key. Instances that are terminating are
// not given to the planner; a place that has only those has none, and is unavailable.
type Instance struct {
	// Name identifies the instance in steps and reasons.
	Name string
	// Revision is the name or hash of the revision that the instance was made from, for reasons only.
	Revision string
	// Ready is true if it is ready; Available is true if it has been ready for minReadySeconds.
	Ready, Available bool
	// NeverReady is true if it is certain that it was never ready. Nothing is lost if it is deleted.
	NeverReady bool
}

// serves reports whether the instance is ready. An available one is, also if its kind has no readiness and the caller
// leaves Ready unset.
func (i *Instance) serves() bool { return i.Ready || i.Available }

// Unit is one place of the set.
type Unit struct {
	// Key names the place: a node, an ordinal, a child key. Unique in a set: a place that is given twice is Crowded.
	Key string
	// Old is the instance that comes from another revision than the update revision, New the one that conforms. Either
	// may be nil. At most one of each is planned with; see Crowded.
	Old, New *Instance
	// Crowded says that the place holds more instances than the planner can reason about. The caller reduces them first;
	// until then the place counts as unavailable and as surging.
	Crowded bool
	// Held units keep their old instance: they lie below the partition, or are replaced by hand only. A surge that has
	// begun is finished all the same.
	Held bool
	// Stays, unless it is empty, says why the old instance must stay for now, in one readable clause. Unlike a held unit,
	// which is where it should be, it is reported as waiting. A surge that has begun is finished all the same.
	Stays string
	// Refused is 0 unless the API server refused the last step of the unit, and higher the later that was. Unless the
	// strategy is Ordered, units with a lower number come first.
	Refused int
	// Vacant is true if no instance may be created here, because the revision that the place keeps is lost. An empty
	// vacant place costs no budget, because it will not be filled.
	Vacant bool
	// Keeps is true if a new instance would come from the older revision of the place. An empty place is then held.
	Keeps bool
	// Leaving places need no new instance, but may keep the one they have. They do not count as part of the set.
	Leaving bool
}

// available reports whether some instance of the unit is available.
func (u Unit) available() bool {
	return !u.Crowded && (u.Old != nil && u.Old.Available || u.New != nil && u.New.Available)
}

// empty reports whether the unit holds no instance.
func (u Unit) empty() bool { return u.Old == nil && u.New == nil && !u.Crowded }

// Strategy is the budget of a rollout. The caller resolves percentages. The rollout uses MaxUnavailable before
// MaxSurge, so that it goes on where a quota has no room for an instance beside the old one, as a Deployment does.
type Strategy struct {
	// MaxUnavailable is how many units of the set may be unavailable at once, counted over the whole set.
	MaxUnavailable int
	// MaxSurge is how many units may hold an old and a new instance at once.
	MaxSurge int
	// Beside is for surges of DaemonSets. An old instance that is not available gets a new instance beside it, whatever
	// MaxSurge is, as in Kubernetes. It stays until the new instance is ready, because it may recover before that, unless
	// it was never ready. Without Beside, MaxSurge is a limit as in a Deployment: such an instance is replaced in its
	// place. Beside has no meaning without MaxSurge.
	Beside bool
	// Ordered says that units are updated strictly one after the other as they are given, as far as the budget lets them
	// overlap: nothing that is available is touched after a unit that waits. What is unavailable anyway still costs
	// nothing to replace, wherever it is; [Unit.Stays] keeps it.
	Ordered bool
	// Paused stops the rollout where it is.
	Paused bool
}

// Verb is what a step does.
type Verb string

// The verbs of steps. A place that has no instance at all is filled by the caller, whatever the rollout does.
const (
	// Delete removes the old instance of a unit.
	Delete Verb = "Delete"
	// Create adds a new instance beside the old one.
	Create Verb = "Create"
)

// Step is one thing to do now.
type Step struct {
	Verb Verb
	// Unit is the key of the place. Instance is the name of what is deleted, empty for Create.
	Unit, Instance string
	// Reason is one readable clause: why this step, and why now.
	Reason string
}

// Wait is a unit that is not updated and that nothing can be done for now.
type Wait struct {
	Unit, Reason string
}

// Plan is what a rollout does now.
type Plan struct {
	// Steps may be carried out in any order and in parallel: together they keep the budget. Replacements that cost
	// nothing come first.
	Steps []Step
	// Waiting lists the units that wait, in the order in which they were given.
	Waiting []Wait
	// Total counts the units of the set, Updated those that hold a conforming instance and no other, Available and
	// Unavailable those that are available and those that are not, before the steps. Held units count as the others do.
	// Leaving units do not count; an empty vacant unit counts in Total and Held only.
	Total, Updated, Available, Unavailable int
	// Down are the keys of the unavailable ones: they use the budget up.
	Down []string
	// Held counts the units that keep an old instance because they are held or the rollout is paused. It also counts the
	// units without an instance that are vacant or keep a revision.
	Held int
	// Done is how far the rollout is.
	Done Progress
}

// Progress counts what a rollout has done, over the units of the set. All counts grow with it; one falls when something
// is lost, or the set or what it asks for was edited.
type Progress struct {
	// Gone counts the units without an old instance, Made those with a conforming one, beside an old one or not, Ready
	// and Available those whose conforming one is that.
	Gone, Made, Ready, Available int
}

// Max returns the most of each count. A rollout that is at p got on if p.Max(best) is more than best, the most that it
// had reached. To compare with its last state instead would take for progress that a pod which crashes and starts again
// is ready again.
func (p Progress) Max(best Progress) Progress {
	return Progress{
		Gone: max(p.Gone, best.Gone), Made: max(p.Made, best.Made),
		Ready: max(p.Ready, best.Ready), Available: max(p.Available, best.Available),
	}
}

// Min returns each count, or most if that is less: what is left of p in a set of so many units.
func (p Progress) Min(most int) Progress {
	return Progress{
		Gone: min(p.Gone, most), Made: min(p.Made, most), Ready: min(p.Ready, most), Available: min(p.Available, most),
	}
}

// Complete reports whether every unit of the set holds a conforming instance and no other.
func (p Plan) Complete() bool { return p.Updated == p.Total }

// New plans one pass over the whole set, in the order in which units are to be updated but for those that are Refused.
//
// It promises, for a state that is not older than the caller's own writes: an available instance is deleted only while
// unavailable + 1 ≤ MaxUnavailable over the whole set, or while a new available instance replaces it; no more than
// MaxSurge units hold two instances because of it, but for [Strategy.Beside]; an instance that is unavailable anyway is
// replaced at no cost, so that a broken rollout can be repaired; a conforming instance is never touched.
func New(units []Unit, s Strategy) Plan {
	s.Beside = s.Beside && s.MaxSurge > 0
	p := planner{Strategy: s}
	units = crowded(units)
	for _, u := range units {
		p.count(u)
	}
	order := units
	if !s.Ordered && refused(units) {
		order = slices.SortedStableFunc(slices.Values(units), func(a, b Unit) int { return cmp.Compare(a.Refused, b.Refused) })
	}
	for _, u := range order {
		p.visit(u)
	}
	p.spendRest(order)
	p.Steps = append(p.free, p.Steps...)
	p.sortWaiting(units)
	return p.Plan
}

// refused reports whether the API server refused the last step of a unit.
func refused(units []Unit) bool {
	return slices.ContainsFunc(units, func(u Unit) bool { return u.Refused > 0 })
}

// crowded returns units with those marked whose place another one has too: each would be planned as if it were the only
// one there.
func crowded(units []Unit) []Unit {
	times := make(map[string]int, len(units))
	for _, u := range units {
		times[u.Key]++
	}
	if len(times) == len(units) {
		return units
	}
	out := slices.Clone(units)
	for i := range out {
		out[i].Crowded = out[i].Crowded || times[out[i].Key] > 1
	}
	return out
}

// planner is one run of New. What it has spent so far is in unavailable, surging and spare.
type planner struct {
	Strategy
	Plan

	free                        []Step
	unavailable, surging, spare int
	// follows and full are why units wait for the first one, and for the budget: the same for a thousand of them.
	follows, full string
}

// sortWaiting sorts Waiting as the units were given. The caller forgets refusals in time, and its reports must not
// change by that.
func (p *planner) sortWaiting(units []Unit) {
	if !refused(units) {
		return // it is sorted
	}
	at := make(map[string]int, len(p.Waiting))
	for i, u := range units {
		at[u.Key] = i
	}
	slices.SortStableFunc(p.Waiting, func(a, b Wait) int { return cmp.Compare(at[a.Unit], at[b.Unit]) })
}

// count looks at the whole set before anything is decided: to count the budget over the part seen so far was
// kruise#1480.
func (p *planner) count(u Unit) {
	if u.Crowded || u.Old != nil && u.New != nil {
		p.surging++
	}
	if u.Leaving {
		if u.available() {
			p.spare++
		}
		return
	}
	p.Total++
	p.progress(u)
	if u.New != nil && u.Old == nil && !u.Crowded {
		p.Updated++
	}
	switch {
	case u.available():
		p.Available++
	case u.Vacant && u.empty():
		p.Held++
	default:
		p.Unavailable++
		p.unavailable++
		p.Down = append(p.Down, u.Key)
		p.spare--
		if u.Keeps && u.empty() {
			p.Held++
		}
	}
}

// progress counts what is done in a unit.
func (p *planner) progress(u Unit) {
	if u.Old == nil && !u.Crowded {
		p.Done.Gone++
	}
	if u.New == nil {
		return
	}
	p.Done.Made++
	if u.New.serves() {
		p.Done.Ready++
	}
	if u.New.Available {
		p.Done.Available++
	}
}

// visit decides about one unit.
func (p *planner) visit(u Unit) {
	switch {
	case u.Old == nil && !u.Crowded:
	case u.Held && u.New == nil:
		p.Held++
	case p.Paused:
		p.Held++
		p.wait(u, "the rollout is paused")
	case u.Crowded:
		p.wait(u, "it holds more instances than one of each revision; the surplus goes first")
	case u.New != nil:
		p.finishSurge(u)
	case u.Stays != "":
		p.wait(u, u.Stays)
	case u.Leaving:
		p.leave(u)
	default:
		p.replace(u)
	}
}

// finishSurge decides about a unit that holds both.
func (p *planner) finishSurge(u Unit) {
	switch {
	case u.New.Available:
		p.step(Step{
			Verb: Delete, Unit: u.Key, Instance: u.Old.Name,
			Reason: fmt.Sprintf("%s took its place on %s and is available", u.New.Name, u.Key),
		})
	case !u.Old.serves() && (!p.Beside || u.Old.NeverReady || u.New.serves()):
		p.step(Step{
			Verb: Delete, Unit: u.Key, Instance: u.Old.Name,
			Reason: fmt.Sprintf("it is not ready, and %s is there to take its place on %s", u.New.Name, u.Key),
		})
	default:
		p.wait(u, fmt.Sprintf("%s is not available yet", u.New.Name))
	}
}

// spendRest replaces units that hold both within the rest of MaxUnavailable, as if they held the old instance only. A
// new instance may be unable to start beside the old one, which may use its host port or the room on its node. Users
// turn the surge off then.
func (p *planner) spendRest(units []Unit) {
	for _, u := range units {
		surges := u.Old != nil && u.New != nil && !u.Crowded && !u.New.Available && u.Old.serves()
		if !surges || u.Held || u.Stays != "" || u.Leaving || p.Paused {
			continue
		}
		reason := "it comes from revision " + u.Old.Revision
		switch {
		case u.Old.Available && p.unavailable < p.MaxUnavailable:
			p.unavailable++
			reason += fmt.Sprintf(" (unavailable %d of %d)", p.unavailable, p.MaxUnavailable)
		case u.Old.Available, p.MaxSurge > 0:
			continue
		}
		p.Waiting = slices.DeleteFunc(p.Waiting, func(w Wait) bool { return w.Unit == u.Key })
		p.step(Step{Verb: Delete, Unit: u.Key, Instance: u.Old.Name, Reason: reason})
	}
}

// replace decides about a unit that holds an old instance only.
func (p *planner) replace(u Unit) {
	old := u.Old
	// With surge, an instance that is ready counts, even if not yet for minReadySeconds: it is replaced by surge.
	expendable := !old.Available
	if p.MaxSurge > 0 {
		expendable = !old.serves()
	}
	switch {
	case p.Beside && !old.Available:
		p.free = append(p.free, Step{
			Verb: Create, Unit: u.Key,
			Reason: fmt.Sprintf("%s on %s comes from revision %s and is not available", old.Name, u.Key, old.Revision),
		})
	case expendable:
		p.free = append(p.free, Step{
			Verb: Delete, Unit: u.Key, Instance: old.Name,
			Reason: fmt.Sprintf("it comes from revision %s and is not available anyway", old.Revision),
		})
	case p.Ordered && len(p.Waiting) > 0:
		if p.follows == "" {
			p.follows = p.Waiting[0].Unit + " comes first"
		}
		p.wait(u, p.follows)
	case old.Available && p.unavailable < p.MaxUnavailable:
		p.unavailable++
		p.step(Step{
			Verb: Delete, Unit: u.Key, Instance: old.Name,
			Reason: fmt.Sprintf("it comes from revision %s (unavailable %d of %d)", old.Revision, p.unavailable, p.MaxUnavailable),
		})
	case p.surging < p.MaxSurge:
		p.surging++
		p.step(Step{
			Verb: Create, Unit: u.Key,
			Reason: fmt.Sprintf("%s on %s comes from revision %s (surge %d of %d)", old.Name, u.Key, old.Revision, p.surging, p.MaxSurge),
		})
	case !old.Available:
		p.wait(u, fmt.Sprintf("it is ready but not available yet, and the surge is %d of %d", p.surging, p.MaxSurge))
	default:
		p.wait(u, p.spent())
	}
}

// spent says that the budget is, which stays so for all units that follow.
func (p *planner) spent() string {
	switch {
	case p.full != "":
	case p.MaxSurge > 0:
		p.full = fmt.Sprintf("the surge is %d of %d", p.surging, p.MaxSurge)
	default:
		p.full = fmt.Sprintf("%d of %d may be unavailable, and %d are", p.MaxUnavailable, p.Total, p.unavailable)
	}
	return p.full
}

// leave decides about an old instance in a place that needs no new one.
func (p *planner) leave(u Unit) {
	step := Step{
		Verb: Delete, Unit: u.Key, Instance: u.Old.Name,
		Reason: fmt.Sprintf("it comes from revision %s, and %s takes no new one", u.Old.Revision, u.Key),
	}
	switch {
	case !u.Old.Available:
		p.free = append(p.free, step)
	case p.MaxSurge > 0 && p.spare > 0:
		p.spare--
		p.step(step)
	case p.MaxSurge == 0 && p.unavailable < p.MaxUnavailable:
		p.unavailable++
		p.step(step)
	default:
		p.wait(u, "it is kept until the rest of the set is available")
	}
}

func (p *planner) step(s Step) { p.Steps = append(p.Steps, s) }

func (p *planner) wait(u Unit, reason string) {
	p.Waiting = append(p.Waiting, Wait{Unit: u.Key, Reason: reason})
}
