package model_test

// This file makes random requests. They are made from the model's state, so that most of them have something to do with
// what is there.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// m is an object in JSON.
type m = map[string]any

// The custom resources of the test, with a status subresource and without.
var (
	widget = model.Custom(schema.GroupVersionKind{Group: "model.cairn.dev", Version: "v1", Kind: "Widget"}, "widgets", true, true, model.Schema{})
	gadget = model.Custom(schema.GroupVersionKind{Group: "model.cairn.dev", Version: "v1", Kind: "Gadget"}, "gadgets", true, false, model.Schema{})
)

// program makes the requests of one sequence.
type program struct {
	random    *rand.Rand
	server    *model.Server
	kinds     []model.Kind // those that it plays with
	namespace string
	prefix    string
	stale     map[types.UID][]string // resource versions that objects have had
	garbage   bool                   // the garbage collector takes part
}

const namesPerKind = 2

// claim is the kind that a controller of the sandbox looks after when it is deleted. So it is not, here, and its
// finalizers stay.
const claim = "PersistentVolumeClaim"

// pick returns one of several values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// chance is true in one of n cases.
func (p *program) chance(n int) bool { return p.random.IntN(n) == 0 }

// next makes a request.
func (p *program) next() (model.Request, model.Kind) {
	k := pick(p.random, p.kinds...)
	r := model.Request{Resource: k.Resource, Namespace: p.namespace, DryRun: p.chance(12)}
	name := fmt.Sprintf("%s%d", p.prefix, p.random.IntN(namesPerKind))
	current := p.get(k, name)
	switch n := p.random.IntN(100); {
	case current == nil && n < 85, n < 4:
		p.create(&r, k, name)
	case n < 22:
		p.remove(&r, k, name, current)
	case n < 26 && k.Kind.Kind != claim:
		r.Verb = model.VerbDeleteCollection
		r.LabelSelector = p.mine(p.chance(2))
		p.deleteOptions(&r, k, nil)
	case n < 32:
		r.Verb, r.DryRun = model.VerbList, false
		r.LabelSelector = p.mine(p.chance(2))
		if p.chance(2) {
			r.FieldSelector = pick(p.random, fields.OneTermEqualSelector("metadata.name", name), fields.OneTermEqualSelector("spec.nodeName", p.prefix+"node"),
				fields.OneTermNotEqualSelector("status.phase", "Running"), fields.OneTermEqualSelector("spec.bogus", ""))
		}
	case n < 40 && k.Kind.Kind == "Pod":
		p.bind(&r, name, current)
	case n < 62:
		p.update(&r, k, name, current)
	default:
		p.patch(&r, k, name, current)
	}
	return r, k
}

// mine selects the objects of this sequence.
func (p *program) mine(some bool) labels.Selector {
	set := labels.Set{"sequence": p.prefix + "x"}
	if some {
		set["tier"] = pick(p.random, "a", "b")
	}
	return labels.SelectorFromSet(set)
}

// get returns an object of the model, or nil.
func (p *program) get(k model.Kind, name string) client.Object {
	r := p.server.Do(model.Request{Verb: model.VerbGet, Resource: k.Resource, Namespace: p.namespace, Name: name})
	return r.Object
}

// create makes a create.
func (p *program) create(r *model.Request, k model.Kind, name string) {
	content := fresh(k.Kind.Kind)
	merge(content, m{"metadata": m{
		"name": name, "namespace": pick(p.random, p.namespace, p.namespace, p.namespace, p.namespace, p.namespace, "", "", "elsewhere"),
		"labels": m{"sequence": p.prefix + "x", "tier": pick(p.random, "a", "b"), "app": "web"},
	}})
	if p.chance(2) {
		merge(content, m{"metadata": m{"ownerReferences": p.owners(k)}})
	}
	if p.chance(4) && k.Kind.Kind != claim {
		merge(content, m{"metadata": m{"finalizers": []any{"cairn.dev/hold"}}})
	}
	if p.chance(3) {
		merge(content, p.edit(k))
	}
	if k.Kind.Kind == claim { // as an admission plugin has it
		merge(content, m{"metadata": m{"finalizers": []any{"kubernetes.io/pvc-protection"}}})
	}
	if p.chance(30) {
		merge(content, m{"metadata": m{"resourceVersion": "1"}})
	}
	r.Verb = model.VerbCreate
	if r.Object = objectOf(k, content); r.Object == nil {
		p.create(r, k, name)
	}
}

