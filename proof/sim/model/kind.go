package model

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The subresources that are served.
const (
	subresourceStatus  = "status"
	subresourceBinding = "binding"
)

// Kind is one entry in the table of what a Server serves. BuiltIn and Custom make entries.
type Kind struct {
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	Status     bool // has a status subresource

	// rules are the API server's own for this kind, statusRules those of its status subresource.
	rules       rules
	statusRules rest.RESTUpdateStrategy
	// newObject makes an empty object as it is stored, newHub one of the API server's internal version. Custom resources
	// have no internal version.
	newObject func() client.Object
	newHub    func() runtime.Object
	// selectable are the fields that a field selector may name, of an object of the internal version.
	selectable func(hub runtime.Object) fields.Set
	schema     Schema // of a custom resource
}

// rules are what the API server's registry asks about a kind.
type rules interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
}

// builtIn tells whether the kind comes with Kubernetes.
func (k *Kind) builtIn() bool { return k.newHub != nil }

// accepts refuses a request that the API server has no handler for.
func (k *Kind) accepts(r Request) error {
	resource := k.Resource.GroupResource()
	switch {
	case r.Subresource == subresourceStatus && k.Status && (r.Verb == VerbGet || r.Verb == VerbUpdate || r.Verb == VerbPatch):
	case r.Subresource == subresourceBinding && k.Kind.Kind == "Pod" && r.Verb == VerbCreate:
	case r.Subresource != "":
		return apierrors.NewGenericServerResponse(404, r.Verb, resource, r.Name, "", 0, true)
	}
	if !k.Namespaced && r.Namespace != "" {
		return apierrors.NewGenericServerResponse(404, r.Verb, resource, r.Name, "", 0, true)
	}
	if k.Namespaced && r.Namespace == "" && r.Verb != VerbList {
		return apierrors.NewGenericServerResponse(405, r.Verb, resource, r.Name, "", 0, true)
	}
	return nil
}

// updateRules are the rules for a write to the object or to its status.
func (k *Kind) updateRules(subresource string) rest.RESTUpdateStrategy {
	if subresource == subresourceStatus {
		return k.statusRules
	}
	return k.rules
}

// toHub returns an object in the internal version. What is below its top level may be shared with the given one.
func (k *Kind) toHub(object client.Object) (runtime.Object, error) {
	if !k.builtIn() {
		return object, nil
	}
	hub := k.newHub()
	if err := legacyscheme.Scheme.Convert(object, hub, nil); err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", k.Kind.Kind, object.GetName(), err)
	}
	return hub, nil
}

// fromHub is the way back.
func (k *Kind) fromHub(hub runtime.Object) (client.Object, error) {
	if !k.builtIn() {
		return hub.(client.Object), nil
	}
	object := k.newObject()
	if err := legacyscheme.Scheme.Convert(hub, object, nil); err != nil {
		return nil, fmt.Errorf("convert %s: %w", k.Kind.Kind, err)
	}
	return object, nil
}

// applyDefaults sets the defaults that the API server sets when it reads an object.
func (k *Kind) applyDefaults(object client.Object) {
	if k.builtIn() {
		legacyscheme.Scheme.Default(object)
	} else if k.schema.Default != nil {
		k.schema.Default(content(object))
	}
}

// fork returns a copy of which the metadata may be replaced. Of a typed object all below the top level is shared.
func (k *Kind) fork(object client.Object) client.Object {
	if _, ok := object.(*unstructured.Unstructured); ok {
		return object.DeepCopyObject().(client.Object)
	}
	v := reflect.New(reflect.TypeOf(object).Elem())
	v.Elem().Set(reflect.ValueOf(object).Elem())
	return v.Interface().(client.Object)
}

// adopt makes an object of a request one of the type in which the kind is stored.
func (k *Kind) adopt(object client.Object) (client.Object, error) {
	if empty := k.newObject(); reflect.TypeOf(object) != reflect.TypeOf(empty) {
		if err := convert(object, empty); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		object = empty
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		if err := coerceMeta(u); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return object, nil
}

// convert fills an object from one of another Go type with the same JSON.
func convert(from, into client.Object) error {
	var content map[string]any
	if u, ok := from.(*unstructured.Unstructured); ok {
		content = u.Object
	} else {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(from); err != nil {
			return fmt.Errorf("convert %T: %w", from, err)
		}
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(content)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, into); err != nil {
		return fmt.Errorf("convert into %T: %w", into, err)
	}
	return nil
}
