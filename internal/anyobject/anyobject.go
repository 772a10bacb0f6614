// Package anyobject has helpers for any object: it names one in messages, and makes an empty one of the same type.
//
// What may not come in: anything that needs a client, or that is of use outside of this module.
package anyobject

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describe names an object in an error, an event or a condition: its kind, its namespace if it has one, and its name,
// such as "Pod team/web-0" or "Node n1".
func Describe(o client.Object) string {
	if o.GetNamespace() == "" {
		return KindOf(o) + " " + o.GetName()
	}
	return KindOf(o) + " " + o.GetNamespace() + "/" + o.GetName()
}

// KindOf returns the kind that an object says it is of, or else the name of its Go type: objects from a typed client
// carry no kind.
func KindOf(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Blank returns an empty object of the type of o, with its name, namespace and kind: something to decode an answer
// into. Decoding over a populated object would keep fields that the answer does not have.
func Blank(o client.Object) client.Object {
	blank := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	blank.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	blank.SetNamespace(o.GetNamespace())
	blank.SetName(o.GetName())
	return blank
}
