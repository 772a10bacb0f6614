package inspecttest

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// Web returns a DaemonSet with one container of that image.
func Web(image string) *appsv1.DaemonSet {
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

// StoredOf returns the revision object with the template of ds.
func StoredOf(t *testing.T, ds *appsv1.DaemonSet, number int64, hash string) *appsv1.ControllerRevision {
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

// Broken returns a revision object that nobody can read.
func Broken(t *testing.T, ds *appsv1.DaemonSet, number int64, hash string) *appsv1.ControllerRevision {
	t.Helper()
	r := StoredOf(t, ds, number, hash)
	r.Data.Raw = []byte(`{"spec":{}}`)
	return r
}

// Pod returns a pod of ds that was made from the revision with that hash.
func Pod(ds *appsv1.DaemonSet, name, hash string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:       ds.Namespace,
		Name:            name,
		Labels:          map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
	}}
}

// Server returns a client of an API server with those objects.
func Server(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	if funcs.Patch == nil {
		funcs.Patch = Patch
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs)
	return fakeserver.EventsByObject(b).Build()
}

// Patch answers a dry run with what would be, as an API server does; the fake client answers with nothing at all.
func Patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
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

// ExpectWarnings wants one warning for each text, in any order, that contains it.
func ExpectWarnings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d warnings, want %d: %q", len(got), len(want), got)
	}
	for _, text := range want {
		if !strings.Contains(strings.Join(got, "\n"), text) {
			t.Errorf("no warning says %q; there are %q", text, got)
		}
	}
}

// Listed are kinds that can be listed.
var Listed = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), corev1.SchemeGroupVersion.WithKind("Pod"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
}
