package ownership_test

// The scene of all tests: DaemonSets as parents, pods as children, and an API server that counts what is asked of it
// and watches over the one promise that no test may see broken, that an object has at most one controller.

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/ownership"
)

var (
	daemonSet = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	appX      = labels.SelectorFromSet(labels.Set{"app": "x"})
)

type option func(metav1.Object)

// parent is a DaemonSet in namespace "ns" whose UID is "uid-" and its name.
func parent(name string, options ...option) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7"}}
	for _, o := range options {
		o(ds)
	}
	return ds
}

// child is a pod in namespace "ns" with the label app=x, whose UID is "uid-" and its name.
func child(name string, options ...option) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Labels: map[string]string{"app": "x"},
	}}
	for _, o := range options {
		o(pod)
	}
	return pod
}

func labelled(app string) option {
	return func(o metav1.Object) { o.SetLabels(map[string]string{"app": app}) }
}

func version(rv string) option { return func(o metav1.Object) { o.SetResourceVersion(rv) } }

func withUID(uid types.UID) option { return func(o metav1.Object) { o.SetUID(uid) } }

func inNamespace(ns string) option { return func(o metav1.Object) { o.SetNamespace(ns) } }

// deleting objects are kept by a finalizer, or a server would not have them any more.
func deleting(o metav1.Object) {
	o.SetDeletionTimestamp(&metav1.Time{Time: metav1.Unix(1, 0).Time})
	o.SetFinalizers([]string{"test/keep"})
}

func ownerOf(parent client.Object) ownership.Owner {
	return ownership.OwnerOf(parent, daemonSet.GroupKind())
}

func ownedBy(ds *appsv1.DaemonSet) option {
	return func(o metav1.Object) {
		o.SetOwnerReferences(append(o.GetOwnerReferences(), *metav1.NewControllerRef(ds, daemonSet)))
	}
}

// forged has a ControllerRef with the UID of a parent, and a group that is not its own.
func forged(ds *appsv1.DaemonSet) option {
	return controlledBy(schema.GroupVersionKind{Group: "other.dev", Version: "v1", Kind: "DaemonSet"}, ds.Name, ds.UID)
}

var daemonSetOfExtensions = schema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "DaemonSet"}

var daemonSetV1beta2 = schema.GroupVersionKind{Group: "apps", Version: "v1beta2", Kind: "DaemonSet"}

// alsoOwnedBy adds an owner that is no controller.
func alsoOwnedBy(name string) option {
	return func(o metav1.Object) {
		o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID("uid-" + name),
		}))
	}
}

func controlledBy(kind schema.GroupVersionKind, name string, uid types.UID) option {
	return func(o metav1.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: name, UID: uid}, kind)})
	}
}

// server is an API server. hook, if set, is asked before each patch.
type server struct {
	client.WithWatch

	t                    *testing.T
	reads, lists, writes atomic.Int32
	readErr              error
	hook                 func(o client.Object, body string) error
	// delete, if set, is asked before each delete.
	delete func(client.DeleteOptions) error
}

func serve(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	s := &server{t: t}
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, ownership.ControllerIndex, ownership.IndexController).Build()
	s.WithWatch = interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.reads.Add(1)
			if s.readErr != nil {
				return s.readErr
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.lists.Add(1)
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, o, opts...)
			if err == nil {
				o.SetResourceVersion("8") // the fake counts from 1, where a real one never is
			}
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if s.delete != nil {
				if err := s.delete(*(&client.DeleteOptions{}).ApplyOptions(opts)); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			s.writes.Add(1)
			body, err := patch.Data(o)
			if err != nil {
				return err
			}
			if s.hook != nil {
				if err := s.hook(o, string(body)); err != nil {
					return err
				}
			}
			if err := c.Patch(ctx, o, patch, opts...); err != nil {
				return err
			}
			controllers := 0
			for _, ref := range o.GetOwnerReferences() {
				if ref.Controller != nil && *ref.Controller {
					controllers++
				}
			}
			if controllers > 1 {
				t.Errorf("O1: %s has %d controllers: %v", o.GetName(), controllers, o.GetOwnerReferences())
			}
			return nil
		},
	})
	return s
}

// cached returns pods as a cache would have them now, and does not count as a read.
func (s *server) cached(names ...string) []*corev1.Pod {
	s.t.Helper()
	var out []*corev1.Pod
	for _, name := range names {
		out = append(out, s.pod(name))
	}
	return out
}

func (s *server) pod(name string) *corev1.Pod {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.List(s.t.Context(), &pods); err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		s.t.Fatalf("there is no pod %s", name)
	}
	return &pods.Items[i]
}

// owners returns the owners of a pod, the controller with a star.
func (s *server) owners(name string) []string {
	s.t.Helper()
	var out []string
	for _, ref := range s.pod(name).OwnerReferences {
		owner := ref.Name
		if ref.Controller != nil && *ref.Controller {
			owner += "*"
		}
		out = append(out, owner)
	}
	return out
}

// claimer claims what has app=x.
func (s *server) claimer(ds *appsv1.DaemonSet) *ownership.Claimer {
	return &ownership.Claimer{Parent: ds, Kind: daemonSet, Selector: appX, Writer: s, Live: s}
}

func podNames(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// want compares a list of names.
func want(t *testing.T, what string, got []string, expected ...string) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Errorf("%s: got %q, want %q", what, got, expected)
	}
}
