package fault_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file holds what tests share that are about all kinds at once and judge without package check: a namespace with
// one parent of each kind, who serves them, and how many requests that takes.

// managed are the resources that the managers of these tests see in their own namespace only.
var managed = []string{
	"daemonsets", "statefulsets", "replicasets", "catsets", "pods", "configmaps", "controllerrevisions", "persistentvolumeclaims",
}

// labs is what the labs of one test have in common.
type labs struct {
	sandbox *sandbox.Sandbox
	ours    *rest.Config // with the rights that are shipped
	hook    *reviewer
	// slots are for labs that run at once: what is bounded in time needs a machine that is not too busy.
	slots chan struct{}
}

// wait waits until it is the test's turn.
func (a *labs) wait(t *testing.T) {
	t.Helper()
	a.slots <- struct{}{}
	t.Cleanup(func() { <-a.slots })
}

func newLabs(t *testing.T) *labs {
	t.Helper()
	s := sandboxtest.Get(t)
	must(t, install.CRDs(t.Context(), s.Config()))
	cfg, err := install.Roles(t.Context(), s.Config(), manager.Names(), true)
	if err != nil {
		t.Fatal(err)
	}
	return &labs{sandbox: s, ours: cfg, hook: startReviewer(t), slots: make(chan struct{}, 6)}
}

// withCats runs the controllers of CatSets and their hook until the test ends: one test at a time.
func (a *labs) withCats(t *testing.T) *labs {
	t.Helper()
	h := &hooks{}
	h.start(t, kubernetes.NewForConfigOrDie(a.sandbox.Config()))
	must(t, applyCats(t.Context(), a.sandbox.Config(), h.URL))
	canOwn(t, a.ours)
	return a
}

// lab is a namespace, the parents in it and the manager that serves them.
type lab struct {
	*testing.T

	namespace string
	client    kubernetes.Interface
	objects   dynamic.Interface
	faults    *fault.Injector
	sandbox   *sandbox.Sandbox
	hook      *reviewer
	run       func(context.Context, *fault.Process) error
	stop      func()
}

// lab makes a namespace that cairn serves, or upstream's controllers do.
func (a *labs) lab(t *testing.T, upstream bool, change ...func(*manager.Options)) *lab {
	t.Helper()
	a.wait(t)
	user := a.sandbox.Config()
	user.QPS = -1
	l := &lab{
		T: t, namespace: sandboxtest.Namespace(t, a.sandbox), sandbox: a.sandbox, hook: a.hook,
		client: kubernetes.NewForConfigOrDie(user), objects: dynamic.NewForConfigOrDie(user), faults: fault.New(t.Context(), fault.Plan{}),
	}
	l.run = func(ctx context.Context, p *fault.Process) error { return a.cairn(ctx, p, l.namespace, change) }
	if upstream {
		l.run = func(ctx context.Context, p *fault.Process) error { return a.upstream(ctx, p, l.namespace) }
	}
	l.start()
	return l
}

// start runs the manager until the test ends or stop is called.
func (l *lab) start() {
	l.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	process := l.faults.Start(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.run(process.Context(), process) }()
	l.stop = sync.OnceFunc(func() {
		early := len(ended) > 0
		cancel()
		if err := <-ended; err != nil || early {
			l.Errorf("the manager ended (before it was stopped: %t): %v", early, err)
		}
	})
	l.Cleanup(l.stop)
}

func (a *labs) cairn(ctx context.Context, p *fault.Process, namespace string, change []func(*manager.Options)) error {
	cfg := rest.CopyConfig(a.ours)
	cfg.QPS = -1
	cfg.Wrap(fault.Within(namespace, managed...))
	o := manager.Options{
		Config: p.Config(cfg), Controllers: []string{"composite", "daemonset", "replicaset", "statefulset"}, AskServer: true,
		Logger: klog.Background(), MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off, HookAllow: []netip.Prefix{loopback},
	}
	for _, f := range change {
		f(&o)
	}
	return manager.Run(ctx, o)
}

func (a *labs) upstream(ctx context.Context, p *fault.Process, namespace string) error {
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for _, kind := range []string{sandbox.DaemonSet, sandbox.ReplicaSet, sandbox.StatefulSet} {
		cfg, err := a.sandbox.UpstreamConfig(kind)
		if err != nil {
			return err
		}
		cfg.QPS = -1
		cfg.Wrap(fault.Within(namespace, managed...))
		stop, err := a.sandbox.RunUpstreamWith(ctx, kind, p.Config(cfg))
		if err != nil {
			return err
		}
		stops = append(stops, stop)
	}
	<-ctx.Done()
	return nil
}

// parent is one object with pods, named after its kind.
type parent struct {
	name string
	spec map[string]any
	// pods is how many it wants, and ready where its status says how many it has.
	pods  int
	ready string
	// ours is true if upstream has no such kind.
	ours bool
}

// oneOfEach are parents, one of each kind. ReplicaSets, StatefulSets and CatSets have so many pods, DaemonSets one on
// each node.
func oneOfEach(replicas int) []parent {
	return []parent{
		{name: "daemonset", pods: nodes, ready: "numberReady", spec: map[string]any{}},
		{name: "replicaset", pods: replicas, ready: "readyReplicas", spec: map[string]any{"replicas": int64(replicas)}},
		{name: "statefulset", pods: replicas, ready: "readyReplicas", spec: map[string]any{"replicas": int64(replicas), "serviceName": "none"}},
		{name: "catset", pods: replicas, ready: "readyReplicas", ours: true},
	}
}

