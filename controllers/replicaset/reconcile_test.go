package replicaset

// Whole passes against the fake API server, for both kinds: what is done, what is reported, and when nothing is.

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// kinds are the parents of both kinds with so many replicas.
func kinds(replicas int32) map[string]struct {
	kind   parentKind
	parent client.Object
} {
	return map[string]struct {
		kind   parentKind
		parent client.Object
	}{
		"ReplicaSet":            {replicaSets, web(replicas)},
		"ReplicationController": {replicationControllers, webController(replicas)},
	}
}

// TestUp: pods come, become ready, and then nothing is written any more (C1).
func TestUp(t *testing.T) {
	for name, c := range kinds(3) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.kind, c.parent)
			w.mustReconcile()
			pods := w.pods()
			if len(pods) != 3 {
				t.Fatalf("%d pods", len(pods))
			}
			for _, p := range pods {
				ref := metav1.GetControllerOf(&p)
				if ref == nil || ref.Kind != name || ref.UID != "web-uid" || p.GenerateName != "web-" || p.Annotations != nil {
					t.Errorf("pod %+v", p.ObjectMeta)
				}
			}
			if got := w.events.Events("SuccessfulCreate"); len(got) != 3 || !strings.Contains(got[0], "0 of 3 pods are there") {
				t.Errorf("events %v", got)
			}
			w.ready()
			w.mustReconcile()
			s := w.set().Status
			s.TerminatingReplicas = nil
			want := appsv1.ReplicaSetStatus{Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 1}
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if got := w.set().Status.TerminatingReplicas; (got != nil) != c.kind.terminating {
				t.Errorf("terminatingReplicas %v", got)
			}
			w.Forget()
			w.mustReconcile()
			if len(w.Writes()) != 0 {
				t.Errorf("a pass without news wrote %v", w.Writes())
			}
		})
	}
}

// TestDown: the pods that go are deleted with UID and version, and the status follows.
func TestDown(t *testing.T) {
	set := web(1)
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": "4"}
	w := newWorld(t, replicaSets, set, pod("a"), pod("b", unready), pod("c"))
	w.mustReconcile()
	if diff := cmp.Diff([]string{"delete a", "delete b"}, w.WritesTo("Pod")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, call := range w.Calls("delete") {
		if call.UID == "" || call.Version == "" {
			t.Errorf("%s without preconditions: %+v", call, call)
		}
	}
	w.mustReconcile()
	if got := w.set(); got.Status.Replicas != 1 || got.Annotations["deployment.kubernetes.io/revision"] != "4" || len(got.Annotations) != 1 {
		t.Errorf("ReplicaSet %+v", got)
	}
	for _, call := range w.Calls("patch", "patch status") {
		if call.Verb != "patch status" || strings.Contains(call.Body, "annotations") || strings.Contains(call.Body, "spec") {
			t.Errorf("%s %s", call, call.Body)
		}
	}
}

// TestClaim: what is ours by the three laws, and what is left alone.
func TestClaim(t *testing.T) {
	for name, c := range kinds(4) {
		t.Run(name, func(t *testing.T) {
			ours := metav1.NewControllerRef(c.parent, c.kind.GVK)
			foreign := *ours
			foreign.UID = "foreign"
			w := newWorld(t, c.kind, c.parent,
				pod("orphan", owned(nil)), pod("ended", owned(nil), phase(corev1.PodSucceeded)), pod("going", owned(nil), going),
				pod("foreign", owned(&foreign)), pod("other", owned(nil), labelled(map[string]string{"app": "other"})),
				pod("strayed", owned(ours), labelled(map[string]string{"app": "other"})), pod("kept", owned(ours)))
			w.mustReconcile()
			writes := strings.Join(w.WritesTo("Pod"), ",")
			if !strings.HasSuffix(writes, ",patch orphan,patch strayed") || strings.Count(writes, ",") != 3 || strings.Count(writes, "create web-") != 2 {
				t.Errorf("writes %s", writes)
			}
			var strayed, orphan corev1.Pod
			w.must(w.Raw.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "strayed"}, &strayed))
			w.must(w.Raw.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "orphan"}, &orphan))
			if len(strayed.OwnerReferences) != 0 || len(orphan.OwnerReferences) != 1 || orphan.OwnerReferences[0].Kind != name {
				t.Errorf("owners %v and %v", strayed.OwnerReferences, orphan.OwnerReferences)
			}
		})
	}
}

