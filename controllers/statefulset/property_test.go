package statefulset

// What holds for every plan, whatever the pods look like: nothing is done twice, nothing conforming goes (P3), no
// ordinal gets two pods (P1), the budget is kept over the whole set (R1), the order is kept (R3), a pod below the
// partition comes from the current revision (P5), counters agree (S1), and the current revision is promoted for nothing
// less than all (S3).

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/internal/readiness"
)

func situations() *rapid.Generator[facts] {
	return rapid.Custom(func(t *rapid.T) facts {
		options := []setOption{
			replicas(rapid.Int32Range(0, 5).Draw(t, "replicas")), startAt(rapid.Int32Range(0, 2).Draw(t, "start")),
			partition(rapid.SampledFrom([]int32{0, 0, 0, 1, 3}).Draw(t, "partition")), atOnce(rapid.IntRange(1, 3).Draw(t, "maxUnavailable")),
			minReadyFor(10),
		}
		for _, option := range []setOption{parallel, keepsNeverReady, onDelete} {
			if rapid.IntRange(0, 3).Draw(t, "option") == 0 {
				options = append(options, option)
			}
		}
		var pods []*corev1.Pod
		for i := range 8 {
			if rapid.IntRange(0, 3).Draw(t, "missing") == 0 {
				continue
			}
			p := pod(int64(i), rapid.SampledFrom([]string{"a", "a", "b", "b", "z", ""}).Draw(t, "revision"))
			for _, option := range []podOption{unready, stuck, crashing, ready(5 * time.Second), terminating, phase(corev1.PodFailed), pending} {
				if rapid.IntRange(0, 7).Draw(t, "option") == 0 {
					option(p)
				}
			}
			pods = append(pods, p)
		}
		f := given(web(options...), pods...)
		if rapid.IntRange(0, 4).Draw(t, "settled") == 0 {
			f.current = f.update
		} else if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
			loseCurrent(&f)
		}
		return f
	})
}

func loseCurrent(f *facts) {
	f.current.template, f.current.lost = nil, "that revision was deleted"
	f.lost = map[string]bool{f.current.name: true}
}

// keptEmpty are the ordinals that the partition keeps at a lost revision, and that have no pod. They cost no budget.
func keptEmpty(f facts, at map[int64]*corev1.Pod) map[int64]bool {
	out := map[int64]bool{}
	start, count := ordinals(f.set)
	partition, _, _ := strategyOf(f.set)
	for ordinal := start; ordinal < start+min(count, int64(partition)); ordinal++ {
		if at[ordinal] == nil && f.current.template == nil && f.current.name != f.update.name && !onDeletes(f.set) {
			out[ordinal] = true
		}
	}
	return out
}

// serves reports whether a pod is available, counted in another way than the plan does.
func serves(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && now.Sub(c.LastTransitionTime.Time) >= 10*time.Second
		}
	}
	return false
}

func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := situations().Draw(t, "facts")
		p, err := makePlan(f)
		if err != nil {
			t.Fatal(err)
		}
		start, count := ordinals(f.set)
		at := map[int64]*corev1.Pod{}
		up := int64(0)
		for _, pod := range f.pods {
			ordinal, _ := ordinalOf(f.set, pod.Name)
			at[ordinal] = pod
			if inRange(f.set, ordinal) && serves(pod) {
				up++
			}
		}
		up += int64(len(keptEmpty(f, at)))
		partition, budget, _ := strategyOf(f.set)
		seen := map[string]bool{}
		for _, c := range p.Creates {
			switch name := podName(f.set, c.ordinal); {
			case seen[name], at[c.ordinal] != nil, !inRange(f.set, c.ordinal), c.reason == "":
				t.Fatalf("%s is created beside another one, or not asked for", name)
			case !onDeletes(f.set) && c.ordinal-start < int64(partition) && c.from.name != f.current.name:
				t.Fatalf("%s is below the partition and comes from %s", name, c.from.name)
			default:
				seen[name] = true
			}
		}
		taken, lowest := int64(0), start+count
		for _, d := range p.Deletes {
			ordinal, _ := ordinalOf(f.set, d.pod.Name)
			if seen[d.pod.Name] || d.pod.DeletionTimestamp != nil || d.reason == "" {
				t.Fatalf("%s is deleted twice, or for no reason", d.pod.Name)
			}
			seen[d.pod.Name] = true
			if !inRange(f.set, ordinal) || ended(d.pod) {
				continue
			}
			if revisionOf(d.pod) == f.update.name || onDeletes(f.set) {
				t.Fatalf("%s goes: %s", d.pod.Name, d.reason)
			}
			if serves(d.pod) {
				taken++
				lowest = min(lowest, ordinal)
			}
		}
		if taken > 0 && count-up+taken > int64(budget) {
			t.Fatalf("%d of %d serve, %d go, %d may: %v", up, count, taken, budget, steps(p))
		}
		for ordinal := lowest; ordinal < start+count && taken > 0; ordinal++ {
			if other := at[ordinal]; alive(other) && revisionOf(other) != f.update.name && !seen[other.Name] {
				t.Fatalf("%s goes before %s: %v", podName(f.set, lowest), other.Name, steps(p))
			}
		}
		orderly(t, f, p, at, up)
		consistent(t, f, p, at)
	})
}

