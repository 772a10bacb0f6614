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

// A controller that its author has described wrongly is refused with all that is wrong with it, before anything is
// watched. What a right one looks like is in examples/fleet.
func ExampleController_Setup() {
	mgr, err := newManager()
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
	// field Owns[1]: Pod is listed twice
}

// newManager returns a manager. It would ask the API server what is served; there is none here.
func newManager() (ctrl.Manager, error) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	kinds.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	return ctrl.NewManager(&rest.Config{}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil },
	})
}

// copier is a reconciler that its author had before.
type copier struct {
	client.Client

	history *builder.History[*corev1.ConfigMap]
}

// Reconcile records what the ConfigMap holds before anything is made of it.
func (c *copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, source); err != nil || source.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	recorded, err := c.history.Record(ctx, source)
	if err != nil {
		return ctrl.Result{}, err // a stale read is retried, a TerminalError is not
	}
	// … copy source, as before; recorded.Label is for the labels of the copies …
	return ctrl.Result{}, recorded.Truncate(ctx, 10)
}

// A reconciler gets a history: its controller needs one line, and its Reconcile the calls of Record and Truncate. A
// mistake is refused before anything is watched. examples/journal is the whole program.
func ExampleAttach() {
	ctx := context.Background()
	mgr, err := newManager()
	if err != nil {
		fmt.Println(err)
		return
	}
	setUp := func(versions ...string) error {
		h, err := builder.Attach(ctx, mgr, &corev1.ConfigMap{}, versions...)
		if err != nil {
			return err
		}
		return ctrl.NewControllerManagedBy(mgr).
			For(&corev1.ConfigMap{}).
			Owns(&appsv1.ControllerRevision{}).
			Complete(&copier{Client: mgr.GetClient(), history: h})
	}
	fmt.Println(setUp("spec"))
	fmt.Println(setUp("data", "binaryData"))
	// Output:
	// attach a history to *v1.ConfigMap: versions: "spec": v1.ConfigMap has no field spec
	// <nil>
}
