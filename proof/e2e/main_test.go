// Package e2e tests cairn's controllers against the real API server, garbage collector and scheduler, under the roles
// that are shipped, and side by side with the upstream controllers.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file holds what all tests share: the cluster, who runs beside whom, who runs DaemonSets at the moment, and how
// to wait.

const nodes = 5

// The sandbox runs nobody for the kinds that cairn serves: each test starts cairn or upstream itself, for its own
// namespace.
func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	// Those that run beside each other mostly wait; slots bounds them.
	if err := flag.Set("test.parallel", "64"); err != nil { // what the command line says comes later, and counts
		panic(err)
	}
	code := sandboxtest.Main(m, sandbox.Options{Nodes: nodes, Replaced: sandbox.Kinds(), Requests: func(r sandbox.Request) {
		note(r)
		use(r)
	}})
	if code == 0 {
		code = rightsAreUsed()
	}
	os.Exit(code)
}

// slots are for tests that run beside each other.
var slots = make(chan struct{}, 5)

// What is in no namespace belongs to one test at a time: the CompositeControllers and DecoratorControllers, all of
// which any manager runs; HistoryPolicies.
var (
	theHosted   sync.Mutex
	thePolicies sync.Mutex
)

// beside makes a test run beside others, except those that hold one of the same locks.
func beside(t *testing.T, locks ...*sync.Mutex) {
	t.Helper()
	t.Parallel()
	for _, lock := range locks {
		lock.Lock()
		t.Cleanup(lock.Unlock)
	}
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
}

// env is one test's view of the cluster.
type env struct {
	*testing.T
	client.WithWatch

	sandbox   *sandbox.Sandbox
	namespace string
	// seen is the namespace that controllers see; empty if they see all.
	seen string
	// inside says that the manager is to be in this process whatever the environment says: the test looks into it.
	inside bool
}

// newEnv returns the env of a test that runs beside others, except those that hold one of the same locks. Its
// controllers believe to see the whole cluster.
func newEnv(t *testing.T, locks ...*sync.Mutex) *env {
	t.Helper()
	beside(t, locks...)
	e := newLonelyEnv(t)
	e.seen = e.namespace
	return e
}

// newLonelyEnv returns the env of a test that has the cluster for itself.
func newLonelyEnv(t *testing.T) *env {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg := s.Config()
	cfg.QPS = -1
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &env{T: t, WithWatch: c, sandbox: s, namespace: sandboxtest.Namespace(t, s)}
}

// cairn runs cairn's manager, under the shipped roles, until the returned function is called or the test ends.
func (e *env) cairn() (stop func()) {
	e.Helper()
	return e.cairnWith(func(*rest.Config) {}, manager.Options{AskServer: true})
}

// cairnWith is cairn with changes to what the manager runs with.
func (e *env) cairnWith(change func(*rest.Config), o manager.Options) (stop func()) {
	e.Helper()
	if o.Controllers == nil {
		o.Controllers = []string{"daemonset"}
	}
	cfg, err := install.Roles(e.Context(), e.sandbox.Config(), o.Controllers, o.AskServer)
	if err != nil {
		e.Fatal(err)
	}
	cfg.QPS = -1
	change(cfg)
	e.narrow(cfg)
	if program := os.Getenv(programVariable); program != "" && o.Clock == nil && !e.inside {
		return e.process(program, cfg, o)
	}
	o.Config, o.Logger = cfg, klog.Background()
	o.MetricsBindAddress, o.HealthProbeBindAddress = manager.Off, manager.Off
	return e.run(func(ctx context.Context) error { return manager.Run(ctx, o) })
}

// narrow keeps a controller in the namespace of the test.
func (e *env) narrow(cfg *rest.Config) {
	if e.seen != "" {
		cfg.Wrap(fault.Within(e.seen, "daemonsets", "statefulsets", "replicasets", "replicationcontrollers", "cronjobs", "jobs",
			"pods", "controllerrevisions", "persistentvolumeclaims"))
	}
}

// run runs f in the background until the returned function is called or the test ends.
func (e *env) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			e.Errorf("the manager ended with: %v", err)
		}
	})
	e.Cleanup(stop)
	return stop
}

