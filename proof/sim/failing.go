package sim

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/rollback"
)

// This file is what users do to parents whose rollouts have a deadline, and mostly fail.

// What it takes to ask for pods that never start.
var (
	brokenWorkload = fields{"image": brokenImage}
	brokenParent   = fields{"spec.template.spec.containers": value([]any{map[string]any{"name": "main", "image": brokenImage}})}
)

// Failing is a kind whose parents have a deadline, and most of them are brought back. broken is an edit to what never
// starts.
func Failing(k Kind, broken fields) Kind {
	made, edits := k.New, slices.Clone(k.Edits)
	k.New = func(chance *rand.Rand, k Kind, name string) scenario.Step {
		return annotated(made(chance, k, name), map[string]string{
			rollback.ProgressDeadlineAnnotation: []string{"1s", "3s", "20s", "2m"}[chance.IntN(4)],
			rollback.OnDeadlineAnnotation:       []string{"undo", "undo", "undo-anyway", "nothing"}[chance.IntN(4)],
		})
	}
	k.Edits = slices.Concat(edits, []Edit{
		edit("to a broken image", 10, func(*rand.Rand) fields { return broken }),
		{
			Name: "what works to a broken image", Weight: 60, Fields: func(*rand.Rand, client.Object) fields { return broken },
			If: func(parent client.Object) bool { return content.Condition(parent, pass.Updated)["status"] == "True" },
		},
		edit("the deadline", 4, func(chance *rand.Rand) fields {
			return fields{annotation(rollback.ProgressDeadlineAnnotation): value([]string{"1s", "60s", "0", "soon"}[chance.IntN(4)])}
		}),
		edit("what is done on the deadline", 3, func(chance *rand.Rand) fields {
			return fields{annotation(rollback.OnDeadlineAnnotation): value([]string{"undo", "undo-anyway", "undo!"}[chance.IntN(3)])}
		}),
	})
	return k
}

// annotated is a step that creates a parent, with annotations.
func annotated(step scenario.Step, annotations map[string]string) scenario.Step {
	o := &unstructured.Unstructured{}
	if len(step.Args) == 1 && o.UnmarshalJSON([]byte(step.Args[0])) == nil {
		o.SetAnnotations(annotations)
		return manifest(o)
	}
	set := fields{}
	for key, text := range annotations {
		set[annotation(key)] = value(text)
	}
	step.Options = merged(step.Options, set)
	return step
}

func annotation(key string) string { return "metadata.annotations[" + key + "]" }
