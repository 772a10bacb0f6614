package inspecttest

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds what tests of composite parents share.

// Pets is the API of the kinds that CompositeControllers run.
var Pets = schema.GroupVersion{Group: "pets.example.com", Version: "v1"}

// PetServer returns a client of an API server that knows CatSets, and Metacontroller's types.
func PetServer(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{Pets, corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion})
	mapper.Add(Pets.WithKind("CatSet"), meta.RESTScopeNamespace)
	mapper.Add(Pets.WithKind("Zoo"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs)
	return fakeserver.EventsByObject(b).Build()
}

// CatSet returns a CatSet whose template has that text.
func CatSet(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Pets.String(), "kind": "CatSet",
		"metadata": map[string]any{"namespace": "shop", "name": "nap", "uid": "nap-uid", "generation": int64(3), "resourceVersion": "100"},
		"spec": map[string]any{
			"replicas": int64(2),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "nap"}},
			"template": map[string]any{"text": text},
		},
	}}
}

// ControllerOf returns a CompositeController whose parents are of that resource, and which versions these paths.
func ControllerOf(name string, resource schema.GroupVersionResource, paths ...string) *v1alpha1.CompositeController {
	return &v1alpha1.CompositeController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CompositeControllerSpec{
			ParentResource: v1alpha1.ParentResource{
				ResourceRule:    v1alpha1.ResourceRule{APIVersion: resource.GroupVersion().String(), Resource: resource.Resource},
				RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: paths},
			},
			ChildResources: []v1alpha1.ChildResource{{
				ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"},
				UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateRollingRecreate},
			}},
		},
	}
}

// CatSets returns the CompositeController of CatSets.
func CatSets() *v1alpha1.CompositeController {
	return ControllerOf("catset", Pets.WithResource("catsets"), "spec.template")
}

// Taken returns the revision that a controller makes of parent.
func Taken(
	t *testing.T, cc *v1alpha1.CompositeController, parent *unstructured.Unstructured, number int64, pods ...string,
) *v1alpha1.ControllerRevision {
	t.Helper()
	f, err := metacontroller.NewFormat(&cc.Spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Object(parent, s, nil, number, revision.Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	out := o.(*v1alpha1.ControllerRevision)
	out.UID = types.UID("uid-of-" + out.Name)
	out.Annotations = nil // a stamp says that it was taken from the parent as it is
	if len(pods) > 0 {
		out.Children = []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: pods}}
	}
	return out
}

// Refusing answers whoever lists CompositeControllers with an error, unless that is nil.
func Refusing(err error) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.CompositeControllerList); ok && err != nil {
			return err
		}
		return c.List(ctx, list, opts...)
	}}
}
