package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/internal/authored"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is what users do to the parents of a controller that somebody made with package builder.

// Authored is StatefulSets under such a controller.
func Authored() Kind {
	return authoredKind(parents.Authored(), unsteady(authored.Controller))
}

// unsteady adds a controller with a function that fails while it is to.
func unsteady(controller func() builder.Controller[*appsv1.StatefulSet]) func(ctx context.Context, mgr ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		w, c := mgr.(*manager).process.world, controller()
		answer := c.Children
		c.Children = func(set *appsv1.StatefulSet) ([]client.Object, error) {
			switch w.troubled().author {
			case authorPanics:
				panic(authorPanics)
			case authorFails:
				return nil, errors.New(authorFails)
			default:
				return answer(set)
			}
		}
		return c.Setup(ctx, mgr)
	}
}

// The ways in which an author's function goes wrong.
const (
	authorFails  = "the function of the author fails"
	authorPanics = "the function of the author panics"
)

// Released is StatefulSets under one that is released anew: in mid-rollout as a rule, and back again.
func Released() Kind {
	k := Authored()
	k.Add, k.Releases = nil, authored.Releases()
	k.Copy, k.Check.Apart = copiedWhole, true
	return k
}

// copiedWhole is a copy of a revision with all that it says of itself, as kubectl makes one.
func copiedWhole(chance *rand.Rand, k Kind, parent, revision client.Object) (what string, step scenario.Step) {
	name := fmt.Sprintf("%s-copy-%d", parent.GetName(), chance.IntN(3))
	what, out := copyOf(chance, k, revision, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), name)
	return what, manifest(out)
}

// Surging is StatefulSets under one whose pods are named by revision.
func Surging() Kind {
	k := authoredKind(parents.Surging(), unsteady(authored.Surging))
	plain := k.New
	k.New = func(chance *rand.Rand, k Kind, name string) scenario.Step {
		step := plain(chance, k, name)
		step.Options = merged(step.Options, anySurge(chance))
		return step
	}
	k.Edits = append(k.Edits, edit("the strategy", 5, anySurge))
	k.Child = func(chance *rand.Rand, k Kind, parent client.Object, nodes []string) scenario.Step {
		step := plantedMember(chance, k, parent, nodes)
		if chance.IntN(2) == 0 { // a copy of a child is at its place, until there is one too many
			step.Args[1] += "-copy"
			step.Options["place"] = fmt.Sprintf("%s-%d", parent.GetName(), chance.IntN(4))
		}
		return step
	}
	return k
}

// anySurge is what the controller reads of a strategy.
func anySurge(chance *rand.Rand) fields {
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(max(0, chance.IntN(6)-3)))}
	if n := chance.IntN(4); n > 1 {
		rolling.MaxUnavailable = new(intstr.FromInt(n - 1))
	}
	return fields{
		"spec.ordinals.start": anyNumber(chance, 3),
		"spec.updateStrategy": value(appsv1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: rolling,
		}),
	}
}

func authoredKind(rules check.Kind, add func(ctx context.Context, mgr ctrl.Manager) error) Kind {
	return Kind{
		Check:     rules,
		Add:       add,
		Scheduled: true,
		New: func(chance *rand.Rand, k Kind, name string) scenario.Step {
			set := fields{"image": anyImage(chance), "replicas": anyNumber(chance, 4)}
			if chance.IntN(2) == 0 {
				set["historyLimit"] = anyNumber(chance, 3)
			}
			return created(k, name, name+"-set", set)
		},
		Edits: []Edit{editImage(10), editScale(6, 5), editVariable(2), editLimit(2), editMinReady(1), editAnnotation()},
		Undo:  undone,
		Child: plantedMember,
		Copy:  copied,
	}
}
