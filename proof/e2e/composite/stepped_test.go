package composite

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file has hooks that go by the status that they gave before, as Metacontroller's own test and example do.

// alone is a controller whose hook is asked for nothing but its parent's own changes and its children's.
func alone(children ...v1alpha1.ChildResource) func(*v1alpha1.CompositeController) {
	return func(cc *v1alpha1.CompositeController) {
		cc.Spec.ParentResource.RevisionHistory, cc.Spec.ResyncPeriodSeconds = nil, nil
		cc.Spec.ChildResources = children
	}
}

// TestResyncAfter is Metacontroller's test of that name: the first answer sets a status; once that is stored the hook
// is asked again, and asks to be asked once more after a second; nothing else happens meanwhile, and the time that
// passed is reported.
func TestResyncAfter(t *testing.T) {
	const wanted = time.Second
	l := newLab(t)
	var last atomic.Pointer[time.Time]
	l.answer(func(in request) any {
		status, _, _ := unstructured.NestedMap(in.Parent.Object, "status")
		_, stored := status["begun"]
		then, now := last.Load(), time.Now()
		switch {
		case !stored:
			return m{"status": m{"begun": true}}
		case then == nil:
			last.Store(&now)
			return m{"status": m{"begun": true}, "resyncAfterSeconds": wanted.Seconds()}
		case status["elapsed"] == nil:
			return m{"status": m{"begun": true, "elapsed": now.Sub(*then).Seconds()}}
		default:
			return m{"status": m{"begun": true, "elapsed": status["elapsed"]}}
		}
	})
	set := l.set(setKind, "web", 0, "app:1")
	l.cairn(l.install(l.controller(alone())))
	l.create(set)
	l.eventually("be asked again after a second", func() error {
		l.reload(set)
		elapsed, ok, err := unstructured.NestedFloat64(set.Object, "status", "elapsed")
		if !ok || err != nil {
			return fmt.Errorf("its status is %v", set.Object["status"])
		}
		if elapsed < wanted.Seconds()*9/10 {
			t.Errorf("asked again after %v s", elapsed)
		}
		return nil
	})
}

// daemonJob answers as Metacontroller's example daemonjob does: a DaemonSet until all its pods are ready, which is read
// back from the parent's own status; then no DaemonSet, for good, and that status.
func daemonJob(in request) any {
	status, _, _ := unstructured.NestedMap(in.Parent.Object, "status")
	if n, _ := status["desiredNumberScheduled"].(int64); n > 0 && status["numberReady"] == n {
		status["conditions"] = []any{m{"type": "Complete", "status": "True"}}
		return m{"status": status, "children": []any{}}
	}
	name := in.Parent.GetName() + "-dj"
	now := m{}
	if set := in.Children["DaemonSet.apps/v1"][name]; set != nil {
		seen, _, _ := unstructured.NestedMap(set.Object, "status")
		maps.Copy(now, seen)
	}
	now["conditions"] = []any{m{"type": "Complete", "status": "False"}}
	labels, _, _ := unstructured.NestedMap(in.Parent.Object, "spec", "selector", "matchLabels")
	return m{"status": now, "children": []any{m{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": m{"name": name, "labels": labels},
		"spec": m{"selector": m{"matchLabels": labels}, "template": m{
			"metadata": m{"labels": labels}, "spec": m{"containers": []any{m{"name": "pause", "image": "pause:1"}}},
		}},
	}}}
}

// TestDaemonJob: a job that ran on every node is complete, its DaemonSet goes and does not come back.
func TestDaemonJob(t *testing.T) {
	l := newLab(t)
	l.answer(daemonJob)
	set := l.set(setKind, "hello", 0, "app:1")
	l.cairn(l.install(l.controller(alone(v1alpha1.ChildResource{
		ResourceRule: v1alpha1.ResourceRule{APIVersion: "apps/v1", Resource: "daemonsets"},
	}))))
	l.create(set)
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "hello-dj"}}
	l.eventually("run its DaemonSet", func() error { return l.Get(t.Context(), client.ObjectKeyFromObject(ds), ds) })
	ready := fmt.Sprintf(`{"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"numberReady":3,"observedGeneration":%d}}`, ds.Generation)
	must(t, l.Status().Patch(t.Context(), ds, client.RawPatch("application/merge-patch+json", []byte(ready))))
	l.eventually("be complete", func() error {
		l.reload(set)
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		for _, c := range conditions {
			if c, _ := c.(m); c["type"] == "Complete" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", set.Object["status"])
	})
	l.eventually("have no DaemonSet any more", func() error {
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(ds), ds); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