// parentsOf leaves out what upstream has not.
func parentsOf(upstream bool, replicas int) (out []parent) {
	for _, p := range oneOfEach(replicas) {
		if !upstream || !p.ours {
			out = append(out, p)
		}
	}
	return out
}

// of is the interface of the parent's resource.
func (l *lab) of(p parent) dynamic.ResourceInterface {
	resource := catset.Resource
	if k, ok := kinds.Served(p.name); ok {
		resource = k.Parents
	}
	return l.objects.Resource(resource).Namespace(l.namespace)
}

// create makes the parent. Changes are merged into its spec.
func (l *lab) create(p parent, changes map[string]any) {
	l.Helper()
	o := catset.New(l.namespace, p.name, catset.OneByOne, int64(p.pods), "app:1")
	_ = unstructured.SetNestedField(o.Object, "amd64", "spec", "template", "spec", "nodeSelector", corev1.LabelArchStable) // as every node is
	if k, ok := kinds.Served(p.name); ok {
		o.SetGroupVersionKind(k.Parent)
		spec := o.Object["spec"].(map[string]any)
		delete(spec, "replicas")
		for _, m := range []map[string]any{p.spec, changes} {
			maps.Copy(spec, m)
		}
	}
	if _, err := l.of(p).Create(l.Context(), o, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// image edits the template of the parent.
func (l *lab) image(p parent, image string) { l.Helper(); l.patch(p, string(catImage(image))) }

func (l *lab) patch(p parent, patch string) {
	l.Helper()
	if _, err := l.of(p).Patch(l.Context(), p.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		l.Fatal(err)
	}
}

// get returns the parent as it is.
func (l *lab) get(p parent) *unstructured.Unstructured {
	l.Helper()
	o, err := l.of(p).Get(l.Context(), p.name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return o
}

// pods returns the pods of the parent that are not terminating.
func (l *lab) pods(p parent) (out []corev1.Pod) {
	l.Helper()
	list, err := l.client.CoreV1().Pods(l.namespace).List(l.Context(), metav1.ListOptions{LabelSelector: "app=" + p.name})
	if err != nil {
		l.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

// ready returns nil if n pods of the parent are there, all ready and of that image, and its status counts them.
func (l *lab) ready(p parent, n int, image string) error {
	l.Helper()
	pods := l.pods(p)
	if len(pods) != n {
		return fmt.Errorf("%s has %d pods, want %d", p.name, len(pods), n)
	}
	for _, pod := range pods {
		if !podutil.IsPodReady(&pod) || pod.Spec.Containers[0].Image != image {
			return fmt.Errorf("pod %s is of %s, ready: %t", pod.Name, pod.Spec.Containers[0].Image, podutil.IsPodReady(&pod))
		}
	}
	status, _, _ := unstructured.NestedMap(l.get(p).Object, "status")
	if got, _, _ := unstructured.NestedInt64(status, p.ready); got != int64(n) {
		return fmt.Errorf("the status of %s is %v, want %s: %d", p.name, status, p.ready, n)
	}
	return nil
}

// until waits for a condition.
func (l *lab) until(what string, f func() error) {
	l.Helper()
	l.within(2*time.Minute, what, f)
}

// within waits for a condition for so long at most. It returns how long that took.
func (l *lab) within(limit time.Duration, what string, f func() error) time.Duration {
	l.Helper()
	began := time.Now()
	for {
		err := f()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			l.Fatalf("%s: not within %s: %v\n%s", what, limit, err, l.tail())
		}
		time.Sleep(poll) //nolint:forbidigo // this is the wait for a condition
	}
}

const poll = 100 * time.Millisecond

// tail is the last of the manager's requests, for whoever looks for the reason.
func (l *lab) tail() string {
	log := strings.Split(strings.TrimSpace(l.faults.Log()), "\n")
	return strings.Join(log[max(0, len(log)-15):], "\n")
}

// window is for how long requests are counted. CAIRN_CHECK=full makes it half a minute.
func window() time.Duration {
	if full {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// mark is a moment in the log of requests.
type mark struct {
	at   int
	time time.Time
}

func (l *lab) now() mark { return mark{len(l.faults.Requests()), time.Now()} }

// allowed is how many tries of one parent the work queue's back-off allows since then: 5 ms that are doubled with each
// failure, as upstream has it. A few more, for what wakes a parent before its time: pods and objects that come and go.
func (m mark) allowed() int {
	return int(math.Ceil(math.Log2(float64(time.Since(m.time)/time.Millisecond)/5+1))) + 6
}

// count is how many requests about the parent, or about what has its name as a prefix, there were since then.
func (l *lab) count(since mark, p parent, match func(fault.Request) bool) (n int) {
	for _, r := range l.faults.Requests()[since.at:] {
		if r.Namespace == l.namespace && strings.HasPrefix(r.Name, p.name) && match(r) {
			n++
		}
	}
	return n
}

func isEvent(r fault.Request) bool  { return r.Resource == "events" }
func isStatus(r fault.Request) bool { return r.Subresource == "status" }

// writes matches a verb of a resource, dry runs left out.
func writes(verb, resource string) func(fault.Request) bool {
	return func(r fault.Request) bool {
		return r.Verb == verb && r.Resource == resource && r.Subresource == "" && !r.DryRun
	}
}

// must ends a test unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
