package lab

// This file is a load: parents with pods in a namespace of the sandbox. It knows when a load has become what was asked
// for and nobody does anything any more.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

const (
	// pollInterval is the pause between two looks. It does not blur what is measured: the kubelet keeps the times.
	pollInterval = 20 * time.Millisecond
	// patience is how long a load may take.
	patience = 10 * time.Minute
	// Calm is how long nothing has to happen until all is over. A status is held back for a second at most.
	Calm = 1500 * time.Millisecond
)

// Load is so many parents with so many children each.
type Load struct{ Parents, Children int }

// Pods is the number of all children.
func (l Load) Pods() int { return l.Parents * l.Children }

// String is the name of the load: 10x100.
func (l Load) String() string { return fmt.Sprintf("%dx%d", l.Parents, l.Children) }

// Kind is a kind of parents. Their pods are made from spec.template.
type Kind struct {
	Resource schema.GroupVersionResource
	// Parent returns a parent that has so many children, whose first image is [ImageName](1).
	Parent func(name string, children int) M
	// Updated reports whether a parent says that all its pods are as it wants them, of the generation that it has.
	Updated func(parent *unstructured.Unstructured) bool
}

// Cluster is a namespace of the sandbox with a load in it, or without. Make one with [NewCluster].
type Cluster struct {
	testing.TB
	*Kubelet

	Load      Load
	Namespace string
	// Subject is a configuration whose requests are counted, User one whose are not.
	Subject *rest.Config
	User    dynamic.Interface
	// Image is the number of the image that the parents have.
	Image int
	// Resyncs says that a hook is called at rest as well.
	Resyncs bool

	kind    Kind
	counted *Ledger
	running *Process // what is waited for ends with it
}

// NewCluster prepares a load: all but the parents and who looks after them. The parents' kind has to be installed.
func NewCluster(tb testing.TB, counted *Ledger, l Load, k Kind) *Cluster {
	tb.Helper()
	s := sandboxtest.Get(tb)
	c := &Cluster{TB: tb, Load: l, Namespace: sandboxtest.Namespace(tb, s), kind: k, counted: counted}
	var err error
	if c.Subject, err = s.ConfigFor(Subject, "system:masters"); err != nil {
		tb.Fatal(err)
	}
	if c.User, err = dynamic.NewForConfig(s.Config()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.clear)
	c.Kubelet = StartKubelet(tb, s.Config(), c.Namespace)
	c.Eventually("serve the parents' kind", func(ctx context.Context) (bool, error) {
		_, err := c.Parents().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
	return c
}

// clear deletes all pods: a thousand of them take longer than the end of a namespace does otherwise.
func (c *Cluster) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Minute)
	defer cancel()
	if err := c.pods().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.Error(err)
	}
}

// Parents is what the load's parents are read and written by.
func (c *Cluster) Parents() dynamic.ResourceInterface {
	return c.User.Resource(c.kind.Resource).Namespace(c.Namespace)
}

func (c *Cluster) pods() dynamic.ResourceInterface {
	return c.User.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(c.Namespace)
}

// Scheduler is nobody's name: a scheduler that says of each pod that it finds no node is one more write to each.
const Scheduler = "nobody"

// PodSpec is that of every pod.
func PodSpec(image int) M {
	return M{
		"schedulerName": Scheduler,
		"containers":    []any{M{"name": "main", "image": ImageName(image)}},
	}
}

// ImageName is the image of a number.
func ImageName(image int) string { return fmt.Sprintf("bench:%d", image) }

// Create makes the parents, with the first image.
func (c *Cluster) Create() {
	c.Helper()
	c.Image = 1
	c.each(func(ctx context.Context, name string) error {
		_, err := c.Parents().Create(ctx, &unstructured.Unstructured{Object: c.kind.Parent(name, c.Load.Children)}, metav1.CreateOptions{})
		return err
	})
}

// Edit gives the next image to all parents.
func (c *Cluster) Edit() {
	c.Helper()
	c.EditTo(c.Image + 1)
}

// EditTo gives an image to all parents.
func (c *Cluster) EditTo(image int) {
	c.Helper()
	c.Image = image
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, ImageName(image))
	c.Patch(types.JSONPatchType, patch)
}

// Patch patches all parents, at once.
func (c *Cluster) Patch(kind types.PatchType, patch string) {
	c.Helper()
	c.each(func(ctx context.Context, name string) error {
		_, err := c.Parents().Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// Remove deletes the parents and waits until their pods are gone.
func (c *Cluster) Remove() {
	c.Helper()
	if err := c.Parents().DeleteCollection(c.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Eventually("the pods to go", func(context.Context) (bool, error) {
		these, others, _ := c.Serve("")
		return these+others == 0, nil
	})
}

// each does something for all parents at once.
func (c *Cluster) each(f func(ctx context.Context, name string) error) {
	c.Helper()
	errs := make([]error, c.Load.Parents)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(c.Context(), fmt.Sprintf("p%d", i)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.Fatal(err)
	}
}

// Served waits until every pod serves with the image that the parents have, and returns when that was so.
func (c *Cluster) Served() time.Time {
	c.Helper()
	var at time.Time
	c.Eventually("all pods to serve", func(context.Context) (bool, error) {
		these, others, last := c.Serve(ImageName(c.Image))
		at = last
		return these == c.Load.Pods() && others == 0, nil
	})
	return at
}

// Settled waits until the parents say that they are updated, and all is at rest.
func (c *Cluster) Settled() {
	c.Helper()
	c.Eventually("the parents to be updated", func(ctx context.Context) (bool, error) {
		list, err := c.Parents().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, o := range list.Items {
			if !c.kind.Updated(&o) {
				return false, nil
			}
		}
		return len(list.Items) == c.Load.Parents, nil
	})
	c.Rested()
}

// Rested waits until nothing is counted any more but calls of the hook by a resync.
func (c *Cluster) Rested() {
	c.Helper()
	c.Eventually("rest", func(context.Context) (bool, error) { return c.counted.Quiet(Calm, c.Resyncs), nil })
}

// Condition returns the status of a condition, nothing if there is none of that type.
func Condition(o *unstructured.Unstructured, kind string) any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range conditions {
		if found, ok := item.(M); ok && found["type"] == kind {
			return found["status"]
		}
	}
	return ""
}

// ObservedUpdated reports whether a parent's condition Updated is True, of the generation that it has.
func ObservedUpdated(o *unstructured.Unstructured) bool {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation == o.GetGeneration() && Condition(o, "Updated") == "True"
}

// Eventually waits for a condition, patiently.
func (c *Cluster) Eventually(what string, f wait.ConditionWithContextFunc) {
	c.Helper()
	checked := func(ctx context.Context) (bool, error) {
		if c.running != nil {
			c.running.Runs()
		}
		return f(ctx)
	}
	if err := wait.PollUntilContextTimeout(c.Context(), pollInterval, patience, true, checked); err != nil {
		c.Fatalf("wait for %s: %v", what, errors.Join(err, c.state()))
	}
}

// state says what there is, for a failure.
func (c *Cluster) state() error {
	these, others, _ := c.Serve(ImageName(c.Image))
	lines := []string{fmt.Sprintf("%d pods serve with %s, %d others do; so far: %s", these, ImageName(c.Image), others, c.counted.Read())}
	list, err := c.Parents().List(context.WithoutCancel(c.Context()), metav1.ListOptions{Limit: 3})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, o := range list.Items {
		lines = append(lines, fmt.Sprintf("%s: generation %d, status %v", o.GetName(), o.GetGeneration(), o.Object["status"]))
	}
	return errors.New(strings.Join(lines, "\n"))
}
