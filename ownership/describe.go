package ownership

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file names objects in messages.

// Describe names an object in an error, an event or a condition: its kind, its namespace if it has one, and its name, such
// as "Pod team/web-0" or "Node n1".
func Describe(o client.Object) string {
	if o.GetNamespace() == "" {
		return kindOf(o) + " " + o.GetName()
	}
	return kindOf(o) + " " + o.GetNamespace() + "/" + o.GetName()
}

// kindOf is the kind that an object says it is of, or else the name of its Go type: objects from a typed client carry no
// kind.
func kindOf(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}