// update makes an update of the object or of its status.
func (p *program) update(r *model.Request, k model.Kind, name string, current client.Object) {
	r.Verb, r.Name = model.VerbUpdate, name
	content := fresh(k.Kind.Kind)
	if current != nil {
		content = contentOf(current)
	}
	merge(content, m{"metadata": m{"name": name, "namespace": p.namespace}})
	for range 1 + p.random.IntN(2) {
		merge(content, p.edit(k))
	}
	merge(content, m{"metadata": m{"resourceVersion": p.version(current, true)}})
	if uid := p.uid(current, true); uid != nil {
		merge(content, m{"metadata": m{"uid": uid}})
	}
	if k.Status && p.chance(3) {
		r.Subresource = "status"
	}
	if r.Object = objectOf(k, content); r.Object == nil {
		p.update(r, k, name, current)
	}
}

// patch makes a patch of the object or of its status.
func (p *program) patch(r *model.Request, k model.Kind, name string, current client.Object) {
	r.Verb, r.Name = model.VerbPatch, name
	content := m{}
	for range 1 + p.random.IntN(2) {
		merge(content, p.edit(k))
	}
	if p.chance(4) {
		merge(content, m{"metadata": m{"resourceVersion": p.version(current, false)}})
	}
	if p.chance(4) {
		merge(content, m{"metadata": m{"uid": p.uid(current, false)}})
	}
	if k.Status && p.chance(3) {
		r.Subresource = "status"
	}
	r.PatchType = pick(p.random, types.MergePatchType, types.StrategicMergePatchType, types.JSONPatchType)
	var patch any = content
	switch {
	case r.PatchType == types.JSONPatchType:
		patch = p.operations(content, current)
	case r.PatchType == types.StrategicMergePatchType && p.chance(5):
		directive := pick(p.random,
			m{"spec": m{"template": m{"$patch": "replace", "metadata": m{"labels": m{"app": "web"}}, "spec": m{"containers": []any{m{"name": "web", "image": "web:9"}}}}}},
			m{"metadata": m{"finalizers": []any{"cairn.dev/other"}}},
			m{"metadata": m{"$deleteFromPrimitiveList/finalizers": []any{"cairn.dev/hold"}}},
			m{"metadata": m{"labels": m{"$patch": "replace", "app": "web"}}},
		)
		forgetAdded(content, directive)
		merge(content, directive)
	}
	var err error
	if r.Patch, err = json.Marshal(patch); err != nil {
		panic(err)
	}
}

// forgetAdded takes out of a patch the lists from which its directive takes entries away. What becomes of an entry that
// one patch both adds and takes away is not defined: apimachinery's strategic merge does it in the order of a Go map,
// so that the same request has two answers, from the real server too.
func forgetAdded(content, directive m) {
	from, ok := directive["metadata"].(m)
	if !ok {
		return
	}
	for name := range from {
		list, deletes := strings.CutPrefix(name, "$deleteFromPrimitiveList/")
		if to, ok := content["metadata"].(m); ok && deletes {
			delete(to, list)
		}
	}
}

// operations makes a JSON patch of a merging one: its leaves are added, after tests.
func (p *program) operations(content m, current client.Object) []any {
	operations := []any{}
	if current != nil && p.chance(2) {
		operations = append(operations, m{"op": "test", "path": "/metadata/resourceVersion", "value": p.version(current, false)})
	}
	if current != nil && p.chance(2) {
		operations = append(operations, m{"op": "test", "path": "/metadata/uid", "value": p.uid(current, false)})
	}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if object, ok := value.(m); ok && len(path) < len("/spec/templ") {
			for _, name := range sortedKeys(object) {
				walk(path+"/"+name, object[name])
			}
			return
		}
		op := pick(p.random, "add", "add", "replace")
		if value == nil {
			op = "remove"
		}
		operations = append(operations, m{"op": op, "path": path, "value": value})
	}
	walk("", content)
	return operations
}

