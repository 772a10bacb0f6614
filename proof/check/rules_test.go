package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file breaks every promise once and sees that exactly that one is reported.

// second is what a controller does first after an edit: it records.
func second(w *world) {
	w.edit("app:2")
	w.put(revision("web", "web-uid", 2, "h2", "app:2"))
}

func surging(surge int32) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0))
		ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(surge))
		ds.Generation++
		ds.Status.ObservedGeneration++
	}
}

// servingFor wants ten minutes, and gives the first pod less or more when the deletes of mark come.
func servingFor(w *world, d time.Duration) {
	w.as("user", func() { w.ds(func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 600 }) })
	w.as("kubelet", func() {
		w.pod("web-n1-h1", func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(time.Hour - d))
		})
	})
	second(w)
}

func TestEveryBrokenPromiseIsReportedAlone(t *testing.T) {
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"H2", "a number twice", func(w *world) {
			w.edit("app:2")
			w.put(revision("web", "web-uid", 1, "h2", "app:2"))
		}},
		{"H2", "a number below", func(w *world) {
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Revision = 5 })
			w.edit("app:2")
			w.put(revision("web", "web-uid", 4, "h2", "app:2"))
		}},
		{"H2", "a number falls", func(w *world) {
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Revision = 0 })
		}},
		{"H3", "a revision with pods", func(w *world) {
			second(w)
			w.remove(&appsv1.ControllerRevision{}, "web-h1")
		}},
		{"H3", "a revision with a pod that is going", func(w *world) {
			second(w)
			for _, node := range []string{"n1", "n2"} {
				w.replace(node, "h1", "h2", "app:2")
			}
			w.mark("web-n3-h1")
			w.remove(&appsv1.ControllerRevision{}, "web-h1")
		}},
		{"H3", "the revision that is asked for", func(w *world) {
			second(w)
			w.report(0, 3)
			w.remove(&appsv1.ControllerRevision{}, "web-h2")
		}},
		{"H4", "data changes", func(w *world) {
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"spec":{}}`) })
		}},
		{"X1", "a stamp of somebody else", func(w *world) {
			w.edit("app:2")
			r := revision("web", "web-uid", 2, "h2", "app:2")
			r.Annotations = map[string]string{"cairn.dev/parent-uid": "old-uid"}
			w.put(r)
		}},
		{"O1", "two controllers", func(w *world) {
			w.pod("web-n1-h1", func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, owner("other", "other-uid")...) })
		}},
		{"O1", "taken from another", func(w *world) {
			w.as("user", func() { w.put(daemonSet("thief", "thief-uid", "app:1")) })
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.OwnerReferences = owner("thief", "thief-uid") })
		}},
		{"H6", "a UID that nobody has", func(w *world) {
			w.put(revision("web", "no-uid", 1, "h9", "app:9"))
		}},
		{"H6", "a name that is not the UID's", func(w *world) {
			w.put(revision("other", "web-uid", 2, "h9", "app:9"))
		}},
		{"O5", "another namespace", func(w *world) {
			r := revision("web", "web-uid", 2, "h9", "app:9")
			r.Namespace = "elsewhere"
			w.put(r)
		}},
		{"O3", "a pod for a parent that goes", func(w *world) {
			w.as("user", func() { w.ds(func(ds *appsv1.DaemonSet) { ds.DeletionTimestamp = new(metav1.NewTime(start)) }) })
			w.put(revision("web", "web-uid", 2, "h2", "app:2"))
		}},
		{"O3", "adoption by a parent that is gone", func(w *world) {
			orphan := revision("web", "web-uid", 2, "h2", "app:2")
			orphan.OwnerReferences = nil
			w.as("user", func() {
				w.put(orphan)
				w.remove(&appsv1.DaemonSet{}, "web")
			})
			w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.OwnerReferences = owner("web", "web-uid") })
		}},
		{"O4", "a write to what is nobody's", func(w *world) {
			orphan := revision("web", "web-uid", 2, "h2", "app:2")
			orphan.OwnerReferences = nil
			w.as("user", func() { w.put(orphan) })
			w.revision("web-h2", func(r *appsv1.ControllerRevision) { r.Labels["x"] = "y" })
		}},
		{"O4", "a write to what is a ReplicaSet's", func(w *world) {
			p := pod("web", "rs-uid", "n1", "h7", "app:7")
			p.OwnerReferences[0].Kind = "ReplicaSet"
			w.as("user", func() { w.put(p) })
			w.pod(p.Name, func(p *corev1.Pod) { p.Labels["x"] = "y" })
		}},
		{"P1", "two on a node", func(w *world) {
			second(w)
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
		}},
		{"P1", "beside one that is going", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
		}},
		{"P1", "three on a node, with surge", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
			p := pod("web", "web-uid", "n1", "h2", "app:2")
			p.Name += "-again"
			w.put(p)
		}},
		{"P3", "one that conforms", func(w *world) { w.mark("web-n1-h1") }},
		{"P4", "the wrong content", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.remove(&corev1.Pod{}, "web-n1-h1")
			w.put(pod("web", "web-uid", "n1", "h2", "app:1"))
		}},
		{"P4", "a revision that is not there", func(w *world) {
			w.edit("app:2")
			w.mark("web-n1-h1")
			w.remove(&corev1.Pod{}, "web-n1-h1")
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
		}},
		{"P4", "a new label on old content", func(w *world) {
			second(w)
			w.pod("web-n1-h1", func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = "h2" })
		}},
		{"P6", "a delete by name", func(w *world) {
			second(w)
			w.byName = true
			w.mark("web-n1-h1")
		}},
		{"R1", "two at once", func(w *world) {
			second(w)
			w.mark("web-n1-h1")
			w.mark("web-n2-h1")
		}},
		{"R1", "one beside one that broke", func(w *world) {
			second(w)
			w.as("kubelet", func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }) })
			w.report(0, 2)
			w.mark("web-n2-h1")
		}},
		{"R1", "beside one that has not served for long enough", func(w *world) {
			servingFor(w, time.Minute)
			w.mark("web-n2-h1")
		}},
		{"R1", "before the new one serves", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			p := pod("web", "web-uid", "n1", "h2", "app:2")
			p.Status = corev1.PodStatus{}
			w.put(p)
			w.mark("web-n1-h1")
		}},
		{"R2", "two in addition", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			w.put(pod("web", "web-uid", "n1", "h2", "app:2"))
			w.put(pod("web", "web-uid", "n2", "h2", "app:2"))
		}},
		{"R4", "complete with old pods", func(w *world) {
			second(w)
			w.report(3, 3)
		}},
		{"S1", "a negative counter", func(w *world) {
			w.ds(func(ds *appsv1.DaemonSet) { ds.Status.UpdatedNumberScheduled = -1 })
		}},
		{"S1", "more ready than there are", func(w *world) {
			w.ds(func(ds *appsv1.DaemonSet) { ds.Status.NumberReady = 4 })
		}},
		{"S2", "an older generation", func(w *world) {
			second(w)
			w.report(0, 3)
			w.ds(func(ds *appsv1.DaemonSet) { ds.Status.ObservedGeneration = 1 })
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			got := check.Check(w.history(), parents.DaemonSet())
			if len(got) != 1 || got[0].Invariant != test.want {
				t.Fatalf("want one violation of %s, got %d:\n%s", test.want, len(got), story(got))
			}
			if v := got[0]; len(v.Trail) == 0 || v.Trail[len(v.Trail)-1].RV != v.RV || !strings.HasPrefix(v.String(), test.want+" at ") {
				t.Errorf("the trail does not end with the deed: %s", v)
			}
		})
	}
}

// What looks wrong and is not.
func TestGoodHistoriesAreSilent(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(w *world)
	}{
		{"nothing", func(*world) {}},
		{"a rollout and back", func(w *world) {
			second(w)
			for i, node := range []string{"n1", "n2", "n3"} {
				w.replace(node, "h1", "h2", "app:2")
				w.report(int32(i+1), 3)
			}
			w.edit("app:1")
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Revision = 3 })
			for i, node := range []string{"n1", "n2", "n3"} {
				w.replace(node, "h2", "h1", "app:1")
				w.report(int32(i+1), 3)
			}
		}},
		{"a rollout with surge", func(w *world) {
			w.as("user", func() { w.ds(surging(1)) })
			second(w)
			for i, node := range []string{"n1", "n2", "n3"} {
				w.put(pod("web", "web-uid", node, "h2", "app:2"))
				w.mark("web-" + node + "-h1")
				w.as("kubelet", func() { w.remove(&corev1.Pod{}, "web-"+node+"-h1") })
				w.report(int32(i+1), 3)
			}
		}},
		{"a broken pod costs nothing", func(w *world) {
			second(w)
			w.as("kubelet", func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }) })
			w.report(0, 2)
			w.mark("web-n1-h1")
		}},
		{"all have served for long enough", func(w *world) {
			servingFor(w, 30*time.Minute)
			w.mark("web-n2-h1")
		}},
		{"a pod broke when the delete was on its way", func(w *world) {
			second(w)
			w.report(0, 3)
			w.as("kubelet", func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }) })
			w.mark("web-n2-h1")
		}},
		{"the edit came when the delete was on its way", func(w *world) {
			second(w)
			w.replace("n1", "h1", "h2", "app:2")
			w.edit("app:1")
			w.mark("web-n2-h1")
		}},
		{"a user deletes everything", func(w *world) {
			w.as("user", func() {
				for _, node := range []string{"n1", "n2", "n3"} {
					w.mark("web-" + node + "-h1")
				}
				w.remove(&appsv1.ControllerRevision{}, "web-h1")
			})
		}},
		{"an unwanted pod goes", func(w *world) {
			w.as("user", func() {
				w.ds(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
			})
			w.mark("web-n1-h1")
			w.mark("web-n2-h1")
		}},
		{"pods of tainted nodes go, whatever else is down", func(w *world) {
			w.as("user", func() {
				for _, name := range []string{"n1", "n2"} {
					w.put(&corev1.Node{
						ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
						Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}},
					})
				}
			})
			w.as("kubelet", func() { w.pod("web-n3-h1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }) })
			w.revision("web-h1", func(r *appsv1.ControllerRevision) { r.Labels["seen"] = "all of it" })
			w.mark("web-n1-h1")
			w.mark("web-n2-h1")
		}},
		{"one too many goes", func(w *world) {
			p := pod("web", "web-uid", "n1", "h1", "app:1")
			p.Name += "-again"
			w.as("another manager", func() { w.put(p) })
			w.mark("web-n1-h1")
		}},
		{"a failed pod goes", func(w *world) {
			w.as("kubelet", func() { w.pod("web-n1-h1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) })
			w.report(3, 2)
			w.mark("web-n1-h1")
		}},
		{"an orphan is adopted", func(w *world) {
			orphan := revision("web", "web-uid", 1, "h0", "app:0")
			orphan.OwnerReferences = nil
			w.as("user", func() { w.put(orphan) })
			w.revision("web-h0", func(r *appsv1.ControllerRevision) { r.OwnerReferences = owner("web", "web-uid") })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			if got := check.Check(w.history(), parents.DaemonSet()); len(got) != 0 {
				t.Error(story(got))
			}
		})
	}
}

func TestAtRest(t *testing.T) {
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"", "nothing", func(*world) {}},
		{"H1", "the same twice", func(w *world) { w.put(revision("web", "web-uid", 2, "h2", "app:1")) }},
		{"H2", "an adopted number", func(w *world) { w.put(revision("web", "web-uid", 1, "h2", "app:2")) }},
		{"H9", "too many", func(w *world) {
			for i, hash := range []string{"h2", "h3", "h4"} {
				w.put(revision("web", "web-uid", int64(i+2), hash, "app:"+hash))
			}
		}},
		{"C1", "an edit that nobody saw", func(w *world) { w.edit("app:2") }},
		{"S1", "a wrong counter", func(w *world) { w.report(2, 3) }},
		{"X1", "what the old one left", func(w *world) {
			w.remove(&appsv1.DaemonSet{}, "web")
			ds := daemonSet("web", "new-uid", "app:1")
			w.put(ds)
			for _, node := range []string{"n1", "n2", "n3"} {
				w.remove(&corev1.Pod{}, "web-"+node+"-h1")
				w.put(pod("web", "new-uid", node, "h2", "app:1"))
			}
			w.ds(func(ds *appsv1.DaemonSet) { ds.Status = status(1, 3, 3) })
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			got := check.Rest(w.history(), w.rv, parents.DaemonSet())
			if test.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || got[0].Invariant != test.want {
				t.Errorf("want one violation of %q, got %d:\n%s", test.want, len(got), story(got))
			}
		})
	}
}

func TestCompleteWithWrongContentAtRest(t *testing.T) {
	w := newWorld(t)
	second(w)
	w.report(3, 3)
	var names []string
	for _, v := range check.Rest(w.history(), w.rv, parents.DaemonSet()) {
		names = append(names, v.Invariant)
	}
	if want := []string{"S1", "R4", "R4", "R4", "C1"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestQuiet(t *testing.T) {
	w := newWorld(t)
	from := w.rv
	w.as("user", func() { w.edit("app:2") })
	if got := check.Quiet(w.history(), from, w.rv, parents.DaemonSet()); len(got) != 0 {
		t.Error(story(got))
	}
	w.report(0, 3)
	if got := check.Quiet(w.history(), from, w.rv, parents.DaemonSet()); len(got) != 1 || got[0].Invariant != "H8" {
		t.Errorf("want one violation of H8, got %s", story(got))
	}
}

func story(violations []check.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		b.WriteString(v.String() + "\n")
	}
	return b.String()
}
