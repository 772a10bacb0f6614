package composite

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/rollout"
)

func TestOneAtATimeInTheOrderOfTheHook(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 4)
	w.are("aaaa")
	w.edit("b")
	w.pass()
	if got := w.String(); got != "x-0:a- x-1:a+ x-2:a+ x-3:a+" {
		t.Error(got)
	}
	status, reason, message := w.last.condition("b")
	if status != "False" || reason != "RolloutProgressing" || message != "updating Pod x-0" {
		t.Error(status, reason, message)
	}
	w.settle()
	w.are("bbbb")
	if w.low != 3 {
		t.Errorf("only %d served at a time", w.low)
	}
	if status, reason, message := w.last.condition("b"); status != "True" || reason != "OnLatestRevision" || message != "latest ControllerRevision: b" {
		t.Error(status, reason, message)
	}
}

func TestSeveralMoveInOnePassWhenTheBudgetAllows(t *testing.T) {
	for value, want := range map[string]int{"3": 3, "50%": 5, "1%": 1, "100%": 10} {
		budget := intstr.Parse(value)
		w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate, maxUnavailable: &budget}, 10)
		w.edit("b")
		if p := w.pass(); len(p.deletes) != want {
			t.Errorf("maxUnavailable %s deletes %d at once", value, len(p.deletes))
		}
		w.settle()
		w.are("bbbbbbbbbb")
		if w.low != 10-want {
			t.Errorf("with maxUnavailable %s only %d served at a time", value, w.low)
		}
	}
}

// A ConfigMap that is not checked shows nothing while no pod is wanted.
func TestUnproven(t *testing.T) {
	configMaps := schema.GroupKind{Kind: "ConfigMap"}
	for _, c := range []struct {
		pods    int
		checked bool
		want    bool
	}{{1, true, false}, {0, true, true}, {0, false, false}} {
		w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, c.pods)
		f := w.facts()
		if !c.checked {
			delete(f.strategies, podKind)
		}
		f.strategies[configMaps] = strategy{method: v1alpha1.ChildUpdateInPlace}
		config, answer := metacontroller.Child{GroupKind: configMaps, Name: "config"}, f.answers[f.newest]
		answer.order, answer.objects[config] = append(answer.order, config), &unstructured.Unstructured{Object: map[string]any{}}
		f.answers[f.newest] = answer
		if p, err := makePlan(f); err != nil || p.unproven != c.want || p.total != c.pods+1 {
			t.Errorf("%+v: unproven %t of %d, %v", c, p.unproven, p.total, err)
		}
	}
}

func TestAWrongBudgetIsAnError(t *testing.T) {
	budget := intstr.FromString("many")
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 1)
	w.strategy.maxUnavailable = &budget
	if _, err := makePlan(w.facts()); err == nil || !strings.Contains(err.Error(), "updateStrategy.maxUnavailable of Pod") {
		t.Error(err)
	}
}

// A third template in mid-rollout, and the way back: Metacontroller took two children down at once here.
func TestEditedAgainAndTakenBackInMidRollout(t *testing.T) {
	for _, last := range []string{"a", "c"} {
		for _, method := range []v1alpha1.ChildUpdateMethod{v1alpha1.ChildUpdateRollingRecreate, v1alpha1.ChildUpdateRollingInPlace} {
			w := newWorld(t, strategy{method: method}, 6)
			w.edit("b")
			for range 5 {
				w.pass()
				w.tick()
			}
			w.edit(last)
			w.settle()
			w.are(strings.Repeat(last, 6))
			if w.low < 5 {
				t.Errorf("%s, then %s: only %d served at a time", method, last, w.low)
			}
		}
	}
}

func TestAChildLostInMidRolloutComesBackAtItsRevision(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 4)
	w.broken["b"] = true
	w.edit("b")
	w.settle()
	delete(w.children, key("x-2"))
	w.settle()
	if got := w.String(); got != "x-0:b x-1:a+ x-2:a+ x-3:a+" {
		t.Error(got)
	}
	status, reason, message := w.last.condition("b")
	if status != "False" || reason != "RolloutWaiting" || !strings.Contains(message, `child Pod x-0 failed status check: required condition type missing: "Ready"`) {
		t.Error(status, reason, message)
	}
	// The way back repairs it at no cost.
	w.edit("a")
	w.settle()
	w.are("aaaa")
}

