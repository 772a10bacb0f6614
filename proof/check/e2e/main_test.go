// Package e2e records real controllers on the real API server and lets package check judge them.
package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/check/lab"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file holds what the tests share: a DaemonSet, who runs it, and who watches.

const (
	nodes = 5
	user  = "system:serviceaccount:" + deploy.Namespace + ":" + deploy.ServiceAccount
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(sandboxtest.Main(m, sandbox.Options{Nodes: nodes, Replaced: []string{sandbox.DaemonSet}}))
}

// daemons is one recorded namespace with a DaemonSet, and a configuration under the roles that are shipped.
type daemons struct {
	*lab.Lab

	cfg *rest.Config
}

func newLab(t *testing.T) *daemons {
	t.Helper()
	l := &daemons{Lab: lab.New(t, user, parents.DaemonSet().Scopes())}
	var err error
	if l.cfg, err = install.Roles(t.Context(), l.Sandbox.Config(), []string{"daemonset"}, true); err != nil {
		t.Fatal(err)
	}
	l.cfg.QPS = -1
	l.cfg.Wrap(l.Wire.Wrap)
	return l
}

// manage runs cairn's manager until the returned function is called or the test ends.
func (l *daemons) manage() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(ctx, manager.Options{
			Config: l.cfg, Logger: klog.Background(), Controllers: []string{"daemonset"}, AskServer: true,
			MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off,
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.Errorf("the manager ended with: %v", err)
		}
	})
	l.Cleanup(stop)
	return stop
}

func (l *daemons) create(name, image string) {
	l.Helper()
	labels := map[string]string{"app": name}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
	if _, err := l.User.AppsV1().DaemonSets(l.Namespace).Create(l.Context(), ds, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

func (l *daemons) rolledOut(name string) {
	l.Helper()
	l.Eventually("wait for the rollout", func(ctx context.Context) error {
		ds, err := l.User.AppsV1().DaemonSets(l.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := ds.Status
		if s.ObservedGeneration != ds.Generation || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
			return fmt.Errorf("generation %d, status %+v", ds.Generation, s)
		}
		return nil
	})
}