func onDeletes(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// orderly fails if OrderedReady is not kept: one thing at a time, and each only when all before it are available.
func orderly(t *rapid.T, f facts, p *plan, at map[int64]*corev1.Pod, up int64) {
	if f.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return
	}
	start, count := ordinals(f.set)
	var served, surplus []string
	for _, d := range p.Deletes {
		switch ordinal, _ := ordinalOf(f.set, d.pod.Name); {
		case !inRange(f.set, ordinal):
			surplus = append(surplus, d.pod.Name)
		case serves(d.pod):
			served = append(served, d.pod.Name)
		}
	}
	for _, name := range surplus {
		ordinal, _ := ordinalOf(f.set, name)
		healthy := ended(at[ordinal]) || serves(at[ordinal]) // or nothing is taken away
		for _, pod := range f.pods {
			if other, _ := ordinalOf(f.set, pod.Name); other < ordinal && !inRange(f.set, other) && !serves(pod) && !healthy {
				t.Fatalf("%s is not asked for and goes, although neither it nor %s serves: %v", name, pod.Name, steps(p))
			}
		}
	}
	if len(p.Creates)+len(surplus) > 1 || (len(served) > 0 || len(surplus) > 0) && up < count || len(served) > 0 && condemned(f) > 0 {
		t.Fatalf("%d of %d serve, and all at once: %v", up, count, steps(p))
	}
	for _, c := range p.Creates {
		for ordinal := start; ordinal < c.ordinal; ordinal++ {
			if !keptEmpty(f, at)[ordinal] && (at[ordinal] == nil || !serves(at[ordinal])) {
				t.Fatalf("web-%d is created before web-%d is available", c.ordinal, ordinal)
			}
		}
	}
}

// condemned counts the pods of f that are not asked for.
func condemned(f facts) (n int) {
	for _, pod := range f.pods {
		if ordinal, _ := ordinalOf(f.set, pod.Name); !inRange(f.set, ordinal) {
			n++
		}
	}
	return n
}

func consistent(t *rapid.T, f facts, p *plan, at map[int64]*corev1.Pod) {
	c := p.counts
	if c.available < 0 || c.available > c.ready || c.ready > c.replicas || c.current > c.replicas || c.updated > c.replicas || int(c.replicas) != len(f.pods) {
		t.Fatalf("counters %+v of %d pods", c, len(f.pods))
	}
	all := condemned(f) == 0
	start, count := ordinals(f.set)
	for ordinal := start; ordinal < start+count; ordinal++ {
		all = all && alive(at[ordinal]) && revisionOf(at[ordinal]) == f.update.name
	}
	partition, _, _ := strategyOf(f.set)
	if p.promote && (!all || count == 0 && partition > 0) {
		t.Fatal("the current revision is promoted for less than all")
	}
}

// TestLost: whichever single pod is lost while all others are as a rollout leaves them, it comes back at the revision
// that it had, unless the rollout was about to take it, or waits for it: it had not begun, or the set is Parallel.
func TestLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(t, "replicas")
		done := rapid.IntRange(0, n-1).Draw(t, "updated")
		lost := rapid.IntRange(0, n-1).Draw(t, "lost")
		options := []setOption{replicas(int32(n))}
		unordered := rapid.Bool().Draw(t, "parallel")
		if unordered {
			options = append(options, parallel)
		}
		f := given(web(options...))
		want := "web-a"
		for i := range n {
			rev := "a"
			if i >= n-done {
				rev = "b"
			}
			if i == lost {
				if rev == "b" || i == n-done-1 || done == 0 || unordered {
					want = "web-b"
				}
				continue
			}
			f.pods = append(f.pods, pod(int64(i), rev))
		}
		if done == 1 && lost == n-1 {
			want = "web-b"
		}
		p := mustPlanOf(t, f)
		i := slices.IndexFunc(p.Creates, func(c creation) bool { return c.ordinal == int64(lost) })
		if i < 0 || p.Creates[i].from.name != want {
			t.Fatalf("%d of %d updated, web-%d was lost: %v, want it from %s", done, n, lost, steps(p), want)
		}
	})
}

// simulation is one set with its pods. A pod that is deleted goes one tick later; one that is created runs after a tick
// and is ready after another, or crashes if its revision is broken.
type simulation struct {
	set  *appsv1.StatefulSet
	pods []*corev1.Pod
	// target and current are the revisions as status names them, broken those that never become ready.
	target, current string
	broken          map[string]bool
	// lost is true if the current revision was deleted.
	lost   bool
	barred map[refused]bool
	out    strings.Builder
}

