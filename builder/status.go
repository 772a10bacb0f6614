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
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file writes the status of a parent, as the author has filled it. What it says is report.go's.
//
// A Go type writes "readyReplicas": 0 where nothing is stored yet, so that a difference of two of them leaves out what
// the CRD requires, and the API server refuses the status of each new parent. unsaid is the way out.

// writeStatus lets the author fill the status, and writes it if it differs.
func (r *reconciler[P]) writeStatus(ctx context.Context, p *pass.Pass, parent P, s Summary) (stored bool, err error) {
	if r.author.Status == nil {
		return true, nil
	}
	after := parent.DeepCopyObject().(P)
	r.author.Status(after, s)
	reasons := []string{pass.RolloutProgressing, pass.RolloutWaiting, pass.RolloutHeld}
	urgent := s.rollout.Updated.Status != metav1.ConditionFalse || !slices.Contains(reasons, s.rollout.Updated.Reason)
	if apiequality.Semantic.DeepEqual(parent, after) {
		return true, nil
	}
	return p.WriteStatus(ctx, beforeStatus(parent, after), after, urgent)
}

// unsaid is a parent as it is to be compared with after, the same parent with a new status: in JSON it lacks what is
// zero in the status of both. Nobody can tell from a Go type whether that is stored, so the patch says it. That is
// found out when a patch is made: most passes of a rollout hold their status back.
type unsaid struct {
	client.Object

	after client.Object
}

// beforeStatus returns what a new status is compared with. Unstructured parents have just what is stored.
func beforeStatus(parent, after client.Object) client.Object {
	if _, untyped := parent.(*unstructured.Unstructured); untyped {
		return parent
	}
	return unsaid{parent, after}
}

// DeepCopyObject implements [runtime.Object].
func (u unsaid) DeepCopyObject() runtime.Object {
	return unsaid{u.Object.DeepCopyObject().(client.Object), u.after}
}

// MarshalJSON implements [json.Marshaler].
func (u unsaid) MarshalJSON() ([]byte, error) {
	was, err := treeOf(u.Object)
	if err != nil {
		return nil, err
	}
	is, err := treeOf(u.after)
	if err != nil {
		return nil, err
	}
	dropZero(was["status"], is["status"])
	return json.Marshal(was)
}

// treeOf returns an object as the API server is sent it.
func treeOf(o client.Object) (map[string]any, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %T %s: %w", o, o.GetName(), err)
	}
	tree := map[string]any{}
	if err := utiljson.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("encode %T %s: %w", o, o.GetName(), err)
	}
	return tree, nil
}

// dropZero removes from one object what is zero in both. Null stays: a patch cannot store it.
func dropZero(from, beside any) {
	object, _ := from.(map[string]any)
	other, _ := beside.(map[string]any)
	for key, value := range object {
		same, both := other[key]
		switch value.(type) {
		case nil:
		case map[string]any:
			dropZero(value, same)
		case []any: // replaced as a whole
		default:
			if both && value == same && reflect.ValueOf(value).IsZero() {
				delete(object, key)
			}
		}
	}
}
