package daemonset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what one pass does. It is pure: facts in, a plan with reasons out.

// facts is all that a plan is made from.
type facts struct {
	// ds is the DaemonSet with its template restored from the update revision (rule E4).
	ds *appsv1.DaemonSet
	// selector is that of the pods.
	selector labels.Selector
	// hash is the label value of the revision that pods are made from: the update revision.
	hash string
	// hold says that the update revision could not be recorded. Then hash and template are those of the newest revision
	// that exists, or hash is empty; lost pods are recreated from it, and nothing is replaced.
	hold bool
	// altered reports whether admission altered a pod, which is not replaced then. Nil means no.
	altered pass.Altered
	// asked is the DaemonSet as its spec is, nil if ds is that: a pod that may stay by it is not deleted.
	asked *appsv1.DaemonSet
	// nodes are all nodes, pods the claimed pods by node.
	nodes []*corev1.Node
	pods  map[string][]*corev1.Pod
	// past, if not nil, returns the UIDs of the last pods of the update revision, by node: a new pod never has the name of
	// one that it replaces; and the UIDs of all pods that are there or remembered, by their names, which no new pod gets.
	// It costs what there are pods, so it is for passes that create some.
	past func() (last, seen map[string]types.UID)
	// failed is [pass.Pass.Failed], by the name of a pod, or of the node for a creation. Nil means that nothing failed.
	failed func(name string) int
	// now is when the facts were gathered.
	now time.Time
	// backoff returns how long a failed pod on a node must stay before it is replaced by one of the update revision; zero
	// or less means now.
	backoff func(node string) pass.Wait
}

// before is past, of no pods if that is nil.
func (f *facts) before() (last, seen map[string]types.UID) {
	if f.past == nil {
		return nil, nil
	}
	return f.past()
}

// plan is what one pass does, and what it found out.
type plan struct {
	pass.Work[creation, deletion]

	// from are the facts of the plan.
	from facts
	// rollout is the plan of the rolling update; its steps are among creates and deletes already.
	rollout rollout.Plan
	// counts are the counters of the status.
	counts counts
	// paused are the nodes whose failed pod is not replaced yet, and why.
	paused []rollout.Wait
}

type creation struct {
	node, reason string
	// after is the UID of the pod that this one replaces, empty if it is the first of its revision on the node.
	after types.UID
}

type deletion struct {
	pod    *corev1.Pod
	node   string
	reason string
	// failed and succeeded mark pods that ended by themselves: these have events of their own, and failed ones a back-off.
	failed, succeeded bool
	// hash is that of the revision that the next pod is made from.
	hash string
}

// counts are the counters of apps/v1 DaemonSetStatus, each recomputed from what is there.
type counts struct {
	desired, current, misscheduled, ready, updated, available int32
}