func TestScaleDownInMidRollout(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 6)
	w.edit("b")
	for range 4 {
		w.pass()
		w.tick()
	}
	w.scale(1)
	w.settle()
	w.are("b")
	if len(w.children) != 1 || len(w.belongsTo) != 1 {
		t.Errorf("children %s, belongs to %v", w, w.belongsTo)
	}
	w.scale(3)
	w.settle()
	w.are("bbb")
}

func TestPartitionAndPauseKeepTheLastOnes(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate, partition: 2}, 4)
	w.edit("b")
	w.settle()
	w.are("bbaa")
	if p := w.pass(); p.keeping != 2 || p.done != (rollout.Progress{Gone: 2, Made: 2, Ready: 2, Available: 2}) {
		t.Errorf("%d kept, %+v", p.keeping, p.done)
	}
	if _, _, message := w.last.condition("b"); message != "2 of 4 children updated, 4 available; 2 are held by the strategy" {
		t.Error(message)
	}
	delete(w.children, key("x-3"))
	if p := w.pass(); p.keeping != 2 || p.done.Gone != 3 {
		t.Errorf("one is gone, and its place is held: %d kept, %+v", p.keeping, p.done)
	}
	w.settle()
	w.are("bbaa")
	w.strategy.partition = 0
	w.strategy.paused = true
	w.settle()
	w.are("bbaa")
	w.strategy.paused = false
	w.settle()
	w.are("bbbb")
}

// A change of what no revision covers, and somebody's edits, are no reason to replace everything at once.
func TestDriftKeepsTheBudget(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate, partition: 1}, 5)
	w.edit("b")
	w.settle()
	w.are("bbbba")
	w.fixed = "other"
	w.settle()
	w.are("bbbba")
	if w.low < 4 {
		t.Errorf("only %d served at a time", w.low)
	}
	for name, child := range w.children {
		if child.Object["spec"].(map[string]any)["fixed"] != "other" {
			t.Errorf("%s is as it was", name)
		}
	}
}

// A child that is already what the newest revision asks for moves there without being touched.
func TestAChildThatMatchesMovesAtOnce(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 3)
	w.newest, w.images["b"] = "b", "a"
	p := w.pass()
	if len(p.deletes)+len(p.updates)+len(p.creates) != 0 || p.belongsTo[key("x-2")] != "b" || !p.complete() {
		t.Errorf("%+v", p)
	}
}

func TestMinReadySeconds(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate, ready: readiness.Rule{MinReady: 10 * time.Second}}, 2)
	w.now = w.now.Add(time.Minute)
	w.edit("b")
	began := w.now
	for w.last.belongsTo[key("x-1")] != "b" {
		w.pass()
		w.tick()
		if w.now.Sub(began) > time.Minute {
			t.Fatal("it waits for ever")
		}
	}
	if waited := w.now.Sub(began); waited < 11*time.Second {
		t.Errorf("the second one went after %s", waited)
	}
	if w.last.again != 0 && w.last.again > 10*time.Second {
		t.Errorf("again in %s", w.last.again)
	}
}

// A child that is changed in place starts its minReadySeconds anew, although its conditions do not turn.
func TestMinReadySecondsInPlace(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingInPlace, ready: readiness.Rule{MinReady: 10 * time.Second}}, 2)
	w.now = w.now.Add(time.Minute)
	w.edit("b")
	changed := map[string]time.Time{}
	for began := w.now; len(changed) < 2 || !w.last.complete(); w.tick() {
		for _, u := range w.pass().updates {
			changed[u.key.Name] = w.now
			w.children[u.key].Object["status"] = u.observed.Object["status"] // nothing turns
		}
		if w.now.Sub(began) > time.Minute {
			t.Fatal("it waits for ever")
		}
	}
	if apart := changed["x-1"].Sub(changed["x-0"]); apart != 10*time.Second {
		t.Errorf("the second one was changed %s after the first", apart)
	}
	if done := w.now.Sub(changed["x-1"]); done < 10*time.Second || len(w.changed) != 0 {
		t.Errorf("it is over after %s more, and %d are remembered", done, len(w.changed))
	}
}

