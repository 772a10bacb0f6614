package inspect

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// web returns a DaemonSet with one container of that image.
func web(image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 3, ResourceVersion: "100"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: image}}},
			},
		},
	}
}

// stored returns the revision object with the template of ds.
func stored(t *testing.T, ds *appsv1.DaemonSet, number int64, hash string) *appsv1.ControllerRevision {
	t.Helper()
	s, err := history.DaemonSet().Target().Snapshot(ds)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         ds.Namespace,
			Name:              ds.Name + "-" + hash,
			UID:               types.UID("uid-" + hash),
			ResourceVersion:   "7",
			CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)),
			Labels:            map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Revision: number,
		Data:     runtime.RawExtension{Raw: s.Data()},
	}
}

// broken returns a revision object that nobody can read.
func broken(t *testing.T, ds *appsv1.DaemonSet, number int64, hash string) *appsv1.ControllerRevision {
	t.Helper()
	r := stored(t, ds, number, hash)
	r.Data.Raw = []byte(`{"spec":{}}`)
	return r
}

// pod returns a pod of ds that was made from the revision with that hash.
func pod(ds *appsv1.DaemonSet, name, hash string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:       ds.Namespace,
		Name:            name,
		Labels:          map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
	}}
}

// server returns a client of an API server with those objects.
func server(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	if funcs.Patch == nil {
		funcs.Patch = patch
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs)
	return fakeserver.EventsByObject(b).Build()
}

// patch answers a dry run with what would be, as an API server does; the fake client answers with nothing at all.
func patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	var po client.PatchOptions
	if po.ApplyOptions(opts); len(po.DryRun) == 0 {
		return c.Patch(ctx, o, p, opts...)
	}
	live := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return err
	}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).Build().Patch(ctx, o, p)
}

// readingOf returns what would be read of ds with those revisions and pods.
func readingOf(t *testing.T, ds *appsv1.DaemonSet, pods []*corev1.Pod, objects ...*appsv1.ControllerRevision) *reading {
	t.Helper()
	all := []client.Object{ds}
	for _, o := range pods {
		all = append(all, o)
	}
	for _, o := range objects {
		all = append(all, o)
	}
	k := newBuiltin(server(interceptor.Funcs{}, all...), history.DaemonSet())
	k.ask = k.quiet // what the API server would say is no part of these tests
	r := &reading{identity: k.is(), kind: k, parent: ds}
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.counts, r.strays, r.childrenErr = k.count(t.Context(), ds, r.log)
	return r
}

func document(t *testing.T, spec corev1.PodSpec) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var yes = new(true)

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
