package fault_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file lets an informer lag behind the real API server: one can look into its cache.

// cached returns the names in an informer's store.
func cached(store interface{ ListKeys() []string }) string {
	keys := store.ListKeys()
	slices.Sort(keys)
	return fmt.Sprint(keys)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: waited in vain", what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // this is the wait for a condition
	}
}

func TestACacheBeginsInThePastAndListsAgain(t *testing.T) {
	s := sandboxtest.Get(t)
	ns := sandboxtest.Namespace(t, s)
	user := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps(ns)
	create := func(name string) *corev1.ConfigMap {
		t.Helper()
		made, err := user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	// Every namespace gets one of its own at some moment.
	eventually(t, "wait for kube-root-ca.crt", func() bool {
		_, err := user.Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil
	})
	old := create("a")
	create("b")

	in := fault.New(t.Context(), fault.Plan{})
	in.Rewind(configMaps, old.ResourceVersion)
	release := in.Hold(configMaps)
	cfg := rest.CopyConfig(s.Config())
	cfg.Wrap(fault.Within(ns, "configmaps"))
	cfg.Wrap(in.Wrap)
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cfg), 0) // all namespaces, it believes
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())

	var (
		past    = fmt.Sprintf("[%[1]s/a %[1]s/kube-root-ca.crt]", ns)
		present = fmt.Sprintf("[%[1]s/a %[1]s/b %[1]s/kube-root-ca.crt]", ns)
		later   = fmt.Sprintf("[%[1]s/a %[1]s/b %[1]s/c %[1]s/kube-root-ca.crt]", ns)
	)
	eventually(t, "wait for what is kept from the cache", func() bool { return in.Held(configMaps) > 0 })
	if got := cached(informer.GetStore()); got != past {
		t.Errorf("the cache begins with %s, want %s", got, past)
	}
	release()
	eventually(t, "wait for the present", func() bool { return cached(informer.GetStore()) == present })

	release = in.Hold(configMaps)
	create("c")
	eventually(t, "wait for what is kept from the cache", func() bool { return in.Held(configMaps) > 0 })
	if n, err := in.Cut(configMaps); n != 1 || err != nil {
		t.Fatalf("cut %d watches: %v", n, err)
	}
	release()
	eventually(t, "wait for a new list", func() bool { return cached(informer.GetStore()) == later })
}
