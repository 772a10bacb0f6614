package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file writes the status of a parent, as the author has filled it. What it says is report.go's.

// writeStatus lets the author fill the status, and writes it if it differs.
func (r *reconciler[P]) writeStatus(ctx context.Context, p *pass.Pass, parent P, s Summary) (stored bool, err error) {
	if r.author.Status == nil {
		return true, nil
	}
	after := parent.DeepCopyObject().(P) //nolint:forcetypeassert // the copy of a P
	r.author.Status(after, s)
	reasons := []string{pass.RolloutProgressing, pass.RolloutWaiting}
	urgent := s.updated.Status != metav1.ConditionFalse || !slices.Contains(reasons, s.updated.Reason)
	if apiequality.Semantic.DeepEqual(parent, after) {
		return true, nil
	}
	before, err := asStored(parent, after)
	if err != nil {
		return false, err
	}
	return p.WriteStatus(ctx, before, after, urgent)
}

// asStored is a parent as the API server may have it, for a patch to after: without the zero values in the status that after has,
// too. A Go type has all its fields, and nothing says which of them were stored. Where they are required (`json:"replicas"`
// without omitempty, which controller-gen makes required), the first patch has to set all of them, the zero ones included, or it is
// refused until none is zero: for a parent that never works, for ever.
func asStored(parent, after client.Object) (client.Object, error) {
	if _, untyped := parent.(*unstructured.Unstructured); untyped {
		return parent.DeepCopyObject().(client.Object), nil //nolint:forcetypeassert // the copy of a client.Object
	}
	trees := make([]map[string]any, 2)
	for i, o := range []client.Object{parent, after} {
		raw, err := json.Marshal(o)
		if err == nil {
			err = utiljson.Unmarshal(raw, &trees[i])
		}
		if err != nil {
			return nil, fmt.Errorf("encode %T %s: %w", o, o.GetName(), err)
		}
	}
	before, _ := trees[0]["status"].(map[string]any)
	now, _ := trees[1]["status"].(map[string]any)
	dropZero(before, now)
	return &unstructured.Unstructured{Object: trees[0]}, nil
}

// dropZero removes the zero values from before that after has a value for. What after has not stays, or a patch would not remove it.
func dropZero(before, after map[string]any) {
	for key, was := range before {
		is, ok := after[key]
		object, nested := was.(map[string]any)
		switch {
		case !ok:
		case nested:
			next, _ := is.(map[string]any)
			dropZero(object, next)
		case was == nil, reflect.ValueOf(was).IsZero():
			delete(before, key)
		}
	}
}