// makePlan plans one pass: every node gets its pod, surplus and misplaced pods are deleted, and the rolling update
// takes its next steps within its budget.
func makePlan(f facts) (*plan, error) {
	place := placementFor(f.ds)
	budget, err := budgetOf(f, place)
	if err != nil {
		return nil, err
	}
	p := &planner{facts: f, plan: &plan{from: f}, place: place, surge: budget.MaxSurge > 0}
	if f.asked != nil {
		p.placeAsked = placementFor(f.asked)
	}
	var units []rollout.Unit
	slices.SortFunc(p.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range p.nodes {
		if unit, ok := p.visit(node); ok {
			units = append(units, unit)
		}
	}
	p.strays()
	p.rollout = rollout.New(units, budget)
	if p.hold {
		p.counts.updated, p.rollout.Steps = 0, nil // without the update revision no pod is up to date, and none is replaced
	}
	p.take(p.rollout.Steps)
	if p.hash == "" {
		p.Creates = nil // there is no template to create a pod from
	}
	return p.plan, nil
}

// refused is when the last step of a node failed: see [rollout.Unit].
func (f *facts) refused(u rollout.Unit) int {
	switch {
	case f.failed == nil:
		return 0
	case u.Old == nil:
		return f.failed(u.Key)
	default:
		return max(f.failed(u.Key), f.failed(u.Old.Name))
	}
}

// budgetOf resolves the percentages of the update strategy against the nodes that should run a pod.
func budgetOf(f facts, place placement) (rollout.Strategy, error) {
	desired := 0
	for _, node := range f.nodes {
		if start, _ := place.on(node); start {
			desired++
		}
	}
	update := f.ds.Spec.UpdateStrategy.RollingUpdate
	if f.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || update == nil {
		return rollout.Strategy{}, nil
	}
	unavailable, err := scaled(update.MaxUnavailable, desired)
	if err != nil {
		return rollout.Strategy{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.maxUnavailable: %w", err)
	}
	surge, err := scaled(update.MaxSurge, desired)
	if err != nil {
		return rollout.Strategy{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.maxSurge: %w", err)
	}
	if unavailable == 0 && surge == 0 {
		unavailable = 1 // a percentage of few nodes; with a budget of 0 the rollout would never end
	}
	return rollout.Strategy{MaxUnavailable: unavailable, MaxSurge: surge, Beside: true}, nil
}

// surges reports whether the update strategy asks for a surge on any node.
func surges(ds *appsv1.DaemonSet) bool {
	update := ds.Spec.UpdateStrategy.RollingUpdate
	if update == nil {
		return false
	}
	surge, err := scaled(update.MaxSurge, 1)
	return err == nil && surge > 0
}

func scaled(value *intstr.IntOrString, of int) (int, error) {
	if value == nil {
		return 0, nil
	}
	return intstr.GetScaledValueFromIntOrPercent(value, of, true)
}

// planner is one run of makePlan.
type planner struct {
	facts
	*plan

	place placement
	// placeAsked is where the pods would belong once the spec is recorded, empty if asked is nil.
	placeAsked placement
	surge      bool
}

// visit plans for one node: which pods are deleted, whether one is created, and what the rollout sees. ok is false for
// nodes that the rollout has nothing to do with.
func (p *planner) visit(node *corev1.Node) (unit rollout.Unit, ok bool) {
	pods := p.pods[node.Name]
	start, stay := p.place.on(node)
	if p.asked != nil && !stay {
		_, stay = p.placeAsked.on(node) // it may by the spec, which is not recorded yet
	}
	p.tally(pods, start)
	switch {
	case !stay:
		for _, pod := range alive(pods) {
			p.remove(deletion{pod: pod, node: node.Name, reason: fmt.Sprintf("node %s takes no pod of this DaemonSet", node.Name)})
		}
		return rollout.Unit{}, false
	case start && len(pods) == 0:
		p.create(node.Name, fmt.Sprintf("node %s has none", node.Name))
	case start && p.surge && len(alive(pods)) == 0:
		p.create(node.Name, fmt.Sprintf("all pods on node %s are terminating", node.Name))
	}
	running, paused := p.running(node.Name, pods)
	unit = p.unit(node.Name, running)
	unit.Leaving, unit.Refused = !start, p.refused(unit)
	if p.surge {
		unit.Stays = paused // what takes its place failed a moment ago
	}
	unit.Held = unit.Held || p.hold || p.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	return unit, start || unit.Old != nil || unit.New != nil || unit.Crowded
}

// running plans the deletion of pods that ended by themselves, and returns the others that are not terminating; and of
// those that failed which of them stays for a while and why, empty if none does.
func (p *planner) running(node string, pods []*corev1.Pod) (out []*corev1.Pod, paused string) {
	for _, pod := range alive(pods) {
		switch pod.Status.Phase {
		case corev1.PodFailed:
			// Kubelets reject pods that the scheduler accepts; without a pause the two would race.
			if wait := p.backoff(node); wait.Length > 0 {
				p.LookAgain(wait.Length)
				paused = fmt.Sprintf("pod %s failed and is replaced when %s", pod.Name, wait)
				p.paused = append(p.paused, rollout.Wait{Unit: node, Reason: paused})
				continue
			}
			p.remove(deletion{pod: pod, node: node, failed: true, hash: p.hash, reason: fmt.Sprintf("it failed on node %s", node)})
		case corev1.PodSucceeded:
			p.remove(deletion{pod: pod, node: node, succeeded: true, reason: fmt.Sprintf("it ended on node %s", node)})
		default:
			out = append(out, pod)
		}
	}
	return out, paused
}

// unit describes one node to the rollout, and plans the deletion of pods beyond one of each revision state.
func (p *planner) unit(node string, running []*corev1.Pod) rollout.Unit {
	old, conforming := pass.ByRevision(running, p.conforms, p.isAltered)
	return rollout.Unit{
		Key: node, Old: p.keepOne(node, old), New: p.keepOne(node, conforming),
		// A surge beside a surplus would make three of them, because the creates of a pass come before its deletes.
		Crowded: p.surge && (len(old) > 1 || len(conforming) > 1),
		Held:    slices.ContainsFunc(old, p.isAltered),
	}
}

// keepOne keeps one pod (available, then ready, then oldest first), and plans the deletion of the others.
func (p *planner) keepOne(node string, pods []*corev1.Pod) *rollout.Instance {
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(pass.TrueFirst(p.available(a), p.available(b)), pass.TrueFirst(isReady(a), isReady(b)), elder(a, b))
	})
	for _, pod := range pods[1:] {
		if p.hold || p.isAltered(pod) != p.isAltered(pods[0]) {
			continue // it is unknown whether they are of one revision
		}
		p.remove(deletion{pod: pod, node: node, reason: fmt.Sprintf("node %s has another of the same revision", node)})
	}
	keep := pods[0]
	return &rollout.Instance{
		Name:      keep.Name,
		Revision:  cmp.Or(keep.Labels[appsv1.DefaultDaemonSetUniqueLabelKey], "unknown"),
		Ready:     isReady(keep),
		Available: p.available(keep), NeverReady: readiness.NeverReady(keep),
	}
}

// strays plans the deletion of pods that wait to be scheduled to a deleted node: no other controller would delete them.
func (p *planner) strays() {
	known := make(map[string]bool, len(p.nodes))
	for _, node := range p.nodes {
		known[node.Name] = true
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(p.pods)), func(node string) bool { return known[node] })
	slices.Sort(gone)
	for _, node := range gone {
		for _, pod := range alive(p.pods[node]) {
			if pod.Spec.NodeName == "" {
				p.remove(deletion{pod: pod, node: node, reason: fmt.Sprintf("it waits for node %s, which does not exist", node)})
			}
		}
	}
}

