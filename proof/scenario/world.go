package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// This file holds what happens around the objects: nodes, kubelets, managers, and time.

var worldVerbs = map[string]verb{
	"nodes":    {"nodes NUMBER", readNodes},
	"pod":      {"pod POD ready|unready|failed|succeeded|stuck|gone", readPod},
	"start":    {"start manager [NUMBER]", readStart},
	"kill":     {"kill manager [NUMBER]", readKill},
	"settle":   {"settle", readSettle},
	"remember": {"remember MOMENT", readRemember},
	"plant":    {plantPod + ", or " + plantRevision, readPlant},
}

const (
	plantPod      = "plant pod NAME of KIND PARENT [on NODE] [image=IMAGE] [revision=NUMBER|REVISION] [place=PLACE] [owner=none|KIND/NAME]"
	plantRevision = "plant revision NAME of KIND PARENT revision=NUMBER|REVISION number=NUMBER [hash=HASH] [owner=none|KIND/NAME]"
)

func readNodes(r *reader) action {
	n := r.count("how many")
	return func(ctx context.Context, p *Player) error { return p.stage.Nodes(ctx, n) }
}

func readPod(r *reader) action {
	r.args = append([]string{podWord}, r.args...)
	ref := r.reference()
	state := PodState(r.word("a state"))
	if states := []PodState{Ready, Unready, Failed, Succeeded, Stuck, Gone}; r.err == nil && !slices.Contains(states, state) {
		r.failf("%q is no state of a pod", state)
	}
	return func(ctx context.Context, p *Player) error {
		o, err := ref.one(ctx, p.stage)
		if err != nil {
			return err
		}
		return p.stage.Pod(ctx, o.GetName(), state)
	}
}

// manager reads the word manager and its number, which is 1 if there is none.
func (r *reader) manager() int {
	r.must("manager")
	if n, ok := r.number(); ok {
		if n < 1 || n > maxManagers {
			r.failf("there are managers 1 to %d", maxManagers)
		}
		return n
	}
	return 1
}

// maxManagers is how many managers there may be at once.
const maxManagers = 2

func readStart(r *reader) action {
	n := r.manager()
	return func(ctx context.Context, p *Player) error { return p.start(ctx, n) }
}

func readKill(r *reader) action {
	n := r.manager()
	return func(ctx context.Context, p *Player) error { return p.kill(ctx, n) }
}

func readSettle(*reader) action {
	return func(ctx context.Context, p *Player) error { return p.stage.Settle(ctx) }
}

func readRemember(r *reader) action {
	name := r.word("a name for the moment")
	return func(ctx context.Context, p *Player) error {
		m := moment{objects: map[types.UID]bool{}}
		for _, word := range []string{revisionWord, podWord} { // the last list says when it was
			k, _ := kindNamed(word)
			found, rv, err := list(ctx, p.stage, k)
			if err != nil {
				return err
			}
			m.resourceVersion = rv
			for _, o := range found {
				m.objects[o.GetUID()] = true
			}
		}
		p.moments[name] = m
		return nil
	}
}

// moment returns what was remembered.
func (p *Player) moment(name string) (moment, error) {
	m, ok := p.moments[name]
	if !ok {
		return m, fmt.Errorf("no step has said: remember %s", name)
	}
	return m, nil
}
