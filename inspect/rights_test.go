package inspect

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestAMissingRight: where a history may be and may not be listed, that is said, and not that there is none.
func TestAMissingRight(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid"}
	for hidden, web := range map[string]client.Object{
		"ControllerRevisionList": &appsv1.ReplicaSet{ObjectMeta: meta}, "ReplicaSetList": &appsv1.Deployment{ObjectMeta: meta},
	} {
		c := inspecttest.Server(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				gvk, err := c.GroupVersionKindFor(list)
				if err != nil {
					return err
				}
				if gvk.Kind == hidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(hidden)}, "", nil)
				}
				return c.List(ctx, list, opts...)
			},
		}, web)
		_, err := New(c).History(t.Context(), web)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a right is missing") || !strings.Contains(err.Error(), strings.ToLower(hidden)) {
			t.Errorf("%s: %v", hidden, err)
		}
	}
}
