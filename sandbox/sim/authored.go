package sim

import (
	"math/rand/v2"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
	"github.com/cairn-dev/cairn/sandbox/internal/authored"
	"github.com/cairn-dev/cairn/sandbox/scenario"
)

// This file is what users do to the parents of a controller that somebody made with package builder.

// Authored is StatefulSets under such a controller.
func Authored() Kind {
	return Kind{
		Check:     parents.Authored(),
		Add:       authored.Setup,
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
