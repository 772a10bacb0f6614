package pass_test

// The API server of the example of a whole controller.

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/ownership"
)

// library is an API server that knows Shelves, and gives what is created a UID.
func library(objects ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme) // the client would not work without
	scheme.AddKnownTypeWithName(shelfKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(shelfKind.GroupVersion().WithKind("ShelfList"), &unstructured.UnstructuredList{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.ConfigMap{}, ownership.ControllerIndex, ownership.IndexController).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				o.SetUID(types.UID("uid-" + o.GetName()))
				return c.Create(ctx, o, opts...)
			},
		}).Build()
}

// book is a ConfigMap on the shelf novels by its labels, and by its reference, if it has one.
func book(name string, owner *metav1.OwnerReference) *corev1.ConfigMap {
	b := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "home", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"shelf": "novels"},
	}}
	if owner != nil {
		b.OwnerReferences = append(b.OwnerReferences, *owner)
	}
	return b
}
