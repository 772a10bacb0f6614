package builder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file asks the author's function, and remembers what it has returned for one version of a parent, while that
// parent has work to do: a rollout makes several passes for each child, and changes the parent once a second at most.
// Losing it costs a call.

// asked calls the author's function, twice: what depends on more than the parent, on the time or on chance, would be
// written again in every pass.
func (r *reconciler[P]) asked(parent P) ([]client.Object, error) {
	var objects, again []client.Object
	for _, into := range []*[]client.Object{&objects, &again} {
		var err error
		*into, err = safely(func() ([]client.Object, error) {
			return r.author.Children(parent.DeepCopyObject().(P))
		})
		if err != nil {
			err = fmt.Errorf("ask the controller %s for the children of %s: %w", r.author.Name, parent.GetName(), err)
			return nil, &pass.RefusedError{Reason: "ChildrenFailed", Err: err, Retry: true}
		}
	}
	if at := differs(objects, again); at != "" {
		return nil, pass.Refusef("NotDeterministic", "the controller %s was asked twice for the children of %s, and answered with another %s",
			r.author.Name, parent.GetName(), at)
	}
	return objects, nil
}

// differs names what is different in two answers for one parent, as far down as both have the same fields. Empty if
// nothing is.
func differs(a, b []client.Object) string {
	if apiequality.Semantic.DeepEqual(a, b) {
		return ""
	}
	if len(a) != len(b) {
		return "number of children"
	}
	for i := range a {
		if apiequality.Semantic.DeepEqual(a[i], b[i]) {
			continue
		}
		ta, errA := treeOf(a[i])
		tb, errB := treeOf(b[i])
		if errA != nil || errB != nil {
			break
		}
		return fmt.Sprintf("%s of child %d", differsAt(ta, tb), i)
	}
	return "child"
}

// differsAt is the path of the first field that is different.
func differsAt(a, b map[string]any) string {
	path := ""
	for {
		next := ""
		for _, key := range slices.Sorted(maps.Keys(a)) {
			if !apiequality.Semantic.DeepEqual(a[key], b[key]) {
				next = key
				break
			}
		}
		if next == "" {
			return cmp.Or(path, "field") // b has one more
		}
		path = strings.TrimPrefix(path+"."+next, ".")
		deeper, ok := a[next].(map[string]any)
		other, also := b[next].(map[string]any)
		if !ok || !also {
			return path
		}
		a, b = deeper, other
	}
}

// answers are what is remembered of all parents. It is safe for concurrent use.
type answers struct {
	mu sync.Mutex
	of map[types.UID]answered
}

// answered is what is remembered of one parent: of one version only.
type answered struct {
	version string
	wants   map[source][]want
}

// source is what was restored before the author was asked: a revision as it is stored, or nothing.
type source struct {
	revision types.UID
	version  string
}

// ask returns what is wanted of a parent from a source, and calls wants if that is not known.
func (a *answers) ask(parent client.Object, from source, wants func() ([]want, error)) ([]want, error) {
	uid, version := parent.GetUID(), parent.GetResourceVersion()
	if out, ok := a.known(uid, version, from); ok {
		return out, nil
	}
	out, err := wants()
	if err != nil || version == "" {
		return out, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[types.UID]answered{}
	}
	if a.of[uid].version != version {
		a.of[uid] = answered{version, map[source][]want{}}
	}
	a.of[uid].wants[from] = out
	return out, nil
}

// known returns what is remembered.
func (a *answers) known(uid types.UID, version string, from source) (out []want, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[uid].version == version {
		out, ok = a.of[uid].wants[from]
	}
	return out, ok
}

// forget drops what is remembered of a parent.
func (a *answers) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, parent)
}
