package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is what users do to every parent that has a pod template.

// templateLabels are the labels of the pods that a workload asks for.
const templateLabels = "spec.template.metadata.labels"

// created is a workload as a user creates it, which selects its pods by their label app.
func created(k Kind, name, app string, set fields) scenario.Step {
	return scenario.Step{
		Verb: "create", Args: []string{scenario.Word(k.Check.Parents), name}, Options: merged(set, k.selecting(app)),
	}
}

// selecting lets a workload select what has this value of the label app, and gives that to its pods.
func (k Kind) selecting(app string) fields {
	return fields{k.Check.Selector + ".app": app, templateLabels + ".app": app}
}

func merged(set, more fields) fields {
	out := maps.Clone(set)
	maps.Copy(out, more)
	return out
}

// anyImage is one of a few, so that people come back to what they had.
func anyImage(chance *rand.Rand) string {
	if chance.IntN(8) == 0 {
		return brokenImage
	}
	return fmt.Sprintf("app:v%d", chance.IntN(5))
}

// edit is an edit that does not depend on what the parent is like.
func edit(name string, weight int, set func(*rand.Rand) fields) Edit {
	return Edit{Name: name, Weight: weight, Fields: func(chance *rand.Rand, _ client.Object) fields { return set(chance) }}
}

func editImage(weight int) Edit {
	return edit("the image", weight, func(chance *rand.Rand) fields { return fields{"image": anyImage(chance)} })
}

func editVariable(weight int) Edit {
	return edit("a variable", weight, func(chance *rand.Rand) fields {
		return fields{"spec.template.spec.containers[0].env": value([]corev1.EnvVar{{Name: "MODE", Value: strconv.Itoa(chance.IntN(3))}})}
	})
}

func editLabel(weight int) Edit {
	return edit("a label of the template", weight, func(chance *rand.Rand) fields {
		return fields{templateLabels + ".tier": anyText(chance, 2)}
	})
}

func editScale(weight, below int) Edit {
	return edit(scaleEdit, weight, func(chance *rand.Rand) fields { return fields{"replicas": anyNumber(chance, below)} })
}

func editLimit(weight int) Edit {
	return edit("the history limit", weight, func(chance *rand.Rand) fields { return fields{"historyLimit": anyNumber(chance, 4)} })
}

func editMinReady(weight int) Edit {
	return edit(minReady, weight, func(chance *rand.Rand) fields {
		return fields{minReady: strconv.Itoa([]int{0, 0, 5, 30}[chance.IntN(4)])}
	})
}

func editAnnotation() Edit {
	return edit("an annotation", 1, func(chance *rand.Rand) fields {
		return fields{"metadata.annotations.note": anyText(chance, 100)}
	})
}

func anyNumber(chance *rand.Rand, below int) string { return strconv.Itoa(chance.IntN(below)) }

// anyText is a number as a string: the value of a label.
func anyText(chance *rand.Rand, below int) string { return value(strconv.Itoa(chance.IntN(below))) }

// value writes the value of a field.
func value(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sim: a value of an edit: %v", err)) // we made it
	}
	return string(out)
}

// undone goes back to a revision of a workload.
func undone(k Kind, parent, revision client.Object) (scenario.Step, bool) {
	return scenario.Step{
		Verb: "undo", Args: []string{scenario.Word(k.Check.Parents), parent.GetName()}, Options: fields{"to": revision.GetName()},
	}, true
}

// planted is a pod with the labels of a parent's pods, sometimes with its template, sometimes with another one.
func planted(chance *rand.Rand, k Kind, parent client.Object, name string) scenario.Step {
	step := plant(k, pods, name, parent, fields{})
	if chance.IntN(3) == 0 {
		step.Options["image"] = anyImage(chance)
	}
	return step
}

func plant(k Kind, resource schema.GroupVersionResource, name string, parent client.Object, set fields) scenario.Step {
	args := []string{scenario.Word(resource), name, "of", scenario.Word(k.Check.Parents), parent.GetName()}
	return scenario.Step{Verb: "plant", Args: args, Options: set}
}

// plantedNamed is how pods that somebody planted are called.
func plantedNamed(chance *rand.Rand, parent client.Object) string {
	return fmt.Sprintf("%s-planted-%d", parent.GetName(), chance.IntN(3))
}

// copied is a copy of a revision of a workload.
func copied(chance *rand.Rand, k Kind, parent, revision client.Object) (what string, step scenario.Step) {
	name := fmt.Sprintf("%s-copy-%d", parent.GetName(), chance.IntN(3))
	what, number, set := "copy a revision", k.Check.Number(revision), fields{"revision": revision.GetName(), "owner": "none"}
	if key, hash := hashOf(revision); key != "" {
		set["hash"] = cmp.Or(hash, "-")
		if strings.HasSuffix(revision.GetName(), "-"+hash) {
			switch chance.IntN(3) {
			case 0: // as after a collision
				set["hash"] = strings.TrimPrefix(name, parent.GetName()+"-")
				what += " under another hash"
			case 1: // as somebody writes one by hand
				set["hash"] = "-"
				what += " without its hash"
			default:
			}
		}
	}
	if chance.IntN(2) == 0 {
		delete(set, "owner")
		what += " with its owner"
	}
	if chance.IntN(3) == 0 {
		number += 10
	}
	set["number"] = strconv.FormatInt(number, 10)
	return what, plant(k, k.Check.Revisions, name, parent, set)
}

// hashOf is the label under which a revision says its hash, and the hash.
func hashOf(revision client.Object) (key, hash string) {
	for _, key := range scenario.HashLabels {
		if hash, ok := revision.GetLabels()[key]; ok {
			return key, hash
		}
	}
	return "", ""
}