// upstream runs the upstream DaemonSet controller until the returned function is called or the test ends.
func (e *env) upstream() (stop func()) {
	e.Helper()
	return e.upstreamOf(sandbox.DaemonSet)
}

// upstreamOf runs the upstream controller of a kind until the returned function is called or the test ends.
func (e *env) upstreamOf(kind string) (stop func()) {
	e.Helper()
	cfg, err := e.sandbox.UpstreamConfig(kind)
	if err != nil {
		e.Fatal(err)
	}
	e.narrow(cfg)
	halt, err := e.sandbox.RunUpstreamWith(context.WithoutCancel(e.Context()), kind, cfg)
	if err != nil {
		e.Fatal(err)
	}
	stop = sync.OnceFunc(halt)
	e.Cleanup(stop)
	return stop
}

// daemonSet returns a DaemonSet that is not created yet.
func (e *env) daemonSet(name, image string, change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	template := appTemplate(name, image)
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	for _, f := range change {
		f(ds)
	}
	return ds
}

// create creates o and fails the test if that does not work.
func (e *env) create(o client.Object) {
	e.Helper()
	must(e, e.Create(e.Context(), o))
}

// edit changes ds on the server, whatever happened to it meanwhile, and leaves the result in ds.
func (e *env) edit(ds *appsv1.DaemonSet, change func(*appsv1.DaemonSet)) {
	e.Helper()
	e.eventually("edit the DaemonSet", func() error {
		e.reload(ds)
		change(ds)
		return e.Update(e.Context(), ds)
	})
}

func (e *env) image(ds *appsv1.DaemonSet, image string) {
	e.Helper()
	e.edit(ds, func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = image })
}

func (e *env) reload(ds *appsv1.DaemonSet) {
	e.Helper()
	fresh := &appsv1.DaemonSet{}
	must(e, e.Get(e.Context(), client.ObjectKeyFromObject(ds), fresh))
	*ds = *fresh
}

// eventually waits until f succeeds. A wait that does not end fails the test with the last error.
func (e *env) eventually(what string, f func() error) {
	e.Helper()
	e.within(time.Minute, what, f)
}

// within is eventually with a time of its own.
func (e *env) within(d time.Duration, what string, f func() error) {
	e.Helper()
	deadline := time.Now().Add(d)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			e.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // this is the wait for a condition
	}
}

// quota allows so many pods in the namespace. It waits until the API server refuses one more: its admission learns of a
// quota from a watch.
func (e *env) quota(name string, pods int64) *corev1.ResourceQuota {
	e.Helper()
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}},
	}
	e.create(q)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "beyond-" + name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	e.eventually("the quota "+name+" is in force", func() error {
		err := e.Create(e.Context(), pod.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: "+name) {
			return nil
		}
		return errorf("a dry run answers %v", err)
	})
	return q
}

// rolledOut waits until the controller in charge says that the rollout of ds is over: what kubectl rollout status asks.
func (e *env) rolledOut(ds *appsv1.DaemonSet) {
	e.Helper()
	e.eventually("wait for the rollout of "+ds.Name, func() error {
		e.reload(ds)
		s := ds.Status
		if s.ObservedGeneration < ds.Generation || s.UpdatedNumberScheduled != s.DesiredNumberScheduled || s.NumberAvailable != s.DesiredNumberScheduled ||
			s.DesiredNumberScheduled == 0 {
			return fmt.Errorf("generation %d, status %+v", ds.Generation, s)
		}
		return nil
	})
}

// settled makes the controller in charge look at ds once more, and waits until it did, so that a write it wanted to do
// has been done. It changes a field of the spec that is no part of the template.
func (e *env) settled(ds *appsv1.DaemonSet) {
	e.Helper()
	e.edit(ds, func(ds *appsv1.DaemonSet) {
		ds.Spec.RevisionHistoryLimit = new(*ds.Spec.RevisionHistoryLimit + 1)
	})
	e.rolledOut(ds)
}

// pods returns the pods of ds by name, those that are going left out.
func (e *env) pods(ds *appsv1.DaemonSet) map[string]corev1.Pod {
	e.Helper()
	return e.podsOf(ds.Namespace, ds.Spec.Selector)
}

