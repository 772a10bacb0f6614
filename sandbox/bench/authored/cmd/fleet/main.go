// Program fleet is the author's half of the pair that is measured: the pods of a StatefulSet, made by a controller of package
// builder as docs/library.md makes one. It finds the cluster by KUBECONFIG, and serves profiles at CAIRN_BENCH_PPROF.
//
// What may not come in: what an author would not write to be faster, and any other package of sandbox/: it would be in the process
// that is measured.
//
// +groupName=bench.cairn.dev
// +versionName=v1
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/builder"
)

// children are the pods that a StatefulSet of the same name would have, the highest ordinal first, as that is rolled.
func children(fleet *Fleet) ([]client.Object, error) {
	out := make([]client.Object, 0, fleet.Spec.Replicas)
	for i := fleet.Spec.Replicas - 1; i >= 0; i-- {
		template := fleet.Spec.Template.DeepCopy()
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = fmt.Sprintf("%s-%d", fleet.Name, i)
		pod.Spec.Hostname = pod.Name
		pod.Labels = map[string]string{appsv1.StatefulSetPodNameLabel: pod.Name, appsv1.PodIndexLabel: strconv.Itoa(int(i))}
		maps.Copy(pod.Labels, template.Labels)
		out = append(out, pod)
	}
	return out, nil
}

func status(fleet *Fleet, s builder.Summary) {
	fleet.Status.ObservedGeneration, fleet.Status.UpdateRevision = s.ObservedGeneration, s.UpdateRevision
	fleet.Status.Replicas, fleet.Status.ReadyReplicas = s.Current, s.Ready
	fleet.Status.AvailableReplicas, fleet.Status.UpdatedReplicas = s.Available, s.Updated
	s.SetConditions(&fleet.Status.Conditions)
}

func run() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), addToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, PprofBindAddress: os.Getenv("CAIRN_BENCH_PPROF"),
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	err = builder.Controller[*Fleet]{
		Parent:   &Fleet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil)},
		Children: children,
		Labels:   func(fleet *Fleet) map[string]string { return fleet.Spec.Selector.MatchLabels },
		Status:   status,
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
