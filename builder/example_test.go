package builder_test

import (
	"context"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
)

// A controller that its author has described wrongly is refused with all that is wrong with it, before anything is watched. What a
// right one looks like is in examples/fleet.
func ExampleController_Setup() {
	kinds := meta.NewDefaultRESTMapper(nil) // a manager asks the API server; there is none here
	kinds.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = builder.Controller[*appsv1.ReplicaSet]{
		Parent:   &appsv1.ReplicaSet{},
		Versions: []string{"spec.templates"},
		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil), builder.Applied(&corev1.Pod{})},
		Children: func(*appsv1.ReplicaSet) ([]client.Object, error) { return nil, nil },
	}.Setup(context.Background(), mgr)
	fmt.Println(err)
	// Output:
	// set up the controller of *v1.ReplicaSet: field Versions: "spec.templates": v1.ReplicaSetSpec has no field templates
	// field Owns[1]: Pod stands there twice
}