// TestGoing: a parent that is being deleted does nothing at all (O3).
func TestGoing(t *testing.T) {
	set := web(3)
	set.DeletionTimestamp, set.Finalizers = new(metav1.NewTime(now)), []string{"foregroundDeletion"}
	w := newWorld(t, replicaSets, set, pod("a"), pod("orphan", owned(nil)))
	w.mustReconcile()
	if len(w.Writes()) != 0 {
		t.Errorf("wrote %v", w.Writes())
	}
	if result, err := newWorld(t, replicaSets).reconcile(); err != nil || result != (reconcile.Result{}) {
		t.Errorf("a parent that is gone: %v, %v", result, err)
	}
}

// TestMinReadySeconds: a pod that is ready counts as available later, and the pass comes back just then.
func TestMinReadySeconds(t *testing.T) {
	w := newWorld(t, replicaSets, web(2, minReady(30)), pod("a"), pod("b", readyFor(10*time.Second)))
	if result := w.mustReconcile(); result.RequeueAfter != 20*time.Second {
		t.Errorf("again in %v", result.RequeueAfter)
	}
	if s := w.set().Status; s.ReadyReplicas != 2 || s.AvailableReplicas != 1 {
		t.Errorf("status %+v", s)
	}
}

// TestTerminating: pods that go are counted where the field is served, and where it is not, it is not written for ever.
func TestTerminating(t *testing.T) {
	w := newWorld(t, replicaSets, web(1), pod("a"), pod("b", going))
	w.mustReconcile()
	if got := w.set().Status.TerminatingReplicas; got == nil || *got != 1 {
		t.Fatalf("terminatingReplicas %v", got)
	}
	// A server without the field drops it from what it stores and returns.
	w = newWorld(t, replicaSets, web(1), pod("a"))
	w.r.Client = dropsTerminating{w.Server}
	w.mustReconcile()
	w.Forget()
	w.mustReconcile()
	if len(w.Writes()) != 0 {
		t.Errorf("wrote %v", w.Writes())
	}
}

// dropsTerminating is a server that does not know status.terminatingReplicas.
type dropsTerminating struct{ client.Client }

func (d dropsTerminating) Status() client.SubResourceWriter {
	return dropping{d.Client.Status(), d.Client}
}

type dropping struct {
	client.SubResourceWriter

	c client.Client
}

func (d dropping) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := d.SubResourceWriter.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	o.(*appsv1.ReplicaSet).Status.TerminatingReplicas = nil
	return d.Update(ctx, o)
}

// TestNeighbours: the pods of a Deployment's other ReplicaSets count when it is asked which pods share a node.
func TestNeighbours(t *testing.T) {
	deployment := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: new(true)}
	set := web(1)
	set.OwnerReferences = []metav1.OwnerReference{*deployment}
	sibling := web(1, func(s *appsv1.ReplicaSet) {
		s.Name, s.UID, s.OwnerReferences = "old", "old-uid", []metav1.OwnerReference{*deployment}
		s.Spec.Selector.MatchLabels = map[string]string{"app": "web", "v": "old"}
	})
	of := owned(metav1.NewControllerRef(sibling, replicaSets.GVK))
	// b would go by its UID alone, were the crowd on a's node not counted.
	crowd := []client.Object{pod("x", of, on("node-b")), pod("gone", of, on("node-a"), going), pod("ended", of, on("node-a"), phase(corev1.PodFailed))}
	w := newWorld(t, replicaSets, append(crowd, set, sibling, pod("a"), pod("b"))...)
	w.mustReconcile()
	if diff := cmp.Diff([]string{"delete b"}, w.WritesTo("Pod")); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := w.events.Events("SuccessfulDelete"); len(got) != 1 || !strings.Contains(got[0], "more pods like it are on its node") {
		t.Errorf("events %v", got)
	}
}
