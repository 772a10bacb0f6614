package sim

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file gives caches the objects in the form in which a manager holds them. The server's model has Go types for
// what Kubernetes defines. Controllers that are hosted know no types but that of their revisions.

// viewKey names one version of one object.
type viewKey struct {
	resource schema.GroupVersionResource
	uid      types.UID
	version  string
}

// viewed is what caches got, and its fingerprint when they did.
type viewed struct {
	object client.Object
	print  uint64
}

// hosts reports whether the managers of a world host controllers. Nothing else runs in them then.
func (w *world) hosts() bool { return len(w.kinds) > 0 && len(w.kinds[0].Hosted) > 0 }

// loose reports whether managers hold a resource without Go types: all that hosted controllers have to do with, and the
// parents of a kind that says so.
func (w *world) loose(resource schema.GroupVersionResource) bool {
	return w.hosts() || slices.ContainsFunc(w.kinds, func(k Kind) bool { return k.Loose && k.Check.Parents == resource })
}

// view returns an object as caches hold it: always the same one for a version of an object, so that all of them share
// it.
func (w *world) view(resource schema.GroupVersionResource, o client.Object) client.Object {
	if !w.loose(resource) {
		return o
	}
	key := viewKey{resource, o.GetUID(), o.GetResourceVersion()}
	if v, ok := w.views[key]; ok {
		return v.object
	}
	out, err := w.converted(resource, o)
	if err != nil {
		panic(fmt.Sprintf("sim: %s %s: %v", resource.Resource, o.GetName(), err))
	}
	w.views[key] = viewed{out, fingerprint(out)}
	return out
}

func (w *world) converted(resource schema.GroupVersionResource, o client.Object) (client.Object, error) {
	u, loose := o.(*unstructured.Unstructured)
	switch {
	case loose && resource == catset.Revisions:
		out := &v1alpha1.ControllerRevision{}
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
	case loose:
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(w.served[resource].Kind)
	return out, nil
}
