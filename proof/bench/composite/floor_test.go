package composite

// This file is the floor: a delete and a create for each pod, one pod at a time. No controller is better than this.

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// floor rolls the pods of a cluster's load, counted as the manager would be.
type floor struct {
	*cluster

	pods interface {
		Create(ctx context.Context, pod *corev1.Pod, o metav1.CreateOptions) (*corev1.Pod, error)
		Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	}
}

func newFloor(c *cluster) *floor {
	c.Helper()
	client, err := kubernetes.NewForConfig(c.Subject)
	if err != nil {
		c.Fatal(err)
	}
	return &floor{c, client.CoreV1().Pods(c.Namespace)}
}

// create makes all pods.
func (f *floor) create() {
	f.Helper()
	f.Image = 1
	for i := range f.load.pods() {
		f.make(i)
	}
}

// roll replaces each pod, once the one before it serves.
func (f *floor) roll() {
	f.Helper()
	f.Image++
	for i := range f.load.pods() {
		if err := f.pods.Delete(f.Context(), name(i), metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.make(i)
		f.Eventually("a pod to serve", func(context.Context) (bool, error) {
			these, _, _ := f.Serve(lab.ImageName(f.Image))
			return these == i+1, nil
		})
	}
}

func name(i int) string { return fmt.Sprintf("p-%d", i) }

func (f *floor) make(i int) {
	f.Helper()
	_, err := f.pods.Create(f.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name(i)},
		Spec: corev1.PodSpec{
			SchedulerName: lab.Scheduler, Containers: []corev1.Container{{Name: "main", Image: lab.ImageName(f.Image)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
}
