// Package e2e records real controllers on the real API server and lets package check judge them.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/check"
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

// lab is one recorded namespace.
type lab struct {
	*testing.T

	namespace string
	user      *kubernetes.Clientset
	recorder  *check.Recorder
	// wire logs what the manager, and whoever poses as it, writes.
	wire *check.Wire
	cfg  *rest.Config
}

func newLab(t *testing.T) *lab {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg := s.Config()
	cfg.QPS = -1
	l := &lab{T: t, namespace: sandboxtest.Namespace(t, s), wire: &check.Wire{User: user}}
	clean, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if l.user, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if l.recorder, err = check.Record(context.WithoutCancel(t.Context()), clean, []string{l.namespace}, check.DaemonSetResources()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.recorder.Stop)
	if l.cfg, err = install.Roles(t.Context(), s.Config(), []string{"daemonset"}, true); err != nil {
		t.Fatal(err)
	}
	l.cfg.QPS = -1
	l.cfg.Wrap(l.wire.Wrap)
	return l
}

// manage runs cairn's manager until the returned function is called or the test ends.
func (l *lab) manage() (stop func()) {
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

func (l *lab) create(name, image string) {
	l.Helper()
	labels := map[string]string{"app": name}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
	if _, err := l.user.AppsV1().DaemonSets(l.namespace).Create(l.Context(), ds, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// image edits the image and waits until the rollout is over.
func (l *lab) image(name, image string) {
	l.Helper()
	l.eventually(func() error {
		ds, err := l.user.AppsV1().DaemonSets(l.namespace).Get(l.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ds.Spec.Template.Spec.Containers[0].Image = image
		_, err = l.user.AppsV1().DaemonSets(l.namespace).Update(l.Context(), ds, metav1.UpdateOptions{})
		return err
	})
	l.rolledOut(name)
}

func (l *lab) rolledOut(name string) {
	l.Helper()
	l.eventually(func() error {
		ds, err := l.user.AppsV1().DaemonSets(l.namespace).Get(l.Context(), name, metav1.GetOptions{})
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

func (l *lab) eventually(f func() error) {
	l.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // this is the wait for a condition
	}
}

// sync returns the moment up to which the history is complete now.
func (l *lab) sync() uint64 {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 30*time.Second)
	defer cancel()
	rv, err := l.recorder.Sync(ctx)
	if err != nil {
		l.Fatal(err)
	}
	return rv
}

// history is what happened so far, and who did it.
func (l *lab) history() *check.History {
	l.Helper()
	h, err := l.recorder.History()
	if err != nil {
		l.Fatal(err)
	}
	lost := h.Attach(l.wire.Entries(), func(e *check.Entry) bool { return e.User == user })
	for _, e := range lost {
		// The rest is events, the lease, and what changed nothing.
		if (e.Resource == "pods" || e.Resource == "controllerrevisions") && e.RV > h.Origin && e.RV <= h.Complete && e.Namespace == l.namespace {
			l.Errorf("no event belongs to %+v", e)
		}
	}
	return h
}

func (l *lab) silent(violations []check.Violation) {
	l.Helper()
	for _, v := range violations {
		l.Error(v)
	}
}

func invariants(violations []check.Violation) string {
	seen := map[string]bool{}
	var out []string
	for _, v := range violations {
		if !seen[v.Invariant] {
			out = append(out, v.Invariant)
		}
		seen[v.Invariant] = true
	}
	return strings.Join(out, " ")
}
