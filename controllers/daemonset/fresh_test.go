package daemonset

// What a pass reads: before its first write to a pod it checks the cache against the API server, and what the
// cache hands out it never changes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/pass"
)

// TestStaleCacheAfterAStart has a cache that was filled by an API server that lags (kubernetes#59848), and an old pod
// that the rollout would delete.
func TestStaleCacheAfterAStart(t *testing.T) {
	version := func(v string) podOption { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	old := func(options ...podOption) *corev1.Pod { return pod("n1", hashOld, append(options, notReady)...) }
	foreign := pod("n2", hashOld, named("foreign"), func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })
	for name, c := range map[string]struct {
		cached, live []client.Object
		deletes      bool
	}{
		"as it is":           {[]client.Object{old(version("5"))}, []client.Object{old(version("5"))}, true},
		"a foreign pod more": {[]client.Object{old(version("5"))}, []client.Object{old(version("5")), foreign}, true},
		"a pod changed":      {[]client.Object{old(version("5"))}, []client.Object{old(version("7"))}, false},
		"a pod more":         {[]client.Object{old(version("5"))}, []client.Object{old(version("5")), pod("n2", hashOld)}, false},
		"a pod is gone":      {[]client.Object{old(version("5")), pod("n2", hashOld)}, []client.Object{old(version("5"))}, false},
		"a pod was replaced": {[]client.Object{old(version("5"))}, []client.Object{old(version("5"), func(p *corev1.Pod) { p.Name = "n1-again" })}, false},
		"the cache is ahead": {[]client.Object{old(version("7"))}, []client.Object{old(version("5"))}, true}, // the delete's precondition decides
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, append(three(), c.live...)...)
			w := worldOf(s, newServer(t, append(three(), c.cached...)...).Raw, nil)
			result := w.mustReconcile()
			deletes := len(w.Calls("delete"))
			if (deletes > 0) != c.deletes || !c.deletes && result.RequeueAfter != pass.StaleRetry {
				t.Errorf("%d deletes, result %+v", deletes, result)
			}
			if !c.deletes && len(w.WritesTo("Pod")) != 0 {
				t.Errorf("wrote %v", w.WritesTo("Pod"))
			}
		})
	}
}

// The check is made once for each DaemonSet and process, before the first pod that is created or deleted, and by
// metadata only. It is made again after a write whose answer was lost.
func TestFreshnessIsCheckedOnce(t *testing.T) {
	w := newWorld(t, three()...)
	checks := func() int {
		n := 0
		for _, c := range w.Calls("list") {
			if strings.HasPrefix(c.Kind, "PartialObjectMetadata") {
				n++
			}
		}
		return n
	}
	w.Before = fakeserver.Refuse("list", "PartialObjectMetadataList", apierrors.NewInternalError(errors.New("boom")))
	if _, err := w.reconcile(); !apierrors.IsInternalError(err) || len(w.WritesTo("Pod")) != 0 {
		t.Errorf("%v, wrote %v", err, w.WritesTo("Pod"))
	}
	w.Before = nil
	w.Forget()
	roll := func() {
		for range 10 {
			w.mustReconcile()
			w.settle()
		}
	}
	roll()
	w.edit(image("agent:2"))
	roll()
	if checks() != 1 || len(w.Calls("delete")) != 3 {
		t.Errorf("checked %d times for %d deletes", checks(), len(w.Calls("delete")))
	}
	for want, lost := range map[int]error{1: apierrors.NewForbidden(podResource, "", nil), 2: io.ErrUnexpectedEOF} {
		w.edit(image(fmt.Sprint("agent:", 2+want)))
		w.Before = fakeserver.Refuse("delete", "Pod", lost)
		if _, err := w.reconcile(); !errors.Is(err, lost) {
			t.Errorf("error %v", err)
		}
		w.Before = nil
		w.Forget()
		roll()
		if got := checks(); got != want-1 {
			t.Errorf("after %v: checked %d times", lost, got)
		}
	}
}