// podsOf is pods for a parent of any kind.
func (e *env) podsOf(namespace string, selector *metav1.LabelSelector) map[string]corev1.Pod {
	e.Helper()
	var list corev1.PodList
	must(e, e.List(e.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(selector.MatchLabels)))
	out := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out[pod.Name] = pod
		}
	}
	return out
}

// revisions returns the revisions of the namespace, oldest first.
func (e *env) revisions(ds *appsv1.DaemonSet) []appsv1.ControllerRevision {
	e.Helper()
	return e.revisionsOf(ds.Namespace, ds.Spec.Selector)
}

// revisionsOf is revisions for a parent of any kind.
func (e *env) revisionsOf(namespace string, selector *metav1.LabelSelector) []appsv1.ControllerRevision {
	e.Helper()
	var list appsv1.ControllerRevisionList
	must(e, e.List(e.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(selector.MatchLabels)))
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// sameVersions fails the test if any pod was written, created or deleted between two looks.
func (e *env) sameVersions(what string, before, after map[string]corev1.Pod) {
	e.Helper()
	version := func(pods map[string]corev1.Pod) map[string]string {
		out := map[string]string{}
		for name, pod := range pods {
			out[name] = string(pod.UID) + "@" + pod.ResourceVersion
		}
		return out
	}
	if b, a := version(before), version(after); !maps.Equal(b, a) {
		e.Errorf("%s: pods were written:\nbefore %v\nafter  %v", what, b, a)
	}
}

// onlyStamped fails the test if anything but annotations of revisions changed between two looks.
func (e *env) onlyStamped(what string, before, after []appsv1.ControllerRevision) {
	e.Helper()
	content := func(revisions []appsv1.ControllerRevision) string {
		var b strings.Builder
		for _, r := range revisions {
			fmt.Fprintf(&b, "%s %s %d %v %s\n", r.Name, r.UID, r.Revision, r.Labels, r.Data.Raw)
		}
		return b.String()
	}
	if b, a := content(before), content(after); b != a {
		e.Errorf("%s: revisions were written:\nbefore\n%safter\n%s", what, b, a)
	}
}

// images fails the test unless every node runs exactly one pod of ds with that image.
func (e *env) images(ds *appsv1.DaemonSet, image string) {
	e.Helper()
	pods := e.pods(ds)
	if len(pods) != nodes {
		e.Errorf("%d pods, want %d", len(pods), nodes)
	}
	for _, pod := range pods {
		if got := pod.Spec.Containers[0].Image; got != image {
			e.Errorf("pod %s runs %s, want %s", pod.Name, got, image)
		}
	}
}

// budget watches the pods of ds from now on and reports, when the test ends, if at any event fewer than minReady were
// ready, or more than maxPods were there that are not going. It sees every event, in the order of the store.
func (e *env) budget(ds *appsv1.DaemonSet, minReady, maxPods int) {
	e.Helper()
	e.budgetOf(ds.Name, ds.Namespace, ds.Spec.Selector, nodes, minReady, maxPods)
}

// budgetOf is budget for a parent of any kind that has so many pods.
func (e *env) budgetOf(name, namespace string, labels *metav1.LabelSelector, count, minReady, maxPods int) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	var list corev1.PodList
	selector := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(labels.MatchLabels)}
	must(e, e.List(ctx, &list, selector...))
	w, err := e.Watch(ctx, &corev1.PodList{}, append(selector, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		e.Fatal(err)
	}
	state := map[string]bool{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			state[pod.Name] = serving(&pod)
		}
	}
	least, most := count, 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			state[pod.Name] = serving(pod)
			if event.Type == watch.Deleted || pod.DeletionTimestamp != nil {
				delete(state, pod.Name)
			}
			ready := 0
			for _, ok := range state {
				if ok {
					ready++
				}
			}
			least, most = min(least, ready), max(most, len(state))
		}
	}()
	e.Cleanup(func() {
		cancel()
		w.Stop()
		<-done
		if least < minReady {
			e.Errorf("%s: only %d pods were ready at some moment, want %d at least", name, least, minReady)
		}
		if most > maxPods {
			e.Errorf("%s: %d pods were there at some moment, want %d at most", name, most, maxPods)
		}
	})
}

// serving reports whether a pod is ready and not going.
func serving(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// must ends a test unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
