// Program fleet is a controller of one's own: Fleets, whose pods are rolled and whose Service is applied. What is not
// here, the library does: docs/library.md.
package main

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/inspect"

	v1 "example.com/fleet/api/v1"
)

func children(fleet *v1.Fleet) ([]client.Object, error) {
	app := map[string]string{"fleet": fleet.Name}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Port: fleet.Spec.Port}}}}
	service.Name = fleet.Name
	out := []client.Object{service}
	for i := range fleet.Spec.Replicas {
		pod := &corev1.Pod{ObjectMeta: fleet.Spec.Template.ObjectMeta, Spec: fleet.Spec.Template.Spec}
		pod.Name, pod.Labels = fmt.Sprintf("%s-%d", fleet.Name, i), app
		out = append(out, pod)
	}
	return out, nil
}

func status(fleet *v1.Fleet, s builder.Summary) {
	fleet.Status.ObservedGeneration = s.ObservedGeneration
	fleet.Status.Replicas, fleet.Status.ReadyReplicas, fleet.Status.UpdatedReplicas = s.Current, s.Ready, s.Updated
	s.SetConditions(&fleet.Status.Conditions)
}

func run() error {
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return err
	}
	// No metrics: by default they take port 8080, which something else may have.
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	err = builder.Controller[*v1.Fleet]{
		Parent:   &v1.Fleet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil), builder.Applied(&corev1.Service{})},
		Children: children,
		Strategy: func(f *v1.Fleet) builder.Strategy {
			return builder.Strategy{MaxUnavailable: int(f.Spec.MaxUnavailable)}
		},
		Status:   status,
		RollBack: inspect.RollBack,
	}.Setup(ctx, mgr)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
