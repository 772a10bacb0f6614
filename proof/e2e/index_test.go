package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/ownership"
)

// TestTheIndexIsControllerRuntimes: what a pass reads without copies comes from an index that controller-runtime keeps,
// under names and keys of its own. If another release has others, passes would list again, and this says so.
func TestTheIndexIsControllerRuntimes(t *testing.T) {
	c := newEnv(t)
	mgr, err := ctrl.NewManager(c.sandbox.Config(), ctrl.Options{Scheme: clientgoscheme.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	maps := schema.GroupResource{Resource: "configmaps"}
	store, err := ownership.NewConsistencyStoreFor(t.Context(), mgr, map[schema.GroupResource]client.Object{maps: &corev1.ConfigMap{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = mgr.GetCache().Start(t.Context()) }()
	mgr.GetCache().WaitForCacheSync(t.Context())
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "owner"}}
	must(t, mgr.GetClient().Create(t.Context(), owner))
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: "owned",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}}
	must(t, mgr.GetClient().Create(t.Context(), owned))
	c.eventually("wait until the index shows the child", func() error {
		found := 0
		ok, err := store.Candidates(maps, c.namespace, ownership.OwnerOf(owner, schema.GroupKind{Kind: "ConfigMap"}), labels.Nothing(), func(client.Object) error { found++; return nil })
		if !ok {
			t.Fatal("the index is not known")
		}
		if err == nil && found != 1 {
			err = errorf("%d objects", found)
		}
		return err
	})
}
