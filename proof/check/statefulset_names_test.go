package check_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file is about the names of revisions in a StatefulSet's status and on its pods, when somebody copies revisions,
// deletes them, or makes others under their names.

// knowing is a pass whose caches had reached a resource version.
func knowing(rv uint64) *check.Pass {
	return &check.Pass{ID: "1", Instance: "a", Views: map[schema.GroupVersionResource]uint64{
		podResource: rv, revisionResources: rv, appsv1.SchemeGroupVersion.WithResource("statefulsets"): rv,
	}}
}

// copied is a user who makes revision db-rN with the content of another one.
func (w stateful) copied(number int64, image string) {
	w.as("user", func() { w.put(snapshot(number, image)) })
}

// named is a pod that says that it comes from revision db-rN.
func named(p *corev1.Pod, revision int) *corev1.Pod {
	p.Labels[appsv1.StatefulSetRevisionLabel] = fmt.Sprintf("db-r%d", revision)
	return p
}

// nameplates are promises, like the others.
var nameplates = []promise{
	{"S3", "promoted what is not equal", func(w stateful) {
		w.second()
		w.copied(3, "app:2")
		w.report("db-r3", "db-r2")
	}, func(w stateful) {
		w.second()
		w.copied(3, "app:1") // the duplicate takes the place of the first
		w.report("db-r3", "db-r2")
	}},
	{"S3", "promoted what is equal, and somebody else's", func(w stateful) {
		w.second()
		other := snapshot(3, "app:1")
		other.OwnerReferences[0].UID = "other"
		w.as("user", func() { w.put(other) })
		w.report("db-r3", "db-r2")
	}, func(w stateful) {
		w.second()
		w.copied(3, "app:1")
		view := w.rv
		w.forget("db-r1") // nobody can have seen this
		w.in(knowing(view), func() { w.report("db-r3", "db-r2") })
	}},
	{"S3", "promoted what was equal to one that is gone", func(w stateful) {
		w.second()
		w.copied(3, "app:1")
		w.forget("db-r1")
		w.in(knowing(w.rv), func() { w.report("db-r3", "db-r2") })
	}, func(w stateful) {
		w.second()
		for n := range 3 {
			w.update(2-n, 2)
		}
		view := w.rv
		w.forget("db-r2") // nor this
		w.in(knowing(view), func() { w.report("db-r2", "db-r2") })
	}},
	{"R4", "updated to what was asked for before", func(w stateful) {
		w.second()
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Template.Spec.Containers[0].Image = "app:3" })
		w.report("db-r1", "db-r2")
	}, func(w stateful) {
		w.second()
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Template.Spec.Containers[0].Image = "app:3" })
		w.put(snapshot(3, "app:3"))
		w.report("db-r1", "db-r3")
	}},
	{"R4", "updated to something else", func(w stateful) {
		w.second()
		w.copied(3, "app:3")
		w.report("db-r1", "db-r3")
	}, func(w stateful) {
		w.second()
		w.copied(3, "app:2")
		w.report("db-r1", "db-r3")
	}},
	{"R4", "the end of a rollout to another revision of the name", func(w stateful) {
		w.as("user", func() { w.pod("db-0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:9" }) })
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.as("kubelet", func() { w.pod("db-0", func(p *corev1.Pod) { p.Status = member(0, 1).Status }) })
		w.report("db-r1", "db-r1")
	}, func(w stateful) {
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.forget("db-r1")
		w.copied(1, "app:9") // the pods are as asked, and the revision is not
		w.as("user", func() { w.pod("db-0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:9" }) })
		w.as("kubelet", func() { w.pod("db-0", func(p *corev1.Pod) { p.Status = member(0, 1).Status }) })
		w.report("db-r1", "db-r1")
	}},
	{"R4", "the end of a rollout with one too many", func(w stateful) {
		w.scale(2)
		w.as("user", func() { w.pod("db-0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:9" }) })
		w.unready("db-1")
		w.gone(manager, "db-2")
		w.report("db-r1", "db-r1")
		w.as("kubelet", func() { w.pod("db-1", func(p *corev1.Pod) { p.Status = member(1, 1).Status }) })
		w.report("db-r1", "db-r1")
	}, func(w stateful) { // of the three, two are updated and available: not the two that are asked for
		w.scale(2)
		w.as("user", func() {
			w.pod("db-0", func(p *corev1.Pod) {
				p.Spec.Containers[0].Image = "app:9"
				delete(p.Labels, appsv1.StatefulSetRevisionLabel)
			})
		})
		w.unready("db-1")
		w.report("db-r1", "db-r1")
	}},
	{"P5", "a duplicate of the current revision", func(w stateful) {
		w.partition(2)
		w.second()
		w.copied(3, "app:2")
		w.gone("user", "db-0")
		w.put(named(member(0, 2), 3))
	}, func(w stateful) {
		w.partition(2)
		w.second()
		w.copied(3, "app:1")
		w.gone("user", "db-0")
		w.put(named(member(0, 1), 3))
	}},
	{"R3", "before one whose revision is gone", func(w stateful) {
		w.second()
		w.forget("db-r1")
		w.in(knowing(w.rv), func() { w.mark("db-0") })
	}, func(w stateful) {
		w.second()
		w.update(2, 2)
		w.update(1, 2)
		view := w.rv
		w.forget("db-r2") // nobody can have seen this
		w.in(knowing(view), func() { w.mark("db-0") })
	}},
	{"P4", "told that it comes from another revision", func(w stateful) {
		w.second()
		w.pod("db-2", func(p *corev1.Pod) { p.Labels[appsv1.StatefulSetRevisionLabel] = "db-r2" })
	}, func(w stateful) { // what it names is another one than it was made from, and that is not the fault of who renames it
		w.forget("db-r1")
		w.copied(1, "app:5")
		w.copied(3, "app:5")
		w.pod("db-2", func(p *corev1.Pod) { p.Labels[appsv1.StatefulSetRevisionLabel] = "db-r3" })
	}},
}
