// Program site is an ordinary controller, before/main.go, that has gained a history in ten lines: docs/library.md.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cairn-dev/cairn/builder"
)

// sites makes a Deployment of each ConfigMap with the label example.com/site.
type sites struct {
	client.Client
	history *builder.History[*corev1.ConfigMap]
}

// Reconcile brings the Deployment of one site in line with it.
func (s *sites) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &corev1.ConfigMap{}
	if err := s.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, ok := site.Labels["example.com/site"]; !ok {
		return ctrl.Result{}, nil
	}
	recorded, err := s.history.Record(ctx, site)
	if err != nil {
		return ctrl.Result{}, err
	}

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	mutate := func() error {
		app, pod := map[string]string{"site": site.Name}, &d.Spec.Template
		d.Spec.Selector, pod.Labels = &metav1.LabelSelector{MatchLabels: app}, app
		if len(pod.Spec.Containers) == 0 {
			pod.Spec.Containers = []corev1.Container{{Name: "site"}}
		}
		pod.Spec.Containers[0].Image = site.Data["image"]
		return controllerutil.SetControllerReference(site, d, s.Scheme())
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, s.Client, d, mutate); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, recorded.Truncate(ctx, 10)
}

func run() error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	s := &sites{Client: mgr.GetClient()}
	if s.history, err = builder.Attach(ctx, mgr, &corev1.ConfigMap{}, "data"); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&appsv1.ControllerRevision{}).
		Complete(s)
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
