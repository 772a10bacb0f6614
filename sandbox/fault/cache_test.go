package fault_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox/fault"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file lets caches lag behind the real API server: an informer's, which one can look into, and the manager's.

// cached returns the names in an informer's store.
func cached(store interface{ ListKeys() []string }) string {
	keys := store.ListKeys()
	slices.Sort(keys)
	return fmt.Sprint(keys)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
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

func TestDaemonSetBehindCachesThatLag(t *testing.T) {
	s := sandboxtest.Get(t)
	for _, resource := range []schema.GroupResource{revisionResource, {Resource: "pods"}, {Group: "apps", Resource: "daemonsets"}} {
		for _, cut := range []bool{false, true} {
			scenario := editAndUndo()
			scenario.Name = fmt.Sprintf("%s held, then cut %v", resource, cut)
			drive := scenario.Drive
			scenario.Drive = func(ctx context.Context, e *fault.Env) error {
				if err := drive(ctx, e); err != nil {
					return err
				}
				// The undo has to be over: an edit that takes it back before the controller saw it would change nothing,
				// and there would be no event to hold.
				if err := rolledOut(ctx, e, "app:1"); err != nil {
					return err
				}
				release := e.Faults.Hold(resource)
				defer release()
				if err := patch(ctx, e, imagePatch("app:2")); err != nil {
					return err
				}
				if err := e.Until(ctx, "an event that is held", func(context.Context) error {
					if e.Faults.Held(resource) == 0 {
						return fmt.Errorf("no event of %s", resource)
					}
					return nil
				}); err != nil {
					return err
				}
				if cut {
					if n, err := e.Faults.Cut(resource); n == 0 || err != nil {
						return fmt.Errorf("cut %d watches: %w", n, err)
					}
				}
				release()
				// How often the revisions are renumbered depends on how many of these edits the controller gets to see.
				return patch(ctx, e, imagePatch("app:1"))
			}
			sweep := sweepOf(t, s)
			sweep.Modes, sweep.Refusals = []fault.Mode{}, nil
			sweep.Observe = observe("")
			if _, err := sweep.Run(t.Context(), scenario); err != nil {
				t.Error(err)
			}
		}
	}
}