// version is a resource version to send along: mostly the right one.
func (p *program) version(current client.Object, mayBeAbsent bool) any {
	if current == nil {
		return "12"
	}
	switch n := p.random.IntN(8); {
	case n == 0 && mayBeAbsent:
		return nil
	case n == 1:
		if old := p.stale[current.GetUID()]; len(old) > 0 {
			return pick(p.random, old...)
		}
	case n == 2:
		return "1"
	}
	return current.GetResourceVersion()
}

// uid is a UID to send along: mostly the right one.
func (p *program) uid(current client.Object, mayBeAbsent bool) any {
	switch {
	case p.chance(8):
		return "11111111-2222-4333-8444-555555555555"
	case current == nil, mayBeAbsent && p.chance(4):
		return nil
	}
	return string(current.GetUID())
}

// remove makes a delete.
func (p *program) remove(r *model.Request, k model.Kind, name string, current client.Object) {
	r.Verb, r.Name = model.VerbDelete, name
	if k.Kind.Kind == claim {
		r.DryRun = true
	}
	p.deleteOptions(r, k, current)
}

// deleteOptions sets the options of a delete.
func (p *program) deleteOptions(r *model.Request, k model.Kind, current client.Object) {
	if current != nil && p.chance(2) {
		r.Preconditions = &metav1.Preconditions{}
		if uid, ok := p.uid(current, true).(string); ok {
			r.Preconditions.UID = (*types.UID)(&uid)
		}
		if rv, ok := p.version(current, true).(string); ok && p.chance(2) {
			r.Preconditions.ResourceVersion = &rv
		}
	}
	if p.chance(4) {
		r.Propagation = pick(p.random, new(metav1.DeletePropagationBackground), new(metav1.DeletionPropagation("Bogus")))
	}
	if p.garbage && k.Kind.Group != widget.Kind.Group && p.chance(2) {
		r.Propagation = pick(p.random, new(metav1.DeletePropagationForeground), new(metav1.DeletePropagationOrphan))
	}
	if p.chance(3) {
		r.GracePeriodSeconds = pick(p.random, new(int64(0)), new(int64(0)), new(int64(5)), new(int64(60)), new(int64(-1)))
	}
}

// bind makes a binding.
func (p *program) bind(r *model.Request, name string, current client.Object) {
	binding := &corev1.Binding{}
	binding.Name, binding.Namespace = name, p.namespace
	binding.Kind, binding.APIVersion = "Binding", "v1"
	binding.Target = corev1.ObjectReference{Kind: pick(p.random, "Node", "Node", "Node", "Pod"), Name: pick(p.random, p.prefix+"node", p.prefix+"node", "")}
	if p.chance(3) {
		binding.Annotations = map[string]string{"bound": "yes"}
	}
	if p.chance(3) {
		if uid, ok := p.uid(current, true).(string); ok {
			binding.UID = types.UID(uid)
		}
	}
	r.Verb, r.Name, r.Subresource, r.Object = model.VerbCreate, name, "binding", binding
}

// owners makes owner references, to objects that are there for the most part. Custom resources own nothing and nobody
// owns them: the garbage collector of the real server hears of new kinds too late. Most sequences know no owners: it is
// slow.
func (p *program) owners(dependent model.Kind) []any {
	var refs []any
	for range 1 + p.random.IntN(2) {
		k := pick(p.random, p.kinds...)
		if !p.garbage || k.Kind.Group == widget.Kind.Group || dependent.Kind.Group == widget.Kind.Group || dependent.Kind.Kind == claim {
			continue
		}
		ref := m{"apiVersion": k.Kind.GroupVersion().String(), "kind": k.Kind.Kind, "name": fmt.Sprintf("%s%d", p.prefix, p.random.IntN(namesPerKind))}
		owner := p.get(k, ref["name"].(string))
		switch n := p.random.IntN(12); {
		case owner != nil && n > 0:
			ref["uid"] = string(owner.GetUID())
		case n < 6:
			ref["uid"] = "99999999-2222-4333-8444-555555555555"
		case n == 6:
			ref["uid"] = ""
		default:
			continue
		}
		if p.chance(2) {
			ref["controller"] = pick(p.random, true, true, false)
		}
		if p.chance(2) {
			ref["blockOwnerDeletion"] = pick(p.random, true, true, false)
		}
		refs = append(refs, ref)
		if p.chance(10) {
			refs = append(refs, ref)
		}
	}
	return refs
}
