package composite

import (
	"context"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/queue"
)

// TestForgetsChildren: the end of a child wakes whom it would have, and what is remembered of it goes.
func TestForgetsChildren(t *testing.T) {
	r := &reconciler{actor: actor{keeper: children.New(children.Config{Size: 10})}}
	pod := newWorld(t, strategy{}, 1).children[key("x-0")].DeepCopy()
	pod.SetUID("uid")
	woken := false
	h := &forgetting{
		handler.Funcs{DeleteFunc: func(context.Context, event.DeleteEvent, queue.Queue) { woken = true }},
		r.forgetChild(&host.Environment{Encoder: hook.NewEncoder(1)}),
	}
	h.Delete(t.Context(), event.DeleteEvent{Object: pod}, nil)
	if !woken {
		t.Error("nobody was woken")
	}
}

// TestMemoOfAll: what children were compared with is kept in the memo of all controllers, which is bounded, until they are gone.
func TestMemoOfAll(t *testing.T) {
	p := newPasses(t, catSpec)
	all := apply.NewMemo(1 << 20)
	env := p.environment()
	env.Compared = all
	p.startIn(env, p.r.settings)
	p.settle()
	if all.Size() == 0 {
		t.Error("nothing was kept")
	}
	for _, pod := range p.pods() {
		p.r.actor.keeper.Forget(pod.GetUID())
	}
	if kept := all.Size(); kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// TestForgetsParents: nothing that was decoded of its revisions stays when a parent goes.
func TestForgetsParents(t *testing.T) {
	p := newPasses(t, catSpec)
	decoded := history.NewCache(1 << 20)
	log := history.New(p.r.format, history.Options{Client: p.r.Client, Live: p.r.Live, Lists: p.r.Cache, Indexed: true, Cache: decoded})
	p.r.gatherer.log, p.r.confirmer.log, p.r.recorder.log = log, log, log
	p.r.OnForget(log.Forget)
	p.settle()
	if decoded.Size() == 0 {
		t.Error("no revision was kept")
	}
	p.r.Forget(p.tom().GetUID())
	if kept := decoded.Size(); kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// TestTidies: older revisions are written when a rollout is over or has stopped, and not with every child.
func TestTidies(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := &decider{clock: clocktesting.NewFakePassiveClock(now)}
	complete := plan{total: 1, updated: 1, serving: 1}
	waiting := plan{total: 1, updated: 1}
	acting := plan{total: 1, creates: []creation{{}}}
	for name, c := range map[string]struct {
		plan  plan
		quiet time.Duration // since when, seen from now
		want  bool
		again time.Duration
	}{
		"over":                   {complete, 0, true, 0},
		"acting":                 {acting, -time.Hour, false, 0},
		"a child gets ready":     {waiting, -10 * time.Second, false, 50 * time.Second},
		"a child does not":       {waiting, -time.Minute, true, 0},
		"after a restart":        {waiting, -time.Since(time.Time{}), true, 0},
		"looked at again before": {plan{total: 1, again: time.Second}, 0, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.plan
			if got := d.tidies(&memory{pause: pause{until: now.Add(c.quiet)}}, &p); got != c.want || p.again != c.again {
				t.Errorf("got %v, again after %s; want %v, %s", got, p.again, c.want, c.again)
			}
		})
	}
}

// TestAStandstillIsAnEvent: a child that takes its time is no news; one that holds a rollout up is, once, and so is its end.
func TestAStandstillIsAnEvent(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	p.edit("image", "broken")
	var after []time.Duration
	for range 3 {
		result, err := p.pass() // two seconds later
		must(t, err)
		after = append(after, result.RequeueAfter)
	}
	if got := p.events.Events("RolloutWaiting"); len(got) > 0 || after[2] <= 0 || after[2] > standstill {
		t.Errorf("events after some seconds: %v; it looks again after %s", got, after)
	}
	for range 8 {
		_, err := p.pass()
		must(t, err)
	}
	if got := p.events.Events("RolloutWaiting"); len(got) != 1 || !strings.Contains(got[0], "tom-2") {
		t.Errorf("events after a standstill: %v", got)
	}
	p.edit("image", "c")
	p.settle()
	if got := p.events.Events("OnLatestRevision"); len(got) != 1 {
		t.Errorf("events at the end: %v", got)
	}
	p.edit("image", "d")
	p.settle()
	if got := p.events.Events("RolloutWaiting", "OnLatestRevision"); len(got) != 2 {
		t.Errorf("a rollout that went on: %v", got)
	}
}