// TestStaleCacheAndTheLimit: the cache does not show a pod that came from an old revision, there is nothing else to do,
// and the limit asks for that revision's end. It stays until the cache shows the pod (H3).
func TestStaleCacheAndTheLimit(t *testing.T) {
	objects := func(pods ...*corev1.Pod) []client.Object {
		out := append(three(limit(0), onDelete), stored(t, "agent:0", "zero", 1), stored(t, "agent:1", "one", 2),
			pod("n1", "one"), pod("n2", "one"), pod("n3", "one"))
		for _, p := range pods {
			out = append(out, p)
		}
		return out
	}
	hidden := pod("n3", "zero", named("hidden"), age(time.Minute), terminating)
	s := newServer(t, objects(hidden)...)
	w := worldOf(s, newServer(t, objects()...).Raw, nil)
	w.mustReconcile()
	if diff := cmp.Diff([]string{"agent-one", "agent-zero"}, w.revisionNames()); diff != "" || len(w.Calls("delete")) != 0 {
		t.Errorf("deleted %v; revisions (-want +got):\n%s", w.Calls("delete"), diff)
	}
	w = newWorld(t, objects()...) // nothing is hidden
	w.mustReconcile()
	if diff := cmp.Diff([]string{"agent-one"}, w.revisionNames()); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// TestTruncatingUnchecked: if the API server does not say what pods there are, no revision goes.
func TestTruncatingUnchecked(t *testing.T) {
	w := newWorld(t, append(three(limit(0), onDelete), stored(t, "agent:0", "zero", 1), stored(t, "agent:1", "one", 2),
		pod("n1", "one"), pod("n2", "one"), pod("n3", "one"))...)
	w.Before = fakeserver.Refuse("list", "PartialObjectMetadataList", apierrors.NewInternalError(errors.New("boom")))
	if _, err := w.reconcile(); !apierrors.IsInternalError(err) || len(w.Calls("delete")) != 0 {
		t.Errorf("deleted %v, %v", w.Calls("delete"), err)
	}
}

// sharing is a cache that hands out its own objects, as one without deep copies does.
type sharing struct {
	ds        *appsv1.DaemonSet
	nodes     []corev1.Node
	pods      []corev1.Pod
	revisions []appsv1.ControllerRevision
}

func (c *sharing) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	ds, ok := o.(*appsv1.DaemonSet)
	if !ok {
		return fmt.Errorf("nobody expected a read of a %T", o)
	}
	*ds = *c.ds
	return nil
}

func (c *sharing) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	wanted := func(o client.Object) bool {
		orphans := options.FieldSelector != nil && strings.HasSuffix(options.FieldSelector.String(), "=none")
		return options.FieldSelector == nil || orphans == (metav1.GetControllerOfNoCopy(o) == nil)
	}
	switch list := list.(type) {
	case *corev1.NodeList:
		list.Items = append([]corev1.Node(nil), c.nodes...)
	case *corev1.PodList:
		for i := range c.pods {
			if wanted(&c.pods[i]) {
				list.Items = append(list.Items, c.pods[i])
			}
		}
	case *appsv1.ControllerRevisionList:
		for i := range c.revisions {
			if wanted(&c.revisions[i]) {
				list.Items = append(list.Items, c.revisions[i])
			}
		}
	default:
		return fmt.Errorf("nobody expected a list of %T", list)
	}
	return nil
}

func (c *sharing) copy() *sharing {
	out := &sharing{ds: c.ds.DeepCopy()}
	for i := range c.nodes {
		out.nodes = append(out.nodes, *c.nodes[i].DeepCopy())
	}
	for i := range c.pods {
		out.pods = append(out.pods, *c.pods[i].DeepCopy())
	}
	for i := range c.revisions {
		out.revisions = append(out.revisions, *c.revisions[i].DeepCopy())
	}
	return out
}

