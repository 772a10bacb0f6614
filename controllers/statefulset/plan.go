package statefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides about scaling: which pods and claims are created, which are deleted, and in which order. It is
// pure: facts in, a plan with reasons out.

// facts is all that a plan is made from.
type facts struct {
	// set is the StatefulSet as it was read.
	set *appsv1.StatefulSet
	// update and current are what pods are created from (rule E4): the revision that the spec asks for, and the one of the
	// pods that are not updated yet.
	update, current source
	// pods are the pods of the set, claims the claims of all ordinals that are asked for or that a pod has, by name.
	pods   []*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// conflicting are pods of other owners under names that the set asks for.
	conflicting map[string]*corev1.Pod
	// now is when the facts were gathered.
	now time.Time
	// hold says that the update revision could not be recorded: no pod is replaced.
	hold bool
	// altered reports whether admission altered a pod, which is not replaced then. Nil means no.
	altered pass.Altered
	// pause returns how long a pod that ended stays before it is replaced. Nil means that none does.
	pause func(pod string) pass.Wait
	// barred are the pods that cannot come from a revision: see refusals.go.
	barred map[refused]bool
	// lost are the names of revisions that pods come from and that were deleted or cannot be read.
	lost map[string]bool
}

// plan is what one pass does, and what it found out.
type plan struct {
	pass.Work[creation, deletion]

	// from are the facts of the plan.
	from facts
	// claims are to be created for pods that wait for them, owners are to be set on claims, identities on pods.
	claims     []*corev1.PersistentVolumeClaim
	owners     []ownerChange
	identities []identityChange
	// waits says what scaling waits for.
	waits []rollout.Wait
	// surplus is how many pods there are that are not asked for.
	surplus int
	// recreating is how many pods of other revisions there are under the strategy Recreate, terminating ones included.
	recreating int
	// guarded are the pods that are not created because the current revision is lost.
	guarded []string
	// foreign are the claims that another controller owns.
	foreign []string
	// differs says of pods that stay how they differ from what was asked for when they were created.
	differs []string
	// rollout is the plan of the rolling update; its steps are among the deletes already.
	rollout rollout.Plan
	counts  counts
	// promote says that the update revision is the current one from now on.
	promote bool
}

type creation struct {
	ordinal int64
	from    source
	// instead, if it has a template, is what the pod is created from if the API server refuses the planned revision and
	// goes on to.
	instead source
	// held says that the pod is below the partition, where no other revision may replace the current one.
	held bool
	// claims are those of the pod that are missing.
	claims []*corev1.PersistentVolumeClaim
	reason string
}

type deletion struct {
	pod    *corev1.Pod
	reason string
	// next is the revision that is asked for, if the pod ended by itself; else it is empty.
	next string
	// bars is the pod that must not come from its revision again, zero if it may.
	bars refused
	// owners are to be set first, or the claims of a condemned pod would not be deleted with it.
	owners []ownerChange
}

type ownerChange struct {
	claim  *corev1.PersistentVolumeClaim
	owners []metav1.OwnerReference
}

type identityChange struct {
	pod    *corev1.Pod
	labels map[string]string
}

// slot is one ordinal that is asked for.
type slot struct {
	ordinal int64
	name    string
	// pod is the existing pod, nil if there is none.
	pod *corev1.Pod
	// alive says that the pod holds its place. Of such a pod, available says that it is available, and conforms that it
	// comes from the update revision.
	alive, available, conforms bool
	// vacant is true if the slot stays empty, because it is below the partition and the current revision is lost. No other
	// pod waits for it.
	vacant bool
	// volumesDiffer says how its volumes differ from the claims of the ordinal, empty if they do not.
	volumesDiffer string
}

// planner is one run of makePlan.
type planner struct {
	facts
	*plan

	slots []slot
	// around is what source.go needs to know of the other slots, summed up once.
	around    around
	condemned []*corev1.Pod // highest ordinal first
	ordered   bool
	partition int
	budget    int
	// blocked is why nothing may follow under OrderedReady: the first thing that is not as it should be.
	blocked string
	// halted says that surplus pods wait for pods that are asked for. They get no claims to take along yet.
	halted bool
}

