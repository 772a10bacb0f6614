package fakeserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file answers dry runs, of which the fake client only takes note. Their verbs are [TryCreate] and [TryPatch], so
// that they do not count as writes.

// The verbs of dry runs.
const (
	TryCreate = "try create"
	TryPatch  = "try patch"
)

// tryCreate refuses a name that is taken, after all that [Server.Before] may refuse, like an API server.
func (s *Server) tryCreate(ctx context.Context, o client.Object) error {
	return s.Serve(Call{Verb: TryCreate, Kind: TypeOf(o), Name: o.GetName(), Object: o}, func() error {
		err := s.Raw.Get(ctx, client.ObjectKeyFromObject(o), anyobject.Blank(o))
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = apierrors.NewAlreadyExists(schema.GroupResource{Resource: TypeOf(o)}, o.GetName())
		}
		return err
	})
}

// tryPatch answers with what a JSON merge patch makes of an unstructured object.
func (s *Server) tryPatch(ctx context.Context, o client.Object, body []byte) error {
	u, ok := o.(runtime.Unstructured)
	if !ok {
		return fmt.Errorf("dry runs of patches are for unstructured objects only, not for %T", o)
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	if err := s.Raw.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	u.SetUnstructuredContent(merged(u.UnstructuredContent(), patch))
	return nil
}

// merged applies a JSON merge patch to a copy of o.
func merged(o, patch map[string]any) map[string]any {
	out := make(map[string]any, len(o))
	maps.Copy(out, o)
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		was, wasObject := out[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject && wasObject:
			out[key] = merged(was, inner)
		case isObject:
			out[key] = merged(nil, inner)
		default:
			out[key] = value
		}
	}
	return out
}

func dryRun(options []string) bool { return len(options) == 1 && options[0] == metav1.DryRunAll }