func (s *simulation) facts() facts {
	f := given(s.set, s.pods...)
	f.update, f.current, f.barred = revisionNamed(s.target), revisionNamed(s.current), s.barred
	if s.lost {
		loseCurrent(&f)
	}
	return f
}

// line shows each pod as revision and state: + available, . not yet, ! was ready, x going; then what is done.
func (s *simulation) line(p *plan) string {
	var cells []string
	for _, pod := range s.pods {
		sign := "."
		switch {
		case going(pod):
			sign = "x"
		case isReady(pod):
			sign = "+"
		case !readiness.NeverReady(pod):
			sign = "!"
		}
		cells = append(cells, pod.Name+":"+strings.TrimPrefix(revisionOf(pod), "web-")+sign)
	}
	slices.Sort(cells)
	return fmt.Sprintf("%s, current %s: %s\n", strings.Join(cells, " "), s.current, strings.Join(steps(p), ", "))
}

// runs reports whether all pods come from the target, and none is below that ordinal.
func (s *simulation) runs(first int64) bool {
	return !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
		ordinal, _ := ordinalOf(s.set, pod.Name)
		return ordinal < first || revisionOf(pod) != "web-"+s.target
	})
}

// tick lets time pass, and then carries a plan out.
func (s *simulation) tick(p *plan) {
	s.pods = slices.DeleteFunc(s.pods, going)
	for _, pod := range s.pods {
		switch {
		case pod.Status.Phase == corev1.PodPending:
			pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &pod.CreationTimestamp
			stuck(pod)
		case !readiness.NeverReady(pod) || !alive(pod):
		case s.broken[strings.TrimPrefix(revisionOf(pod), "web-")]:
			crashing(pod)
		default:
			ready(time.Minute)(pod)
		}
	}
	for _, c := range p.Creates {
		s.pods = append(s.pods, pod(c.ordinal, strings.TrimPrefix(c.from.name, "web-"), pending))
	}
	for _, d := range p.Deletes {
		terminating(d.pod)
		s.barred[d.bars] = true
	}
	if p.promote {
		s.current = s.target
	}
}

// TestEveryRolloutEnds guards docs/differences.md: from wherever it begins, a template that
// works reaches every pod, and under OrderedReady no pod is made from one revision twice. There, pods that were ready
// recover some time; those of another template that never were do not, and neither do new ones of a template that is
// older than the current one. If a partition keeps places at a revision that is lost, it reaches all pods above.
func TestEveryRolloutEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := situations().Draw(t, "facts")
		f.set.Annotations = nil
		if f.set.Spec.UpdateStrategy.RollingUpdate == nil {
			rolling := web().Spec.UpdateStrategy
			f.set.Spec.UpdateStrategy = rolling
		}
		s := &simulation{set: f.set, pods: f.pods, target: "b", current: f.current.name[len("web-"):], broken: map[string]bool{"z": true, "": true}, barred: map[refused]bool{}}
		first, count := ordinals(f.set)
		s.lost = f.current.template == nil
		if s.lost {
			kept := rapid.Int64Range(1, 2).Draw(t, "kept")
			partition(int32(kept))(f.set)
			s.pods = slices.DeleteFunc(s.pods, func(pod *corev1.Pod) bool {
				ordinal, _ := ordinalOf(f.set, pod.Name)
				return ordinal >= first && ordinal < first+kept
			})
			first, count = first+kept, max(0, count-kept)
		} else {
			partition(0)(f.set)
		}
		ordered := f.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
		made := map[string]int{}
		for range 100 {
			p := mustPlanOf(t, s.facts())
			s.out.WriteString(s.line(p))
			if len(p.Creates)+len(p.Deletes) == 0 && p.promote != s.lost && len(s.pods) == int(count) && s.runs(first) {
				return
			}
			for _, c := range p.Creates {
				if made[podName(f.set, c.ordinal)+c.from.name]++; made[podName(f.set, c.ordinal)+c.from.name] > 1 && ordered {
					t.Fatalf("web-%d is made from %s a second time:\n%s", c.ordinal, c.from.name, s.out.String())
				}
			}
			s.tick(p)
			for _, pod := range s.pods {
				switch ordinal, _ := ordinalOf(f.set, pod.Name); {
				case !readiness.NeverReady(pod) && alive(pod) && (ordered || isReady(pod) || revisionOf(pod) == f.update.name):
					ready(time.Minute)(pod)
				case !inRange(f.set, ordinal) && alive(pod) && failing(pod):
					terminating(pod) // by a person: scaling down waits for it, and says so
				}
			}
		}
		t.Fatalf("no end:\n%s", s.out.String())
	})
}

func mustPlanOf(t *rapid.T, f facts) *plan {
	p, err := makePlan(f)
	if err != nil {
		t.Fatal(fmt.Errorf("plan: %w", err))
	}
	return p
}
