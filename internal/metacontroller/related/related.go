package related

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file collects the related objects of parents. kinds.go watches them.

// Objects finds the related objects of the parents of one hosted controller, and enqueues a parent when one of them
// changes. It is safe for concurrent use. Make one with [New].
type Objects struct {
	customize *hook.Hook
	confined  bool
	parent    watching.Resource
	interests *interests
	kinds     *kinds
}

// New returns the related objects of the parents of a hosted controller, as its customize hook chooses them. A nil
// hook chooses none. version is that of the customize hook: with v1, a parent sees its own namespace only.
func New(s *watching.Server, customize *hook.Hook, version v1alpha1.HookVersion, parent watching.Resource) *Objects {
	r := &Objects{customize: customize, confined: version != v1alpha1.HookVersionV2, parent: parent, interests: newInterests()}
	r.kinds = newKinds(s, r.interests)
	return r
}

// Source enqueues every parent whose rules select a changed object, as it was before or is now. It must have been
// started before the first pass.
func (r *Objects) Source() source.Source { return &feed{r} }

// feed is the source.
type feed struct{ related *Objects }

// String names the source in logs.
func (f *feed) String() string { return "related objects of " + f.related.parent.String() }

// Start keeps the queue for the kinds that parents will ask for.
func (f *feed) Start(ctx context.Context, q watching.Queue) error {
	f.related.kinds.begin(ctx, q)
	return nil
}

// Gather returns the related objects of a parent as it is: see [Objects.GatherFor].
func (r *Objects) Gather(ctx context.Context, parent *unstructured.Unstructured) ([]hook.Group, error) {
	return r.GatherFor(ctx, &hook.Question{Parent: parent})
}

// GatherFor calls the customize hook with a question and returns the related objects, a group for each kind, empty or
// sorted by namespace and name. Objects come from the cache and may not be changed. Children and Related of the
// question are ignored. A pass that needs older revisions calls it for the parent as it is first, and then for them:
// the objects of both enqueue the parent. A revision that a pass did not ask for ceases to count when the next one
// begins.
//
// The error is a *[hook.Error] if the hook fails or its rules are invalid. It is [watching.ErrNotSynced] while a kind
// is listed for the first time: try again soon, because no event will enqueue the parent then. Any other error says
// which kind is not served or cannot be listed: show it on the parent, and try again later. It does not wait for an
// error to end: it takes no longer than the hook, and finding a new kind.
func (r *Objects) GatherFor(ctx context.Context, q *hook.Question) ([]hook.Group, error) {
	if r.customize == nil {
		return nil, nil
	}
	answer, err := r.customize.AskRelated(ctx, q)
	if err != nil {
		return nil, err
	}
	wishes, known := r.interests.known(q.Parent.GetUID(), q.Revision, answer)
	if !known {
		if wishes, err = r.wishes(q.Parent, answer); err != nil {
			return nil, err
		}
		// Before the objects are read: a later change of them enqueues the parent.
		key := client.ObjectKeyFromObject(q.Parent)
		r.interests.file(q.Parent.GetUID(), key, q.Revision, &asked{answer: answer, wishes: wishes})
	}
	return r.collect(wishes)
}

// Forget drops what is known of a deleted parent. The hook's answers are the [hook.Memory]'s.
func (r *Objects) Forget(uid types.UID) { r.interests.forget(uid) }

// wishes checks the rules of a parent and finds their resources.
func (r *Objects) wishes(parent *unstructured.Unstructured, answer []hook.Rule) ([]*wish, error) {
	wishes := make([]*wish, 0, len(answer))
	var wrong []error
	for _, given := range answer {
		checked, err := checkRule(given, parent.GetNamespace(), r.confined)
		if err != nil {
			return nil, &hook.Error{Hook: hook.Customize, Reason: hook.Contradictory, Err: err}
		}
		of, err := r.kinds.resource(given.APIVersion, given.Resource)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("related objects: %w", err))
			continue
		}
		wishes = append(wishes, &wish{rule: checked, of: of, parent: client.ObjectKeyFromObject(parent)})
	}
	return wishes, errors.Join(wrong...)
}

// collect reads the objects of wishes.
func (r *Objects) collect(wishes []*wish) ([]hook.Group, error) {
	stores, err := r.stores(wishes)
	if err != nil {
		return nil, err
	}
	var order []schema.GroupVersionKind
	found := map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured{}
	for _, w := range wishes {
		objects := found[w.of.Kind]
		if objects == nil {
			objects = map[types.NamespacedName]*unstructured.Unstructured{}
			found[w.of.Kind] = objects
			order = append(order, w.of.Kind)
		}
		candidates, err := w.candidates(stores[w.of.Kind])
		if err != nil {
			return nil, err
		}
		for _, c := range candidates {
			if o, ok := c.(*unstructured.Unstructured); ok && w.selects(o, r.kinds.labelsOf) {
				objects[client.ObjectKeyFromObject(o)] = o
			}
		}
	}
	groups := make([]hook.Group, 0, len(order))
	for _, kind := range order {
		groups = append(groups, hook.Group{GroupVersionKind: kind, Objects: sorted(found[kind])})
	}
	return groups, nil
}

// stores returns the stores of all kinds that wishes need, and starts to watch new ones. Errors that a user has to see
// come before those that soon pass.
func (r *Objects) stores(wishes []*wish) (map[schema.GroupVersionKind]toolscache.Indexer, error) {
	needed := map[schema.GroupVersionKind]watching.Resource{}
	for _, w := range wishes {
		needed[w.of.Kind] = w.of
		if w.looksAround() && w.of.Namespaced {
			needed[namespaces.Kind] = namespaces
		}
	}
	stores := make(map[schema.GroupVersionKind]toolscache.Indexer, len(needed))
	var soon error
	var wrong []error
	for kind, resource := range needed {
		store, err := r.kinds.store(resource)
		switch {
		case errors.Is(err, watching.ErrNotSynced):
			soon = err
		case err != nil:
			wrong = append(wrong, err)
		}
		stores[kind] = store
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) }) // the same text each time
		return nil, errors.Join(wrong...)
	}
	return stores, soon
}

// candidates are the objects of a store that a wish may select.
func (w *wish) candidates(store toolscache.Indexer) ([]any, error) {
	namespace := w.namespace()
	switch {
	case len(w.Names) > 0 && (namespace != "" || !w.of.Namespaced):
		var out []any
		for _, name := range w.Names {
			o, there, err := store.GetByKey(toolscache.NewObjectName(namespace, name).String())
			if err != nil {
				return nil, err
			}
			if there {
				out = append(out, o)
			}
		}
		return out, nil
	case namespace != "":
		return store.ByIndex(toolscache.NamespaceIndex, namespace)
	default:
		return store.List(), nil
	}
}

func sorted(objects map[types.NamespacedName]*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(maps.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}
