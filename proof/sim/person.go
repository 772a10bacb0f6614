package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is the random user: what a person, a pipeline or an accident does to parents, children and revisions. It
// only chooses. What it chose is a step of package scenario, which plays it.

// parentNames are the parents there can be of each kind. Few names, so that they are used again.
var parentNames = [2]string{"a", "b"}

// move is something that a user does, and how often.
type move struct {
	weight int
	do     func(k Kind, parent client.Object) bool
	// to says to which kinds; nil means to all.
	to func(Kind) bool
}

// userMoves are what a user can do to a parent of a kind that exists. A move returns false if there was nothing to do
// it to.
func (w *world) userMoves(k Kind) []move {
	return slices.DeleteFunc([]move{
		{16, w.edit, nil},
		{5, w.undo, Kind.hasRevisions},
		{2, w.deleteParent, nil},
		{2, w.recreate, nil},
		{2, w.deleteChild, Kind.hasChildren},
		{2, w.deleteRevision, Kind.hasRevisions},
		{2, w.relabelChild, Kind.hasChildren},
		{1, w.disownChild, Kind.hasChildren},
		{1, w.disownRevision, Kind.hasRevisions},
		{2, w.plantChild, Kind.hasChildren},
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

func (w *world) createNamed(k Kind, name string) { w.person("create", k.New(w.chance, k, name)) }

// home is the namespace of what users touch of a resource: there is but one.
func (w *world) home(resource schema.GroupVersionResource) string {
	if w.served[resource].Namespaced {
		return namespace
	}
	return ""
}

// person plays a step of the user, and takes down what it was for. It returns false if the API server refused it.
func (w *world) person(what string, step scenario.Step) bool {
	w.stats.count("user: " + what)
	w.tracef("user: %s", step)
	err := w.player.Do(context.Background(), step)
	if err != nil {
		w.tracef("user is refused: %v", err)
	}
	return err == nil
}

// play plays a verb on one object.
func (w *world) play(what, verb string, resource schema.GroupVersionResource, name string, set fields, more ...string) bool {
	args := append([]string{scenario.Word(resource), name}, more...)
	return w.person(what, scenario.Step{Verb: verb, Args: args, Options: set})
}

func (w *world) edit(k Kind, parent client.Object) bool {
	total := 0
	edits := slices.DeleteFunc(slices.Clone(k.Edits), func(e Edit) bool { return !e.isFor(parent) })
	for _, e := range edits {
		total += e.Weight
	}
	n := w.chance.IntN(total)
	for _, e := range edits {
		if n -= e.Weight; n < 0 {
			return w.play("edit "+e.Name, "edit", k.Check.Parents, parent.GetName(), e.Fields(w.chance, parent))
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

// undo puts an older revision back.
func (w *world) undo(k Kind, parent client.Object) bool {
	revision := w.oneOf(k.Check.Revisions, parent)
	if revision == nil {
		return false
	}
	step, ok := k.Undo(k, parent, revision)
	return ok && w.person("undo", step)
}

// policies are the ways to delete a parent, as the API server calls them and as scripts do.
var policies = [][2]string{{"Orphan", "orphan"}, {"Background", "background"}, {"Foreground", "foreground"}}

func (w *world) deleteParent(k Kind, parent client.Object) bool {
	policy := policies[w.chance.IntN(len(policies))]
	return w.play("delete "+policy[0], "delete", k.Check.Parents, parent.GetName(), fields{"cascade": policy[1]})
}

// recreate deletes a parent and makes one of the same name as soon as it is gone. The garbage collector may be
// anywhere.
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
	o := w.oneOf(k.Check.Revisions, parent)
	if o != nil && waitsForCollector(o) {
		return w.play("delete a revision in the foreground", "delete", k.Check.Revisions, o.GetName(), fields{"cascade": "foreground"})
	}
	return w.deleteOne("delete a revision", k.Check.Revisions, o)
}

func (w *world) deleteOne(what string, resource schema.GroupVersionResource, o client.Object) bool {
	return o != nil && w.play(what, "delete", resource, o.GetName(), fields{"cascade": "unsaid"})
}

// relabelChild makes a child match no longer, or makes one match again.
func (w *world) relabelChild(k Kind, _ client.Object) bool {
	children := w.all(k.Check.Children)
	if len(children) == 0 {
		return false
	}
	child, key := children[w.chance.IntN(len(children))], "app"
	if _, generated := child.GetLabels()[metacontroller.UIDLabel]; generated {
		key = metacontroller.UIDLabel
	}
	label, away := strings.CutPrefix(child.GetLabels()[key], "not-")
	if !away {
		label = "not-" + label
	}
	return w.play("relabel a child", "relabel", k.Check.Children, child.GetName(), fields{key: label})
}

func (w *world) disownChild(k Kind, parent client.Object) bool {
	return w.disown("disown a child", k.Check.Children, w.oneOf(k.Check.Children, parent))
}

func (w *world) disownRevision(k Kind, parent client.Object) bool {
	return w.disown("disown a revision", k.Check.Revisions, w.oneOf(k.Check.Revisions, parent))
}

func (w *world) disown(what string, resource schema.GroupVersionResource, o client.Object) bool {
	return o != nil && w.play(what, "patch", resource, o.GetName(), nil, `{"metadata":{"ownerReferences":null}}`)
}

// plantChild makes a child by hand.
func (w *world) plantChild(k Kind, parent client.Object) bool {
	step := k.Child(w.chance, k, parent, w.shelves[nodes].keys) // the keys of what has no namespace are names
	return w.person("plant a child", step)
}

// tendChild tells the controller something about a child.
func (w *world) tendChild(k Kind, parent client.Object) bool {
	child := w.oneOf(k.Check.Children, parent)
	return child != nil && w.play("tend a child", "edit", k.Check.Children, child.GetName(), k.Tend(w.chance))
}

// copyRevision makes a copy of a revision under another name: owned by the same parent or by nobody, with the same
// number or with one that is far ahead.
func (w *world) copyRevision(k Kind, parent client.Object) bool {
	revision := w.oneOf(k.Check.Revisions, parent)
	if revision == nil {
		return false
	}
	return w.person(k.Copy(w.chance, k, parent, revision))
}

// copyOf is a copy of a revision under another name, which somebody may create: owned by the same parent or by nobody,
// with the same number or with one that is far ahead. what says so.
func copyOf(
	chance *rand.Rand, k Kind, revision client.Object, kind schema.GroupVersionKind, name string,
) (what string, out client.Object) {
	out = deepCopy(revision)
	out.GetObjectKind().SetGroupVersionKind(kind)
	out.SetName(name)
	fresh(out)
	what = "copy a revision"
	if chance.IntN(2) == 0 {
		out.SetOwnerReferences(nil)
	} else {
		what += " with its owner"
	}
	if chance.IntN(3) == 0 {
		number(out, k.Check.Number(revision)+10)
	}
	return what, out
}

func deepCopy(o client.Object) client.Object {
	return o.DeepCopyObject().(client.Object)
}

// waitsForCollector selects half of the objects, by the last digit of the version: a draw would change all kept seeds.
// Somebody deletes these in the foreground, so that they stay until the garbage collector has seen them.
func waitsForCollector(o client.Object) bool {
	version := o.GetResourceVersion()
	return strings.ContainsAny(version[len(version)-1:], "02348")
}
