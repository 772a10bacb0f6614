package fakeserver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/ownership"
)

// This file makes servers of kinds that are known at runtime only, for hosted controllers.

// Kinds is what a server serves. Its zero value serves the built-in kinds, none of them with a subresource or an index.
type Kinds struct {
	// AddToScheme adds types beside the built-in ones. Other kinds are served as unstructured objects.
	AddToScheme func(*runtime.Scheme) error
	// Status are empty objects of the kinds that have a status subresource.
	Status []client.Object
	// Indexed are empty objects of the kinds that [ownership.ControllerIndex] is on.
	Indexed []client.Object
	// More, if set, completes the client that serves: another index.
	More func(*fake.ClientBuilder) *fake.ClientBuilder
}

// builtin is what [New] serves.
var builtin = Kinds{
	Status:  []client.Object{&appsv1.DaemonSet{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}, &corev1.ReplicationController{}},
	Indexed: []client.Object{&appsv1.ControllerRevision{}, &appsv1.ReplicaSet{}, &corev1.Pod{}},
}

// NewWith returns a server of kinds that holds objects, as they are.
func NewWith(t testing.TB, kinds Kinds, objects ...client.Object) *Server {
	t.Helper()
	scheme := runtime.NewScheme() // the fake client adds to it, so that it cannot be one that others use
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if kinds.AddToScheme != nil {
		if err := kinds.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range append(append([]client.Object{}, kinds.Indexed...), objects...) {
		addUnknown(scheme, o)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(kinds.Status...).WithObjects(objects...)
	for _, o := range kinds.Indexed {
		builder = builder.WithIndex(o, ownership.ControllerIndex, ownership.IndexController)
	}
	if kinds.More != nil {
		builder = kinds.More(builder)
	}
	return serve(t, builder.Build())
}

// addUnknown adds the kind of an unstructured object, and its list, to a scheme that does not have it. The fake client
// does that only when it gets a request for the kind, which is too late for objects that exist from the beginning.
func addUnknown(scheme *runtime.Scheme, o client.Object) {
	kind := o.GetObjectKind().GroupVersionKind()
	if _, ok := o.(*unstructured.Unstructured); !ok || scheme.Recognizes(kind) {
		return
	}
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
}

// Of returns an empty unstructured object of a kind.
func Of(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o
}
