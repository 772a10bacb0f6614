package check

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file remembers, within one history, which surroundings take a child of a parent. Most writes change neither the
// one nor the other.

// placement is one question: is a child of the parent wanted there, and may one stay?
type placement struct{ parent, place client.Object }

type placed struct{ wanted, mayStay bool }

// placements are the answers so far. Objects of a history never change, so that an answer holds for good.
type placements struct {
	answers map[placement]placed
	// first is the oldest known version of a parent that asks for the same, with its content; of says for each version
	// which one that is.
	first map[types.UID]asked
	of    map[client.Object]client.Object
	// selectors are those of parents, compiled.
	selectors map[client.Object]labels.Selector
}

type asked struct {
	parent  client.Object
	content []byte
}

func newPlacements() *placements {
	return &placements{
		answers: map[placement]placed{}, first: map[types.UID]asked{}, of: map[client.Object]client.Object{},
		selectors: map[client.Object]labels.Selector{},
	}
}

// on answers a question, asking if it was not asked before.
func (p *placements) on(parent, place client.Object, ask func() (wanted, mayStay bool)) (wanted, mayStay bool) {
	question := placement{p.like(parent), place}
	answer, known := p.answers[question]
	if !known {
		answer.wanted, answer.mayStay = ask()
		p.answers[question] = answer
	}
	return answer.wanted, answer.mayStay
}

// selector compiles the selector of a parent. One that is wrong selects nothing.
func (p *placements) selector(parent client.Object, selector *metav1.LabelSelector) labels.Selector {
	parent = p.like(parent)
	compiled, known := p.selectors[parent]
	if !known {
		var err error
		if compiled, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			compiled = labels.Nothing()
		}
		p.selectors[parent] = compiled
	}
	return compiled
}

// like returns a version of the parent that asks for the same and for which questions were asked already: a status that
// is written makes no new questions.
func (p *placements) like(parent client.Object) client.Object {
	if known, ok := p.of[parent]; ok {
		return known
	}
	content, ok := appendContent(nil, parent)
	last := p.first[parent.GetUID()]
	if !ok || last.parent == nil || !bytes.Equal(last.content, content) {
		last = asked{parent, content}
		p.first[parent.GetUID()] = last
	}
	p.of[parent] = last.parent
	return last.parent
}