// take turns the rollout's steps into creates and deletes.
func (p *planner) take(steps []rollout.Step) {
	for _, s := range steps {
		switch s.Verb {
		case rollout.Create:
			p.create(s.Unit, s.Reason)
		case rollout.Delete:
			i := slices.IndexFunc(p.pods[s.Unit], func(pod *corev1.Pod) bool { return pod.Name == s.Instance })
			p.remove(deletion{pod: p.pods[s.Unit][i], node: s.Unit, reason: s.Reason})
		}
	}
}

// tally counts one node for the status, as kubectl users know the counters: by the oldest pod of the node.
func (p *planner) tally(pods []*corev1.Pod, start bool) {
	switch {
	case start:
		p.counts.desired++
	case len(pods) > 0:
		p.counts.misscheduled++
		return
	}
	if len(pods) == 0 {
		return
	}
	p.counts.current++
	oldest := slices.MinFunc(pods, elder)
	if isReady(oldest) {
		p.counts.ready++
	}
	if p.available(oldest) {
		p.counts.available++
	}
	// A node is up to date when it has no other pod, running or about to be created: a full count says that the rollout is
	// over (R4).
	other := func(pod *corev1.Pod) bool { return !p.conforms(pod) }
	if p.conforms(oldest) && !slices.ContainsFunc(alive(pods), other) {
		p.counts.updated++
	}
}

func (f *facts) isAltered(pod *corev1.Pod) bool { return f.altered != nil && f.altered(pod, f.hash) }

// conforms reports whether a pod comes from the update revision. Labels are trusted: only this controller writes them,
// and a pod's content is set when it is created. Like upstream, it accepts the hash or the template generation:
// admission or a user may have changed either label. The template generation does not count for a pod that is older
// than the DaemonSet. The name of the first pod on a node proves that a pod is not older.
func (f *facts) conforms(pod *corev1.Pod) bool {
	hash := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	switch {
	case f.hash == "":
		return false
	case hash == f.hash:
		return true
	case f.hold:
		return false
	}
	return history.SameTemplateGeneration(f.ds, pod) && (history.HasTemplateGeneration(f.ds, pod) || f.isFirst(pod))
}

// isFirst reports whether a pod has the name of the first pod of the update revision on its node.
func (f *facts) isFirst(pod *corev1.Pod) bool {
	node, err := nodeOf(pod)
	return err == nil && pod.Name == podName(f.ds, f.hash, creation{node: node})
}

// available reports whether a pod has been ready for minReadySeconds. If not yet, the DaemonSet is requeued for that
// time: no event marks it.
func (p *planner) available(pod *corev1.Pod) bool {
	available, left := readiness.Available(pod, time.Duration(p.ds.Spec.MinReadySeconds)*time.Second, p.now)
	p.LookAgain(left)
	return available
}

func (p *planner) create(node, reason string) {
	last, _ := p.before()
	p.Creates = append(p.Creates, creation{node: node, reason: reason, after: last[node]})
}

func (p *planner) remove(d deletion) { p.Deletes = append(p.Deletes, d) }

// alive returns the pods that are not terminating.
func alive(pods []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

func isReady(pod *corev1.Pod) bool { return readiness.Ready(pod) }
