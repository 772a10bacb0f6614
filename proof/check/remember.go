package check

import (
	"reflect"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file remembers what comparing contents gave. Histories of one simulation hold the same few templates many
// thousand times, and filling in defaults costs more than all rules together. What is remembered depends on nothing but
// content, so that all histories of a process may share it.

// halfOfMemory is how many answers are kept before the older half is dropped. One takes some kilobytes.
const halfOfMemory = 4096

// answers maps questions about content to their answers. It is safe for concurrent use, and bounded.
type answers struct {
	mu         sync.Mutex
	young, old map[string]string
}

var remembered answers

// of returns the answer to a question, asking if it is not remembered. A refusal is not remembered.
func (a *answers) of(question []byte, ask func() (string, error)) (string, error) {
	a.mu.Lock()
	answer, known := a.young[string(question)]
	if !known {
		answer, known = a.old[string(question)]
	}
	a.mu.Unlock()
	if known {
		return answer, nil
	}
	answer, err := ask()
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.young) >= halfOfMemory {
		a.old, a.young = a.young, nil
	}
	if a.young == nil {
		a.young = make(map[string]string, halfOfMemory)
	}
	a.young[string(question)] = answer
	return answer, nil
}

// eachRemembering returns kinds that ask about the same content once.
func eachRemembering(kinds []Kind) []Kind {
	out := make([]Kind, len(kinds))
	for i, k := range kinds {
		out[i] = k.remembering(&remembered)
	}
	return out
}

func (k Kind) remembering(a *answers) Kind {
	kind := []byte(k.Parents.String())
	ask := func(what byte, f func() (string, error), about ...client.Object) (string, error) {
		question := append(make([]byte, 0, 2048), what)
		question = append(question, kind...)
		for _, o := range about {
			var ok bool
			if question, ok = appendContent(question, o); !ok {
				return f()
			}
		}
		return a.of(question, f)
	}
	if snapshot := k.Snapshot; snapshot != nil {
		k.Snapshot = func(revision client.Object) (string, error) {
			return ask('s', func() (string, error) { return snapshot(revision) }, revision)
		}
	}
	if target := k.Target; target != nil {
		k.Target = func(parent client.Object) string {
			out, _ := ask('t', func() (string, error) { return target(parent), nil }, parent)
			return out
		}
	}
	if units := k.Units; units != nil {
		k.Units = func(s *State, parent client.Object) []Unit { return s.unitsBy(units, whole{k.Children, parent}) }
	}
	k.Strays, k.StraysNow = rememberStrays(ask, 'r', k.Strays), rememberStrays(ask, 'n', k.StraysNow)
	return k
}

func rememberStrays(
	ask func(byte, func() (string, error), ...client.Object) (string, error), what byte, strays func(a, b client.Object) string,
) func(a, b client.Object) string {
	if strays == nil {
		return nil
	}
	return func(a, b client.Object) string {
		out, _ := ask(what, func() (string, error) { return strays(a, b), nil }, a, b)
		return out
	}
}

// appendContent appends what the content of an object is: its name, labels and annotations, and its data or spec. ok is
// false for types whose content has no fast encoding.
func appendContent(to []byte, o client.Object) (out []byte, ok bool) {
	meta := metav1.ObjectMeta{Name: o.GetName(), Labels: o.GetLabels(), Annotations: o.GetAnnotations()}
	var said content.Encoder
	if r, isRevision := o.(*appsv1.ControllerRevision); isRevision {
		said = &r.Data
		meta = metav1.ObjectMeta{Name: o.GetName()}
	} else if v := reflect.ValueOf(o).Elem(); v.Kind() == reflect.Struct {
		spec := v.FieldByName("Spec")
		if !spec.IsValid() {
			return nil, false
		}
		said, ok = reflect.TypeAssert[content.Encoder](spec.Addr())
		if !ok {
			return nil, false
		}
	} else {
		return nil, false
	}
	for _, part := range []content.Encoder{&meta, said} {
		encoded, err := part.Marshal()
		if err != nil {
			return nil, false
		}
		// The length goes first, so that no two different sequences of parts are the same bytes.
		n := len(encoded)
		to = append(to, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		to = append(to, encoded...)
	}
	return to, true
}
