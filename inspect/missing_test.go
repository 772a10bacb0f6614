package inspect

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestMissing: a plan for a user warns of missing objects. A rollback by a controller does not ask for them.
func TestMissing(t *testing.T) {
	ds, was := inspecttest.Web("web:2"), inspecttest.Web("web:1")
	pod := &was.Spec.Template.Spec
	pod.ServiceAccountName = "gone"
	for _, name := range []string{"here", "gone", "hidden"} {
		pod.Containers[0].EnvFrom = append(pod.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		})
	}
	here := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Name: "here"}}
	asked := 0
	c := inspecttest.Server(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
				asked++
			}
			if key.Name == "hidden" {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, errors.New("no such right"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	}, ds, here, inspecttest.StoredOf(t, was, 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb"))
	plan, err := New(c).PlanUndo(t.Context(), ds, 0)
	if err != nil {
		t.Fatal(err)
	}
	inspecttest.ExpectWarnings(t, plan.Warnings,
		"Revision 1 (web-aaa) needs serviceaccount/gone, which does not exist: no pod of it can be created.",
		"Revision 1 (web-aaa) needs configmap/gone, which does not exist: pods of it do not start.",
		"Revision 1 (web-aaa) needs configmap/hidden: whether they exist could not be read.")
	if asked != 4 {
		t.Errorf("%d requests", asked)
	}
	if _, err := New(c).plan(t.Context(), ds, nil, nil); err != nil || asked != 4 {
		t.Errorf("%d requests, %v", asked, err)
	}
}
