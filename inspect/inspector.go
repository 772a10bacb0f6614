package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file finds the object that somebody asks about, and says for which kinds there is an answer.

// Inspector answers questions with one set of credentials. It keeps nothing between two questions, so it is safe for
// concurrent use.
type Inspector struct {
	client client.Client
}

// New returns an inspector that asks through c. c must read from the API server, not from a cache: what a person is
// shown must be what is there now. Its scheme must know the kinds asked for, [k8s.io/client-go/kubernetes/scheme] does.
func New(c client.Client) *Inspector { return &Inspector{client: c} }

// Parent names the object asked about.
type Parent struct {
	schema.GroupVersionKind

	Namespace, Name string
	UID             types.UID
}

// String returns the parent as kubectl prints it: daemonset.apps/web.
func (p Parent) String() string { return kindName(p.GroupKind()) + "/" + p.Name }

func kindName(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}

// Get reads the object called name. Errors: [*UnknownKindError], or what the API server says.
func (i *Inspector) Get(ctx context.Context, kind schema.GroupKind, namespace, name string) (client.Object, error) {
	format, err := i.format(kind)
	if err != nil {
		return nil, err
	}
	parent := format.New()
	if err := i.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, parent); err != nil {
		return nil, err
	}
	return parent, nil
}

func (i *Inspector) format(kind schema.GroupKind) (history.Format, error) {
	if format, ok := history.FormatOf(kind); ok {
		return format, nil
	}
	return history.Format{}, i.unknown(kind, nil)
}

// typed returns parent as the Go type of its kind, with its format. Objects that were read without a type are decoded.
func (i *Inspector) typed(ctx context.Context, parent client.Object) (history.Format, client.Object, error) {
	gvk, err := i.client.GroupVersionKindFor(parent)
	if err != nil {
		return history.Format{}, nil, fmt.Errorf("tell the kind of %T %s/%s: %w", parent, parent.GetNamespace(), parent.GetName(), err)
	}
	format, ok := history.FormatOf(gvk.GroupKind())
	if !ok {
		return history.Format{}, nil, i.unknown(gvk.GroupKind(), parent)
	}
	into := format.New()
	if reflect.TypeOf(into) == reflect.TypeOf(parent) {
		return format, parent, nil
	}
	if gvk != format.Parent {
		// Another version has other fields; the API server is the one who converts.
		read, err := i.Get(ctx, gvk.GroupKind(), parent.GetNamespace(), parent.GetName())
		return format, read, err
	}
	b, err := json.Marshal(parent)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return history.Format{}, nil, fmt.Errorf("read %s %s/%s as its type: %w", gvk.Kind, parent.GetNamespace(), parent.GetName(), err)
	}
	return format, into, nil
}