// makePlan plans one pass: every ordinal gets its pod, surplus pods are deleted, and the rolling update takes its
// steps.
func makePlan(f facts) (*plan, error) {
	p, err := newPlanner(f)
	if err != nil {
		return nil, err
	}
	if p.recreates() && slices.ContainsFunc(p.pods, p.outdated) {
		p.recreate()
	} else {
		for i := range p.slots {
			p.visit(i)
		}
		p.scaleDown()
	}
	p.roll()
	p.own()
	p.counts = countsOf(f.set, f.pods, f.current.name, f.update.name, f.now)
	p.promote = !p.hold && p.conformed()
	return p.plan, nil
}

// newPlanner sorts the pods into slots and surplus.
func newPlanner(f facts) (*planner, error) {
	p := &planner{facts: f, plan: &plan{from: f}, ordered: f.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement}
	start, count := ordinals(f.set)
	p.slots = make([]slot, 0, min(count, int64(len(f.pods))))
	for i := range count {
		p.slots = append(p.slots, slot{ordinal: start + i, name: podName(f.set, start+i)})
	}
	for _, pod := range f.pods {
		_, left := availability(pod, minReady(f.set), f.now)
		p.LookAgain(left) // no event marks the moment when it becomes available
		ordinal, ok := ordinalOf(f.set, pod.Name)
		switch {
		case !ok: // it has our reference and a name that we never give: another writer added it
		case inRange(f.set, ordinal):
			p.place(&p.slots[ordinal-start], pod)
		default:
			p.condemned = append(p.condemned, pod)
		}
	}
	slices.SortFunc(p.condemned, func(a, b *corev1.Pod) int {
		x, _ := ordinalOf(f.set, a.Name)
		y, _ := ordinalOf(f.set, b.Name)
		return cmp.Compare(y, x)
	})
	var err error
	p.surplus = len(p.condemned)
	p.partition, p.budget, err = strategyOf(f.set)
	for i := range p.slots {
		p.slots[i].vacant = p.isVacant(i)
	}
	p.around = sumUp(p.slots, p.ordered, p.now)
	return p, err
}

// place puts a pod into its slot. Labels are trusted: only this controller writes them, and a pod's content is set when
// it is created.
func (p *planner) place(s *slot, pod *corev1.Pod) {
	s.pod = pod
	if s.alive = alive(pod); !s.alive {
		return
	}
	s.available, _ = availability(pod, minReady(p.set), p.now)
	s.conforms = p.update.name != "" && !p.outdated(pod)
	if s.conforms && s.unproven(p.now) {
		p.LookAgain(pod.CreationTimestamp.Add(lasting).Sub(p.now))
	}
	s.volumesDiffer = storageDiffers(p.set, s.ordinal, pod)
}

// outdated reports whether a pod of the set comes from another revision than the update revision.
func (p *planner) outdated(pod *corev1.Pod) bool {
	_, ok := ordinalOf(p.set, pod.Name)
	return ok && revisionOf(pod) != p.update.name
}

// isAltered reports whether admission has altered a pod, and would alter the pod that takes its place.
func (f *facts) isAltered(pod *corev1.Pod, from source) bool {
	return f.altered != nil && (f.altered(pod, from.name) || f.altered(pod, f.update.name))
}

// visit plans for one ordinal, lowest first.
func (p *planner) visit(i int) {
	s := p.slots[i]
	switch {
	case s.pod == nil:
		p.fill(i)
	case going(s.pod):
		p.blockf("%s is terminating", s.name)
	case ended(s.pod):
		p.replace(s)
		p.blockf("%s ended and is replaced", s.name)
	default:
		p.keep(s)
	}
}

// replace plans the deletion of a pod that has ended by itself.
func (p *planner) replace(s slot) {
	if p.ordered && p.blocked != "" {
		return
	}
	if p.pause != nil && readiness.NeverReady(s.pod) { // one that was ready has not failed to start
		if wait := p.pause(s.name); wait.Length > 0 {
			p.waitf(s.name, "it ended (%s), and is replaced when %s", s.pod.Status.Phase, wait)
			p.LookAgain(wait.Length)
			return
		}
	}
	reason := fmt.Sprintf("it ended (%s), and a pod that runs takes its place", s.pod.Status.Phase)
	p.remove(deletion{pod: s.pod, reason: reason, next: p.update.name})
}

