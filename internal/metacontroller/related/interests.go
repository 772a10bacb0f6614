package related

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file knows to which parents an object is related, without trying the rules of all of them: a rule is filed under
// the place of the objects that it can select. It makes no request.

// wish is one rule of one parent.
type wish struct {
	rule

	of     watching.Resource
	parent types.NamespacedName
}

// place is where objects are looked for. Name and label are mutually exclusive; an empty field does not restrict.
type place struct {
	kind                   schema.GroupVersionKind
	namespace, name, label string
}

// interests are the wishes of all parents. They are safe for concurrent use. Make them with [newInterests].
type interests struct {
	mu      sync.RWMutex
	parents map[types.UID]*interest
	// uids tells a recreated parent from the one before it.
	uids   map[types.NamespacedName]types.UID
	places map[place]map[*wish]struct{}
	// around are the wishes that depend on labels of namespaces.
	around map[*wish]struct{}
}

// interest is that of one parent, by the revision that the hook was called for.
type interest struct {
	key types.NamespacedName
	at  map[string]*asked
}

// asked is one answer.
type asked struct {
	answer []hook.Rule
	wishes []*wish
	// recent is true if it was asked for since the pass began.
	recent bool
}

func newInterests() *interests {
	return &interests{
		parents: map[types.UID]*interest{}, uids: map[types.NamespacedName]types.UID{},
		places: map[place]map[*wish]struct{}{}, around: map[*wish]struct{}{},
	}
}

// known returns what is filed for a parent and a revision, if it was made of this answer.
//
// Each pass asks for the parent as it is (revision is empty) first. So that is where a pass begins: revisions that the
// last pass did not ask for no longer count.
func (i *interests) known(uid types.UID, revision string, answer []hook.Rule) ([]*wish, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := i.parents[uid]
	if of == nil {
		return nil, false
	}
	if revision == "" {
		for name, a := range of.at {
			if name != "" && !a.recent {
				i.withdraw(of, name)
			}
			a.recent = false
		}
	}
	a := of.at[revision]
	if a == nil || !reflect.DeepEqual(a.answer, answer) {
		return nil, false
	}
	a.recent = true
	return a.wishes, true
}

// file makes wishes those of a parent and a revision, in place of any before.
func (i *interests) file(uid types.UID, key types.NamespacedName, revision string, a *asked) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if before, there := i.uids[key]; there && before != uid {
		i.drop(before)
	}
	of := i.parents[uid]
	if of == nil {
		of = &interest{key: key, at: map[string]*asked{}}
		i.parents[uid], i.uids[key] = of, uid
	}
	i.withdraw(of, revision)
	of.at[revision], a.recent = a, true
	for _, w := range a.wishes {
		for _, p := range w.places() {
			if i.places[p] == nil {
				i.places[p] = map[*wish]struct{}{}
			}
			i.places[p][w] = struct{}{}
		}
		if w.looksAround() {
			i.around[w] = struct{}{}
		}
	}
}

// forget drops the wishes of a deleted parent.
func (i *interests) forget(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(uid)
}

func (i *interests) drop(uid types.UID) {
	of := i.parents[uid]
	if of == nil {
		return
	}
	for revision := range of.at {
		i.withdraw(of, revision)
	}
	delete(i.parents, uid)
	delete(i.uids, of.key)
}

func (i *interests) withdraw(of *interest, revision string) {
	a := of.at[revision]
	if a == nil {
		return
	}
	delete(of.at, revision)
	for _, w := range a.wishes {
		delete(i.around, w)
		for _, p := range w.places() {
			delete(i.places[p], w)
			if len(i.places[p]) == 0 {
				delete(i.places, p)
			}
		}
	}
}

// places are where a wish may find objects. An object that it selects is in exactly one of them.
func (w *wish) places() []place {
	at := place{kind: w.of.Kind, namespace: w.namespace()}
	var out []place
	for _, name := range w.Names {
		out = append(out, place{kind: at.kind, namespace: at.namespace, name: name})
	}
	requirements, _ := w.labels.Requirements()
	for _, r := range requirements {
		if len(out) > 0 {
			break
		}
		switch r.Operator() { //nolint:exhaustive // the others exclude labels
		case selection.Equals, selection.DoubleEquals, selection.In:
			for value := range r.Values() {
				out = append(out, place{kind: at.kind, namespace: at.namespace, label: r.Key() + "=" + value})
			}
		}
	}
	if len(out) == 0 {
		return []place{at}
	}
	return out
}

// namespace is the only one that a wish selects objects in, empty if there may be others.
func (w *wish) namespace() string {
	if !w.of.Namespaced {
		return ""
	}
	return w.within
}

// surroundings returns the labels of a namespace, and whether there is such a namespace.
type surroundings func(namespace string) (labels.Set, bool)

// selects reports whether a wish selects an object. An object whose namespace is not known yet is not selected: the
// event of the namespace comes later, and enqueues the parent then.
func (w *wish) selects(o metav1.Object, around surroundings) bool {
	if !w.looksAround() || o.GetNamespace() == "" {
		return w.matches(o, nil)
	}
	set, known := around(o.GetNamespace())
	return known && w.matches(o, set)
}

// wanting adds the parents to which an object of a kind is related.
func (i *interests) wanting(out map[types.NamespacedName]struct{}, kind schema.GroupVersionKind, o metav1.Object, around surroundings) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	look := func(p place) {
		for w := range i.places[p] {
			if _, already := out[w.parent]; !already && w.selects(o, around) {
				out[w.parent] = struct{}{}
			}
		}
	}
	within, set := []string{""}, o.GetLabels()
	if o.GetNamespace() != "" {
		within = append(within, o.GetNamespace())
	}
	for _, namespace := range within {
		look(place{kind: kind, namespace: namespace})
		look(place{kind: kind, namespace: namespace, name: o.GetName()})
		for key, value := range set {
			look(place{kind: kind, namespace: namespace, label: key + "=" + value})
		}
	}
}

// moved adds the parents whose rules begin or cease to select a namespace. before or after is nil if there is no such
// namespace.
func (i *interests) moved(out map[types.NamespacedName]struct{}, before, after metav1.Object) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for w := range i.around {
		in := func(o metav1.Object) bool { return o != nil && w.surroundings.Matches(labels.Set(o.GetLabels())) }
		if in(before) != in(after) {
			out[w.parent] = struct{}{}
		}
	}
}
