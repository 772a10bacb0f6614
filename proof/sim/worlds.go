package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file lists the worlds that are run: every controller lives in one of its own, and some share one.

// World is one sort of world, of which every seed makes another.
type World struct {
	Name  string
	Kinds []Kind
	// Share is how many of a hundred seeds are for it.
	Share uint64
}

// Worlds are all there are. Their shares are a hundred.
func Worlds() []World {
	return []World{
		{Name: "daemonset", Kinds: []Kind{DaemonSet()}, Share: 11},
		{Name: "failing", Kinds: []Kind{Failing(DaemonSet(), brokenWorkload), Failing(StatefulSet(), brokenWorkload)}, Share: 8},
		{Name: "failing-composite", Kinds: []Kind{Failing(CatSet(), brokenParent)}, Share: 3},
		{Name: "statefulset", Kinds: []Kind{StatefulSet()}, Share: 10},
		{Name: "replicaset", Kinds: []Kind{ReplicaSet(), ReplicationController()}, Share: 13},
		{Name: "authored", Kinds: []Kind{Authored()}, Share: 3},
		{Name: "released", Kinds: []Kind{Released()}, Share: 4},
		{Name: "surging", Kinds: []Kind{Surging()}, Share: 3},
		{Name: "cronjob", Kinds: []Kind{CronJob()}, Share: 6},
		{Name: "composite", Kinds: []Kind{CatSet()}, Share: 9},
		{Name: "in-place", Kinds: []Kind{InPlace()}, Share: 5},
		{Name: "cluster", Kinds: []Kind{ClusterCatSet()}, Share: 5},
		{Name: "decorator", Kinds: []Kind{Attached()}, Share: 5},
		{Name: "divided", Kinds: []Kind{Divided()}, Share: 5},
		{Name: "recorded", Kinds: []Kind{Recorded(), DaemonSet()}, Share: 5},
		{Name: "mixed", Kinds: []Kind{Shared(DaemonSet()), Shared(ReplicaSet()), Shared(StatefulSet())}, Share: 6},
	}
}

// Shared is a kind whose parents all select the same children, against all advice: several want one orphan, and none
// may fight over it.
func Shared(k Kind) Kind {
	apart := k.New
	k.New = func(chance *rand.Rand, k Kind, name string) scenario.Step {
		step := apart(chance, k, name)
		step.Options = merged(step.Options, k.selecting("shared"))
		return step
	}
	return k
}

// KindsOf returns the kinds of the controllers with these names, those that nobody knows left out.
func KindsOf(controllers ...string) []Kind {
	var out []Kind
	for _, name := range controllers {
		for _, world := range Worlds() {
			if i := slices.IndexFunc(world.Kinds, func(k Kind) bool { return k.Check.Controller == name }); i >= 0 {
				out = append(out, world.Kinds[i])
				break
			}
		}
	}
	return out
}
