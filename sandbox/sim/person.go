package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/sandbox/sim/model"
)

// This file is the random user: what a person, a pipeline or an accident does to parents, children and revisions.

// parentNames are the parents there can be of each kind. Few names, so that they are used again.
var parentNames = [2]string{"a", "b"}

// move is something that a user does, and how often.
type move struct {
	weight int
	do     func(k Kind, parent client.Object) bool
	// to says to which kinds; nil means to all.
	to func(Kind) bool
}

// userMoves are what a user can do to a parent of a kind that exists. A move returns false if there was nothing to do it
// to.
func (w *world) userMoves(k Kind) []move {
	return slices.DeleteFunc([]move{
		{16, w.edit, nil},
		{5, w.undo, Kind.hasRevisions},
		{2, w.deleteParent, nil},
		{2, w.recreate, nil},
		{2, w.deleteChild, nil},
		{2, w.deleteRevision, Kind.hasRevisions},
		{2, w.relabelChild, nil},
		{1, w.disownChild, nil},
		{1, w.disownRevision, Kind.hasRevisions},
		{2, w.plantChild, nil},
		{2, w.copyRevision, Kind.hasRevisions},
		{2, w.tendChild, func(k Kind) bool { return k.Tend != nil }},
	}, func(m move) bool { return m.to != nil && !m.to(k) })
}

// user does one thing.
func (w *world) user() {
	k := w.kinds[w.chance.IntN(len(w.kinds))]
	parents := w.all(k.Check.Parents)
	if len(parents) == 0 || len(parents) < w.options.Parents && w.chance.IntN(6) == 0 {
		w.create(k)
		return
	}
	moves := w.userMoves(k)
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	for range 5 {
		parent := parents[w.chance.IntN(len(parents))]
		n := w.chance.IntN(total)
		for _, m := range moves {
			if n -= m.weight; n < 0 {
				if m.do(k, parent) {
					return
				}
				break
			}
		}
	}
}

func (w *world) create(k Kind) {
	for _, name := range parentNames[:w.options.Parents] {
		if w.get(k.Check.Parents, w.home(k.Check.Parents), name) == nil {
			w.createNamed(k, name)
			return
		}
	}
}

func (w *world) createNamed(k Kind, name string) {
	parent := k.New(w.chance, w.home(k.Check.Parents), name)
	w.person("create", model.Request{Verb: model.VerbCreate, Resource: k.Check.Parents, Object: parent})
}

// home is the namespace of what users touch of a resource: there is but one.
func (w *world) home(resource schema.GroupVersionResource) string {
	if w.served[resource].Namespaced {
		return namespace
	}
	return ""
}

// person does a request of the user, and takes down what it was for.
func (w *world) person(what string, r model.Request) bool {
	r.User = userPerson
	r.Namespace = w.home(r.Resource)
	w.stats.count("user: " + what)
	w.tracef("user: %s", what)
	return w.ask(r).Err == nil
}

func (w *world) update(what string, resource schema.GroupVersionResource, o client.Object) bool {
	return w.person(what, model.Request{Verb: model.VerbUpdate, Resource: resource, Name: o.GetName(), Object: o})
}

func (w *world) edit(k Kind, parent client.Object) bool {
	total := 0
	for _, e := range k.Edits {
		total += e.Weight
	}
	n := w.chance.IntN(total)
	for _, e := range k.Edits {
		if n -= e.Weight; n < 0 {
			out := deepCopy(parent)
			e.Do(w.chance, out)
			return w.update("edit "+e.Name, k.Check.Parents, out)
		}
	}
	return false
}

// owned are the objects of a resource that parent controls.
func (w *world) owned(resource schema.GroupVersionResource, parent client.Object) []client.Object {
	var out []client.Object
	for _, o := range w.all(resource) {
		if ownerOf(o) == parent.GetUID() {
			out = append(out, o)
		}
	}
	return out
}

// oneOf returns one of the objects of a resource that parent controls, nil if there is none.
func (w *world) oneOf(resource schema.GroupVersionResource, parent client.Object) client.Object {
	all := w.owned(resource, parent)
	if len(all) == 0 {
		return nil
	}
	return all[w.chance.IntN(len(all))]
}

// undo puts an older revision back, as kubectl rollout undo does.
func (w *world) undo(k Kind, parent client.Object) bool {
	revision := w.oneOf(k.Check.Revisions, parent)
	if revision == nil {
		return false
	}
	out := deepCopy(parent)
	if err := k.Restore(out, revision); err != nil {
		return false
	}
	return w.update("undo", k.Check.Parents, out)
}

var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
}

func (w *world) deleteParent(k Kind, parent client.Object) bool {
	policy := policies[w.chance.IntN(len(policies))]
	return w.person("delete "+string(policy), model.Request{
		Verb: model.VerbDelete, Resource: k.Check.Parents, Name: parent.GetName(), Propagation: &policy,
	})
}

