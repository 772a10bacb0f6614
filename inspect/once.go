package inspect

import (
	"context"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// This file lists each kind once for many parents: to list the revisions of a namespace anew for each of its parents is
// quadratic.

// Once returns an inspector that lists what a namespace has of a kind once, for all the objects that it is asked about.
// Its answers are as of then. It is safe for concurrent use.
func (i *Inspector) Once() *Inspector {
	return &Inspector{client: &once{Client: i.client}, reveal: i.reveal}
}

// once is a client whose lists are those of the first time. What it returns is shared, and not to be changed. It is
// safe for concurrent use. Two lists of one kind at the same time may both ask the API server.
type once struct {
	client.Client

	kept sync.Map // from listed to *items
	// warnings maps a namespace to a map[types.UID][]corev1.Event: its events of type Warning, by the object concerned.
	warnings sync.Map
}

// listed is what was listed: as what type, since some are read as metadata and some whole.
type listed struct {
	as        reflect.Type
	gvk       schema.GroupVersionKind
	namespace string
}

type items struct {
	all []runtime.Object
	// controlled are the indices of what an object controls, by its UID.
	controlled map[string][]int
}

// Controlled implements [object.Indexed].
func (o *once) Controlled() {}

// List lists what was asked for out of what is kept.
func (o *once) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	if events, ok := list.(*corev1.EventList); ok {
		return o.events(ctx, events, asked)
	}
	uid, ok := ownerOf(asked.FieldSelector)
	if !ok || asked.Limit > 0 || asked.Continue != "" {
		return o.Client.List(ctx, list, opts...)
	}
	whole, err := o.whole(ctx, list, asked.Namespace)
	if err != nil {
		return err
	}
	var out []runtime.Object
	take := func(item runtime.Object) {
		if m, err := meta.Accessor(item); err == nil && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(m.GetLabels()))) {
			out = append(out, item)
		}
	}
	if uid != "" {
		for _, n := range whole.controlled[uid] {
			take(whole.all[n])
		}
	} else {
		for _, item := range whole.all {
			take(item)
		}
	}
	return meta.SetList(list, out)
}

// events lists those about one object out of all warnings of a namespace. Others are asked for anew.
func (o *once) events(ctx context.Context, list *corev1.EventList, asked client.ListOptions) error {
	if asked.FieldSelector == nil {
		return o.Client.List(ctx, list, &asked)
	}
	about, one := asked.FieldSelector.RequiresExactMatch("involvedObject.uid")
	kind, only := asked.FieldSelector.RequiresExactMatch("type")
	if !one || !only || kind != corev1.EventTypeWarning {
		return o.Client.List(ctx, list, &asked)
	}
	of, known := o.warnings.Load(asked.Namespace)
	if !known {
		var all corev1.EventList
		warning := client.MatchingFields{"type": corev1.EventTypeWarning}
		if err := o.Client.List(ctx, &all, client.InNamespace(asked.Namespace), warning); err != nil {
			return err
		}
		warnings := map[types.UID][]corev1.Event{}
		for n := range all.Items {
			uid := all.Items[n].InvolvedObject.UID
			warnings[uid] = append(warnings[uid], all.Items[n])
		}
		of, _ = o.warnings.LoadOrStore(asked.Namespace, warnings)
	}
	list.Items = of.(map[types.UID][]corev1.Event)[types.UID(about)]
	return nil
}

// ownerOf returns the UID that a selector asks for the controlled objects of. ok is false for any other selector.
func ownerOf(selector fields.Selector) (uid string, ok bool) {
	if selector == nil || selector.Empty() {
		return "", true
	}
	return selector.RequiresExactMatch(ownership.ControllerIndex)
}

func (o *once) whole(ctx context.Context, list client.ObjectList, namespace string) (*items, error) {
	gvk, err := o.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	at := listed{reflect.TypeOf(list), gvk, namespace}
	if c, known := o.kept.Load(at); known {
		return c.(*items), nil
	}
	all := list.DeepCopyObject().(client.ObjectList)
	if err := o.Client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	c := &items{controlled: map[string][]int{}}
	err = meta.EachListItem(all, func(item runtime.Object) error {
		if m, err := meta.Accessor(item); err == nil {
			if owner := ownership.ControllerOf(m).Value(); owner != ownership.Orphan {
				c.controlled[owner] = append(c.controlled[owner], len(c.all))
			}
		}
		c.all = append(c.all, item)
		return nil
	})
	o.kept.Store(at, c)
	return c, err
}
