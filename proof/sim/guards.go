package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file is somebody who goes for revisions, at any moment: those that children belong to which are held back, or
// not reached yet.

func (t *trouble) makeGuards(w *world) bool {
	for _, k := range w.kinds {
		t.guards = t.guards || k.hasRevisions()
	}
	t.aboutf("somebody goes for revisions")
	return t.guards
}

// attack does something to one revision of each parent.
func (w *world) attack() {
	for _, k := range w.kinds {
		if !k.hasRevisions() {
			continue
		}
		for _, parent := range w.all(k.Check.Parents) {
			all := slices.DeleteFunc(w.owned(k.Check.Revisions, parent), func(r client.Object) bool {
				return len(r.GetLabels()) == 0 // it is in no log any more
			})
			if len(all) > 0 {
				w.spoil(k, parent, all[w.trouble.chance.IntN(len(all))])
			}
		}
	}
	w.wait()
}

// spoil does something to a revision.
func (w *world) spoil(k Kind, parent, revision client.Object) {
	chance, resource, name := w.trouble.chance, k.Check.Revisions, revision.GetName()
	out := deepCopy(revision)
	out.GetObjectKind().SetGroupVersionKind(w.served[resource].Kind)
	fresh(out)
	switch chance.IntN(10) {
	case 0, 1:
		w.deleteOne("delete a revision", resource, revision)
	case 2:
		w.play("take the labels of a revision away", "patch", resource, name, nil, `{"metadata":{"labels":null}}`)
	case 3:
		if w.deleteOne("delete a revision", resource, revision) && unreadable(out) {
			w.person("put something unreadable in its place", manifest(out))
		}
	case 4:
		w.play("give a revision the largest number", "patch", resource, name, nil, numbered(math.MaxInt64))
	case 5:
		w.play("give a revision a number below all", "patch", resource, name, nil, numbered(pick[int64](chance, -1, 0, math.MinInt64)))
	case 6, 7:
		foreign(chance, out)
		out.SetName(w.neverNamed(k, fmt.Sprintf("%s-foreign-%d", parent.GetName(), chance.IntN(3))))
		out.SetOwnerReferences(nil)
		number(out, k.Check.Number(revision)+pick[int64](chance, -1, 0, 1, 10))
		w.person("plant other content", manifest(out))
	case 8:
		out.SetName(w.neverNamed(k, fmt.Sprintf("%s-double-%d", parent.GetName(), chance.IntN(3))))
		w.person("double a revision", manifest(out))
	default:
		out.SetName(w.neverNamed(k, fmt.Sprintf("%s-planted-%d", parent.GetName(), chance.IntN(3))))
		out.SetOwnerReferences(pick[[]metav1.OwnerReference](chance, nil, forged(parent)))
		number(out, pick[int64](chance, math.MaxInt64, math.MaxInt64-1, 1, 7))
		w.person("plant a revision", manifest(out))
	}
}

// forged is an owner reference that has the UID of a parent and another kind.
func forged(parent client.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: check.Unserved + "/v1", Kind: "Parent", Name: parent.GetName(), UID: parent.GetUID(), Controller: new(true),
	}}
}

// foreign puts into a copy of a revision what nobody has asked for: another image. The hash is another one, or is
// missing; where a revision says which children are its own, so does the copy.
func foreign(chance *rand.Rand, revision client.Object) {
	const image = `"image":"planted:1"`
	switch r := revision.(type) {
	case *appsv1.ControllerRevision:
		r.Data.Raw = anImage.ReplaceAll(r.Data.Raw, []byte(image))
	case *unstructured.Unstructured:
		patch, err := json.Marshal(r.Object["parentPatch"])
		if err == nil {
			var out map[string]any
			err = json.Unmarshal(anImage.ReplaceAll(patch, []byte(image)), &out)
			r.Object["parentPatch"] = out
		}
		if err != nil {
			panic(fmt.Sprintf("sim: %s: %v", revision.GetName(), err)) // it came as JSON
		}
	default:
	}
	if key, hash := hashOf(revision); key != "" && hash != "" {
		labels := revision.GetLabels()
		if delete(labels, key); chance.IntN(2) == 0 { // with that of another one, nobody could tell their children apart
			labels[key] = "f0re19n"
		}
		revision.SetLabels(labels)
	}
}

var anImage = regexp.MustCompile(`"image":"[^"]*"`)

func numbered(n int64) string { return fmt.Sprintf(`{"revision":%d}`, n) }

// neverNamed returns a name for a revision that no other one has had, unless that one is still there and refuses the
// new one. Pods of a StatefulSet have nothing but the name to say what they were made from, so that nobody could tell
// the two apart.
func (w *world) neverNamed(k Kind, name string) string {
	there := func(name string) bool {
		return slices.ContainsFunc(w.all(k.Check.Revisions), func(o client.Object) bool { return o.GetName() == name })
	}
	for w.trouble.planted[name] && !there(name) {
		name += "x"
	}
	if w.trouble.planted == nil {
		w.trouble.planted = map[string]bool{}
	}
	w.trouble.planted[name] = true
	return name
}

// repair deletes the revisions whose numbers leave no room for new ones, as a person does who has read the condition.
func (w *world) repair() {
	for _, k := range w.kinds {
		if !k.hasRevisions() {
			continue
		}
		for _, r := range w.all(k.Check.Revisions) {
			if k.Check.Number(r) > math.MaxInt64/2 {
				w.deleteOne("delete a revision with a number that leaves no room", k.Check.Revisions, r)
			}
		}
	}
	w.wait()
}

// fresh makes a copy something that can be created.
func fresh(o client.Object) {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
}

func number(revision client.Object, n int64) {
	switch r := revision.(type) {
	case *appsv1.ControllerRevision:
		r.Revision = n
	case *unstructured.Unstructured:
		setField(r, n, "revision")
	default:
	}
}

// unreadable puts something into a revision that is none, and returns false if it cannot: of parents that a hook
// describes, every object is a revision.
func unreadable(revision client.Object) bool {
	r, ok := revision.(*appsv1.ControllerRevision)
	if ok {
		r.Data.Raw = []byte(`{"spec":{"template":"none"}}`)
	}
	return ok
}
