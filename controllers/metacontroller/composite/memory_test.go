package composite

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// TestForgetsChildren: the end of a child wakes whom it would have, and what is remembered of it goes.
func TestForgetsChildren(t *testing.T) {
	r := &reconciler{actor: actor{keeper: children.New(children.Config{Size: 10})}}
	pod := newWorld(t, strategy{}, 1).children[key("x-0")].DeepCopy()
	pod.SetUID("uid")
	woken := false
	h := &forgetting{
		handler.Funcs{DeleteFunc: func(context.Context, event.DeleteEvent, watching.Queue) { woken = true }},
		r.forgetChild(&host.Environment{Encoder: hook.NewEncoder(1)}),
	}
	h.Delete(t.Context(), event.DeleteEvent{Object: pod}, nil)
	if !woken {
		t.Error("nobody was woken")
	}
}

// TestMemoOfAll: what children were compared with is kept in the memo of all controllers, which is bounded, until they
// are gone.
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

// TestAStandstillIsAnEvent: a child that takes its time is no news; one that holds a rollout up is, once, and so is its
// end.
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
	p.run(8)
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