// fill plans a pod for an ordinal that has none.
func (p *planner) fill(i int) {
	s := p.slots[i]
	if p.ordered && p.blocked != "" {
		return
	}
	if pod := p.conflicting[s.name]; pod != nil {
		p.missf(s, "another pod has the name, and belongs to %s; it is left alone", ownerName(pod))
		p.LookAgain(pass.TakenRetry)
		return
	}
	from := p.sourceOf(i)
	if from.template == nil {
		p.guarded = append(p.guarded, s.name)
		p.missf(s, "it is to come from revision %s, and %s", from.name, from.lost)
		return
	}
	for _, name := range claimNames(p.set, s.ordinal) {
		if claim, ok := p.facts.claims[name]; ok {
			if why := staleFor(p.set, s.name, claim); why != "" {
				p.missf(s, "%s", why)
				return
			}
		}
	}
	c := creation{ordinal: s.ordinal, from: from, claims: p.missingClaims(s.ordinal), reason: "revision " + from.name}
	if from.name != p.update.name {
		if c.held = i < p.partition && p.runsCurrent(); !c.held {
			c.instead = p.update
		}
	}
	p.Creates = append(p.Creates, c)
	p.blockf("%s does not exist", s.name)
}

// runsCurrent reports whether a pod of the current revision is left, so that the partition holds something.
func (p *planner) runsCurrent() bool {
	return slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return revisionOf(pod) == p.current.name })
}

// missf waits for a pod that cannot be created now, and blocks what follows with the same reason, unless nothing waits
// for it.
func (p *planner) missf(s slot, format string, args ...any) {
	p.waitf(s.name, format, args...)
	if !s.vacant {
		p.blockf("%s does not exist: %s", s.name, p.waits[len(p.waits)-1].Reason)
	}
}

// keep plans for a pod that holds its place: whether others may follow, and what it lacks.
func (p *planner) keep(s slot) {
	if s.pod.Status.Phase == corev1.PodPending {
		// Without its claims it stays pending for ever.
		p.plan.claims = append(p.plan.claims, p.missingClaims(s.ordinal)...)
	}
	switch {
	case s.available:
	case isReady(s.pod):
		p.blockf("%s is ready, but not available yet", s.name)
	case readiness.NeverReady(s.pod) && unstarted(s.pod):
		p.blockf("%s cannot start from revision %s", s.name, revisionOf(s.pod))
	default:
		p.blockf("%s is not ready", s.name)
	}
	if s.conforms && s.volumesDiffer != "" {
		p.differs = append(p.differs, fmt.Sprintf("pod %s stays as it was created: %s, and volumes cannot change", s.name, s.volumesDiffer))
	}
	if !carriesIdentity(&s) {
		labels := misses(s.pod, identityLabels(p.set, s.ordinal))
		p.identities = append(p.identities, identityChange{s.pod, labels})
	}
}

// missingClaims builds the claims of an ordinal that do not exist.
func (p *planner) missingClaims(ordinal int64) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for i := range p.set.Spec.VolumeClaimTemplates {
		template := &p.set.Spec.VolumeClaimTemplates[i]
		if _, ok := p.facts.claims[claimName(p.set, template, ordinal)]; !ok {
			out = append(out, claimFor(p.set, template, ordinal))
		}
	}
	return out
}

func minReady(set *appsv1.StatefulSet) time.Duration {
	return time.Duration(set.Spec.MinReadySeconds) * time.Second
}

// blockf remembers the first reason why nothing may follow. Without an order nothing is ever blocked.
func (p *planner) blockf(format string, args ...any) {
	if p.blocked == "" && p.ordered {
		p.blocked = fmt.Sprintf(format, args...)
	}
}

func (p *planner) waitf(unit, format string, args ...any) {
	p.waits = append(p.waits, rollout.Wait{Unit: unit, Reason: fmt.Sprintf(format, args...)})
}

func (p *planner) remove(d deletion) { p.Deletes = append(p.Deletes, d) }

// note says how some pods differ although all come from the update revision.
func (p *plan) note() string {
	switch more := len(p.differs) - 1; {
	case more < 0:
		return ""
	case more == 0:
		return "; " + p.differs[0]
	default:
		return fmt.Sprintf("; %s, and %d more pods likewise", p.differs[0], more)
	}
}