// TestHasNotObservedLatestSpec: whoever runs a child that was changed in place has to look at it first. Kinds that do
// not say are believed, and of those that are replaced it is not asked.
func TestHasNotObservedLatestSpec(t *testing.T) {
	for _, c := range []struct {
		method              v1alpha1.ChildUpdateMethod
		observed            any
		generation, serving int64
	}{
		{v1alpha1.ChildUpdateRollingInPlace, int64(2), 3, 0},
		{v1alpha1.ChildUpdateRollingInPlace, int64(3), 3, 1},
		{v1alpha1.ChildUpdateRollingInPlace, nil, 3, 1},
		{v1alpha1.ChildUpdateRollingInPlace, int64(0), 3, 1},
		{v1alpha1.ChildUpdateRollingRecreate, int64(2), 3, 1},
	} {
		w := newWorld(t, strategyOf(&v1alpha1.ChildUpdateStrategy{Method: c.method}), 1)
		child := w.children[key("x-0")]
		child.SetGeneration(c.generation)
		if c.observed != nil {
			child.Object["status"].(map[string]any)["observedGeneration"] = c.observed
		}
		p := w.pass()
		if int64(p.serving) != c.serving || c.serving == 0 && (len(p.waits) != 1 ||
			p.waits[0].Reason != "child Pod x-0 with RollingInPlace update strategy hasn't observed latest spec") {
			t.Errorf("%+v: %d serve, waits %+v", c, p.serving, p.waits)
		}
	}
}

// The checker has found this: what came back at its old revision was moved to the broken one before it was ready.
func TestALostChildIsNoReasonToSpreadABrokenRevision(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 3)
	w.broken["b"] = true
	w.edit("b")
	for range 4 {
		w.pass()
		w.tick()
	}
	delete(w.children, key("x-2"))
	w.pass()
	w.pass() // it is there, and not ready yet
	if got := image(w.children[key("x-2")]); got != "a" || w.children[key("x-2")].GetDeletionTimestamp() != nil {
		t.Errorf("x-2 is %s: %s", got, w)
	}
	w.tick()
	w.edit("c")
	w.settle()
	w.are("ccc")
}

func TestARolloutInWhichNothingIsLostAsksAboutTheNewestRevisionOnly(t *testing.T) {
	w := newWorld(t, strategy{method: v1alpha1.ChildUpdateRollingRecreate}, 3)
	w.edit("b")
	for range 3 {
		w.pass()
		w.tick()
	}
	ask := func() string {
		f := w.facts()
		delete(f.answers, "a")
		p, err := makePlan(f)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(p.asks, " ")
	}
	if got := ask(); got != "" {
		t.Errorf("it asks about %s", got)
	}
	delete(w.children, key("x-2"))
	if got := ask(); got != "a" {
		t.Errorf("a child of a is lost, and it asks about %q", got)
	}
}

func TestWhatIsNotRolledOutIsDoneAtOnce(t *testing.T) {
	for method, want := range map[v1alpha1.ChildUpdateMethod]string{
		v1alpha1.ChildUpdateRecreate: "x-0:a- x-1:a- x-2:a-",
		v1alpha1.ChildUpdateInPlace:  "x-0:b x-1:b x-2:b",
		v1alpha1.ChildUpdateOnDelete: "x-0:a+ x-1:a+ x-2:a+",
	} {
		w := newWorld(t, strategy{method: method}, 3)
		w.edit("b")
		w.pass()
		if got := w.String(); got != want {
			t.Errorf("%s: %s", method, got)
		}
		if len(w.belongsTo) != 0 {
			t.Errorf("%s: belongs to %v", method, w.belongsTo)
		}
		if method == v1alpha1.ChildUpdateOnDelete {
			delete(w.children, key("x-1"))
			w.settle()
			w.are("aba")
			if status, reason, _ := w.last.condition("b"); status != "False" || reason != "RolloutWaiting" {
				t.Error(status, reason)
			}
		}
	}
}

// Whatever happens to a parent, no more than one child is taken down at a time, and the end is reached.
func TestPropertyBudgetAndEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		method := []v1alpha1.ChildUpdateMethod{v1alpha1.ChildUpdateRollingRecreate, v1alpha1.ChildUpdateRollingInPlace}[chance.IntN(2)]
		w := newWorld(t, strategy{method: method}, 1+chance.IntN(6))
		for range chance.IntN(12) {
			switch chance.IntN(5) {
			case 0:
				w.edit(string(rune('a' + chance.IntN(4))))
			case 1:
				w.scale(1 + chance.IntN(6))
			case 2:
				w.fixed = string(rune('p' + chance.IntN(3)))
			case 3:
				delete(w.children, key(w.order[chance.IntN(len(w.order))]))
			default:
			}
			for range chance.IntN(4) {
				before := w.serving()
				p := w.pass()
				if taken := before - w.serving(); taken > 1 {
					rt.Fatalf("%d were taken down at once: %+v", taken, p)
				}
				w.tick()
			}
		}
		w.settle()
		w.are(strings.Repeat(w.newest, len(w.order)))
		if !w.last.complete() {
			rt.Fatalf("%s: %+v", w, w.last)
		}
	})
}