// recreate deletes a parent and makes one of the same name as soon as it is gone. The garbage collector may be anywhere.
func (w *world) recreate(k Kind, parent client.Object) bool {
	if !w.deleteParent(k, parent) {
		return false
	}
	for range 4 {
		if w.get(k.Check.Parents, parent.GetNamespace(), parent.GetName()) == nil {
			w.createNamed(k, parent.GetName())
			break
		}
		w.collectGarbage()
	}
	return true
}

func (w *world) deleteChild(k Kind, parent client.Object) bool {
	return w.deleteOne("delete a child", k.Check.Children, w.oneOf(k.Check.Children, parent))
}

func (w *world) deleteRevision(k Kind, parent client.Object) bool {
	return w.deleteOne("delete a revision", k.Check.Revisions, w.oneOf(k.Check.Revisions, parent))
}

func (w *world) deleteOne(what string, resource schema.GroupVersionResource, o client.Object) bool {
	if o == nil {
		return false
	}
	return w.person(what, model.Request{Verb: model.VerbDelete, Resource: resource, Name: o.GetName()})
}

// relabelChild makes a child match no longer, or makes one match again.
func (w *world) relabelChild(k Kind, _ client.Object) bool {
	children := w.all(k.Check.Children)
	if len(children) == 0 {
		return false
	}
	out := deepCopy(children[w.chance.IntN(len(children))])
	labels, key := maps.Clone(out.GetLabels()), "app"
	if _, generated := labels[metacontroller.UIDLabel]; generated {
		key = metacontroller.UIDLabel
	}
	if value, away := strings.CutPrefix(labels[key], "not-"); away {
		labels[key] = value
	} else {
		labels[key] = "not-" + labels[key]
	}
	out.SetLabels(labels)
	return w.update("relabel a child", k.Check.Children, out)
}

func (w *world) disownChild(k Kind, parent client.Object) bool {
	return w.disown("disown a child", k.Check.Children, w.oneOf(k.Check.Children, parent))
}

func (w *world) disownRevision(k Kind, parent client.Object) bool {
	return w.disown("disown a revision", k.Check.Revisions, w.oneOf(k.Check.Revisions, parent))
}

func (w *world) disown(what string, resource schema.GroupVersionResource, o client.Object) bool {
	if o == nil {
		return false
	}
	out := deepCopy(o)
	out.SetOwnerReferences(nil)
	return w.update(what, resource, out)
}

// plantChild makes a child by hand.
func (w *world) plantChild(k Kind, parent client.Object) bool {
	child := k.Child(w.chance, parent, w.shelves[nodes].keys) // the keys of what has no namespace are names
	return w.person("plant a child", model.Request{Verb: model.VerbCreate, Resource: k.Check.Children, Object: child})
}

// tendChild tells the controller something about a child.
func (w *world) tendChild(k Kind, parent client.Object) bool {
	child := w.oneOf(k.Check.Children, parent)
	if child == nil {
		return false
	}
	out := deepCopy(child)
	k.Tend(w.chance, out)
	return w.update("tend a child", k.Check.Children, out)
}

// copyRevision makes a copy of a revision under another name: owned by the same parent or by nobody, with the same number
// or with one that is far ahead.
func (w *world) copyRevision(k Kind, parent client.Object) bool {
	revision := w.oneOf(k.Check.Revisions, parent)
	if revision != nil && k.Copy != nil {
		what, out := k.Copy(w.chance, revision)
		return w.person(what, model.Request{Verb: model.VerbCreate, Resource: k.Check.Revisions, Object: out})
	}
	o, ok := revision.(*appsv1.ControllerRevision)
	if !ok {
		return false
	}
	out := &appsv1.ControllerRevision{Data: *o.Data.DeepCopy(), Revision: o.Revision}
	out.Namespace, out.Name = o.Namespace, fmt.Sprintf("%s-copy-%d", parent.GetName(), w.chance.IntN(3))
	out.Labels = maps.Clone(o.Labels)
	what := "copy a revision"
	if hash := hashKey(o); hash != "" {
		switch w.chance.IntN(3) {
		case 0: // as after a collision
			out.Labels[hash] = strings.TrimPrefix(out.Name, parent.GetName()+"-")
			what += " under another hash"
		case 1: // as somebody writes one by hand
			delete(out.Labels, hash)
			what += " without its hash"
		default:
		}
	}
	if w.chance.IntN(2) == 0 {
		out.OwnerReferences = o.OwnerReferences
		what += " with its owner"
	}
	if w.chance.IntN(3) == 0 {
		out.Revision += 10
	}
	return w.person(what, model.Request{Verb: model.VerbCreate, Resource: k.Check.Revisions, Object: out})
}

// hashKey is the label under which a revision has its hash: the end of its name.
func hashKey(revision client.Object) string {
	for key, value := range revision.GetLabels() {
		if strings.HasSuffix(revision.GetName(), "-"+value) {
			return key
		}
	}
	return ""
}

func deepCopy(o client.Object) client.Object {
	return o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // the copy of a client.Object
}
