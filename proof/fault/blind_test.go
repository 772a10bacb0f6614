package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file checks how long caches lag behind a write, and behind a restart.

func TestAnUnseenWriteIsShownOnceItIsRepeated(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.Unseen}}, HoldFor: time.Hour})
	c := s.client(t, in, runtime.ContentTypeJSON)
	w, server := startWatch(t, s, c)
	create := func(name string) error {
		_, err := c.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap(name), metav1.CreateOptions{})
		return err
	}
	if err := create("a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("the response was lost, and the error is %v", err)
	}
	server.send(t, watch.Added, "a")
	held(t, in, 1)
	if err := create("b"); err != nil { // another name is no repetition
		t.Fatal(err)
	}
	held(t, in, 1)
	must(t, create("a"))
	expect(t, w, watch.Added, "a")
	if got := len(s.requests()); got != 4 { // the watch is one of them
		t.Errorf("%d requests arrived, want 4", got)
	}
}

func TestAnUnseenWriteIsShownAfterAWhile(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.Unseen}}, HoldFor: time.Millisecond})
	c := s.client(t, in, runtime.ContentTypeJSON)
	w, server := startWatch(t, s, c)
	_, _ = c.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	server.send(t, watch.Added, "a")
	expect(t, w, watch.Added, "a")
}

func TestAFaultThatIsInjectedCountsFromThenOn(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{})
	c := s.client(t, in, runtime.ContentTypeJSON).CoreV1().ConfigMaps("ns")
	create := func() bool {
		_, err := c.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
		return apierrors.IsConflict(err)
	}
	create()
	in.Inject(fault.Fault{At: 2, Times: 2, Mode: fault.Conflict, Resource: configMaps, Verb: "create"})
	got := []bool{create()}
	if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil { // not its business
		t.Error(err)
	}
	got = append(got, create(), create(), create())
	if want := []bool{false, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("the creates after it failed %v, want %v", got, want)
	}
}

func TestARestartInThePastEndsWithTheFirstWrite(t *testing.T) {
	s := sandboxtest.Get(t)
	ns := sandboxtest.Namespace(t, s)
	cfg := rest.CopyConfig(s.Config())
	cfg.Wrap(fault.Within(ns, "configmaps"))
	user := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps(ns)
	eventually(t, "wait for kube-root-ca.crt", func() bool { // every namespace gets one at some moment
		_, err := user.Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil
	})

	in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.KillStale}}, HoldFor: time.Hour})
	first := in.Start(t.Context())
	create := func(p *fault.Process, name string) error {
		_, err := kubernetes.NewForConfigOrDie(p.Config(cfg)).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	if err := create(first, "a"); !errors.Is(err, fault.ErrDead) || !first.Killed() {
		t.Fatalf("the process was to be killed, and the error is %v", err)
	}
	if _, err := user.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatalf("what the dying process has written: %v", err)
	}

	second := in.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(second.Config(cfg)), 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	eventually(t, "wait for what is kept from the cache", func() bool { return in.Held(configMaps) > 0 })
	if got, want := cached(informer.GetStore()), fmt.Sprintf("[%s/kube-root-ca.crt]", ns); got != want {
		t.Errorf("the second life begins with %s, want %s", got, want)
	}
	must(t, create(second, "b"))
	want := fmt.Sprintf("[%[1]s/a %[1]s/b %[1]s/kube-root-ca.crt]", ns)
	eventually(t, "wait for the present", func() bool { return cached(informer.GetStore()) == want })
}
