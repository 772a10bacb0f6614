package hook

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file holds the words of the protocol.

// Kind says which hook it is. Its values are part of the names of metrics.
type Kind string

// The hooks that are called. Metacontroller's schema has preUpdateChild and postUpdateChild as well, and calls neither.
const (
	// Sync answers which children a parent should have.
	Sync Kind = "sync"
	// Finalize answers the same while the parent is being deleted, or left the controller's selector.
	Finalize Kind = "finalize"
	// Customize answers which related objects the other two are to get.
	Customize Kind = "customize"
)

// Type is the kind of controller that a hook belongs to. It decides the names of fields.
type Type string

// The types of controllers.
const (
	// Composite controllers make the children of a parent.
	Composite Type = "CompositeController"
	// Decorator controllers make attachments to objects that others made.
	Decorator Type = "DecoratorController"
)

// childrenField is the field of questions and answers that holds the children.
func (t Type) childrenField() string {
	if t == Decorator {
		return "attachments"
	}
	return "children"
}

// parentField is the field of questions that holds the parent. The customize hook of a decorator calls it parent too.
func (t Type) parentField() string {
	if t == Decorator {
		return "object"
	}
	return "parent"
}

// ChildKind is a kind that a controller declares as a child or attachment. No answer may name another one.
type ChildKind struct {
	schema.GroupVersionKind
	// Namespaced is the scope of the kind, as discovery says.
	Namespaced bool
}

// Controller is what hooks get of the controller that calls them.
type Controller struct {
	Type Type
	// Name is that of the CompositeController or DecoratorController; it labels metrics.
	Name string
	// Object is the controller as JSON, as it is sent.
	Object json.RawMessage
	// Children are the kinds that it declares. Hooks get an entry for each, also if there is no such child.
	Children []ChildKind
}
