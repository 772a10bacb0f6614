package calibrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/lab"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file holds what the tests share: a namespace, and the upstream controller of one kind that is started, killed
// and started again in it.

const nodes = 3

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(sandboxtest.Main(m, sandbox.Options{
		Nodes: nodes, Replaced: sandbox.Kinds(),
	}))
}

// namespaced are the resources that the controllers watch in all namespaces.
var namespaced = []string{"daemonsets", "statefulsets", "replicasets", "replicationcontrollers", "pods", "controllerrevisions", "persistentvolumeclaims"}

// room is one recorded namespace with the controllers of one kind.
type room struct {
	*lab.Lab

	controllers string
	kind        check.Kind
}

func newRoom(t *testing.T, controllers string, kind check.Kind) *room {
	t.Helper()
	return &room{Lab: lab.New(t, "upstream", kind.Scopes()), controllers: controllers, kind: kind}
}

// manager is an upstream controller behind the fault transport. Each start is a process with empty caches.
type manager struct {
	room   *room
	faults *fault.Injector
	halt   func()
}

// manager returns a controller that runs until the test ends.
func (r *room) manager() *manager {
	r.Helper()
	m := &manager{room: r, faults: fault.New(context.WithoutCancel(r.Context()), fault.Plan{})}
	m.start()
	r.Cleanup(func() { m.kill() })
	return m
}

func (m *manager) start() {
	m.room.Helper()
	cfg, err := m.room.Sandbox.UpstreamConfig(m.room.controllers)
	if err != nil {
		m.room.Fatal(err)
	}
	cfg.QPS = -1
	cfg.Wrap(m.room.Wire.Wrap)
	cfg.Wrap(fault.Within(m.room.Namespace, namespaced...))
	process := m.faults.Start(context.WithoutCancel(m.room.Context()))
	halt, err := m.room.Sandbox.RunUpstreamWith(process.Context(), m.room.controllers, process.Config(cfg))
	if err != nil {
		m.room.Fatal(err)
	}
	m.halt = sync.OnceFunc(halt)
}

// kill ends the controller at once, and waits until it is gone.
func (m *manager) kill() {
	m.faults.Kill()
	m.halt()
}

// ever is what the checker says of all that happened.
func (r *room) ever() []check.Violation {
	r.Helper()
	r.Sync()
	found := slices.DeleteFunc(check.Check(r.History(), r.kind), byName)
	for _, v := range found {
		r.Log(v)
	}
	return found
}

// atRest is what the checker says of the state that it has come to.
func (r *room) atRest() []check.Violation {
	r.Helper()
	at := r.Sync()
	found := check.Rest(r.History(), at, r.kind)
	for _, v := range found {
		r.Log(v)
	}
	return found
}

// byName reports whether a violation is the one that no delete by an upstream controller is without.
func byName(v check.Violation) bool { return v.Invariant == "P6" }

// finds fails the test unless a violation of that invariant is about that object.
func (r *room) finds(found []check.Violation, invariant, resource, name string) {
	r.Helper()
	r.findsEither(found, []string{invariant}, resource, name)
}

func (r *room) findsEither(found []check.Violation, invariants []string, resource, name string) {
	r.Helper()
	if !slices.ContainsFunc(found, func(v check.Violation) bool {
		return slices.Contains(invariants, v.Invariant) && v.Object.Resource.Resource == resource && v.Object.Name == name
	}) {
		r.Errorf("no violation of %v about %s %s was found", invariants, resource, name)
	}
}

// killPod deletes a pod as a user does, and waits until it is gone.
func (r *room) killPod(name string) {
	r.Helper()
	pods := r.User.CoreV1().Pods(r.Namespace)
	old, err := pods.Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if err := pods.Delete(r.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	r.Eventually("wait until the pod is gone", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.UID == old.UID {
			return errors.New(name + " is still there")
		}
		return nil
	})
}

// podRuns waits until a pod of that name is made and runs an image.
func (r *room) podRuns(name, image string) {
	r.Helper()
	r.Eventually("wait for the pod", func(ctx context.Context) error {
		pod, err := r.User.CoreV1().Pods(r.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Spec.Containers[0].Image != image {
			err = fmt.Errorf("%s runs %s", name, pod.Spec.Containers[0].Image)
		}
		return err
	})
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func imagePatch(image string) string {
	return `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}`
}