// TestCachedObjectsAreOnlyRead runs passes with a bit of everything to do: adopting, releasing, relabelling, creating,
// deleting, reporting.
func TestCachedObjectsAreOnlyRead(t *testing.T) {
	orphan := pod("n2", "one", named("orphan"))
	orphan.OwnerReferences = nil
	released := pod("n3", "one", named("released"), func(p *corev1.Pod) { p.Labels["app"] = "other" })
	tolerating := func(ds *appsv1.DaemonSet) {
		// Room behind the slices, so that an append would write into the cached object.
		spec := &ds.Spec.Template.Spec
		spec.Tolerations = append(make([]corev1.Toleration, 0, 20), corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))})
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		ds.Status.Conditions = append(make([]appsv1.DaemonSetCondition, 0, 4), appsv1.DaemonSetCondition{Type: ConditionUpdated, Status: corev1.ConditionTrue})
	}
	s := newServer(t, append(three(limit(0), tolerating), stored(t, "agent:0", "twin", 1), stored(t, "agent:0", "zero", 2), stored(t, "agent:5", "five", 3),
		pod("n1", "twin", notReady), orphan, released, pod("n9", "zero", unscheduled))...)
	cache := &sharing{ds: s.ds()}
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &corev1.PodList{}, &appsv1.ControllerRevisionList{}} {
		if err := s.Raw.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch list := list.(type) {
		case *corev1.NodeList:
			cache.nodes = list.Items
		case *corev1.PodList:
			cache.pods = list.Items
		case *appsv1.ControllerRevisionList:
			cache.revisions = list.Items
		}
	}
	cache.ds.Spec.Template.Spec.Tolerations = append(make([]corev1.Toleration, 0, 20), cache.ds.Spec.Template.Spec.Tolerations...)
	before := cache.copy()
	w := worldOf(s, cache, nil)
	if _, err := w.reconcile(); err != nil && !errors.Is(err, history.ErrStale) {
		t.Log(err) // the cache never catches up, so not all of it can succeed
	}
	if got := len(w.Writes()); got < 5 {
		t.Errorf("the pass had little to do: %v", w.Writes())
	}
	if diff := cmp.Diff(before, cache, cmp.AllowUnexported(sharing{})); diff != "" {
		t.Errorf("the cache's objects changed:\n%s", diff)
	}
	if spare := cache.ds.Spec.Template.Spec.Tolerations[:2][1]; spare.Key != "" {
		t.Errorf("a toleration was written behind the end of a cached list: %+v", spare)
	}
}

// A broken strategy is reported, and nothing is done.
func TestInvalidStrategy(t *testing.T) {
	w := newWorld(t, three(rolling("many", 0))...)
	if result, err := w.reconcile(); err != nil || result != (reconcile.Result{}) || len(w.WritesTo("Pod")) != 0 || len(w.events.Events("InvalidStrategy")) != 1 {
		t.Errorf("%+v, %v, events %q", result, err, w.events.Events())
	}
}

// TestAnOldLogAfterAStart: two revisions hold what the spec asks for, and a process that just started is shown the one
// that pods do not come from. They are not replaced for that.
func TestAnOldLogAfterAStart(t *testing.T) {
	s := newServer(t, agent(), node("n1"), stored(t, "agent:1", "one", 1), stored(t, "agent:1", "two", 2), pod("n1", "two"))
	w := worldOf(s, fakeserver.Hiding{Reader: s, Name: "agent-two"}, nil)
	w.mustReconcile()
	if deleted := w.Calls("delete"); len(deleted) > 0 {
		t.Errorf("deleted %v", deleted)
	}
	worldOf(s, nil, nil).mustReconcile() // it sees both, and has the pods of the older one say so
	if pods := w.pods(); len(pods) != 1 || pods[0].UID != "uid-of-n1-two" {
		t.Errorf("pods %v", names(pods))
	}
}
