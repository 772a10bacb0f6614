package check_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file builds StatefulSets by hand, and breaks each of their promises once, beside a history that looks like it
// and breaks none.

// stateful is a store with the StatefulSet db: three pods of revision db-r1.
type stateful struct{ *world }

func newStateful(t testing.TB) stateful {
	t.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", UID: "db-uid", Generation: 1, CreationTimestamp: metav1.NewTime(start)},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), Template: template("app:1"), RevisionHistoryLimit: new(int32(1)),
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentReplicas: 3, UpdatedReplicas: 3,
			CurrentRevision: "db-r1", UpdateRevision: "db-r1",
		},
	}
	return stateful{worldOf(t, set, snapshot(1, "app:1"), member(0, 1), member(1, 1), member(2, 1))}
}

// snapshot is revision db-rN, which asks for an image.
func snapshot(number int64, image string) *appsv1.ControllerRevision {
	r := revision("db", "db-uid", number, fmt.Sprintf("r%d", number), image)
	r.OwnerReferences[0].Kind = "StatefulSet"
	return r
}

// member is pod db-N of revision db-rM, with image app:M and its claim, ready.
func member(ordinal, revision int) *corev1.Pod {
	p := pod("db", "db-uid", "n1", "", fmt.Sprintf("app:%d", revision))
	p.Name = fmt.Sprintf("db-%d", ordinal)
	p.OwnerReferences[0].Kind = "StatefulSet"
	p.Labels[appsv1.StatefulSetRevisionLabel] = fmt.Sprintf("db-r%d", revision)
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name},
	}}}
	return p
}

func (w stateful) set(change func(*appsv1.StatefulSet)) {
	set := get(w.world, &appsv1.StatefulSet{}, "db")
	change(set)
	w.put(set)
}

// spec is a user who edits.
func (w stateful) spec(change func(*appsv1.StatefulSetSpec)) {
	w.as("user", func() {
		w.set(func(set *appsv1.StatefulSet) {
			change(&set.Spec)
			set.Generation++
		})
	})
}

func (w stateful) scale(replicas int32) {
	w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Replicas = &replicas })
}

func (w stateful) partition(n int32) {
	w.spec(func(spec *appsv1.StatefulSetSpec) {
		spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	})
}

func (w stateful) unavailable(n intstr.IntOrString) {
	w.spec(func(spec *appsv1.StatefulSetSpec) {
		spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &n}
	})
}

func (w stateful) onDelete() {
	w.spec(func(spec *appsv1.StatefulSetSpec) {
		spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	})
}

func (w stateful) parallel() {
	w.spec(func(spec *appsv1.StatefulSetSpec) { spec.PodManagementPolicy = appsv1.ParallelPodManagement })
}

func (w stateful) image(image string) {
	w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Template.Spec.Containers[0].Image = image })
}

// second is an edit to app:2, which the controller has recorded and reported.
func (w stateful) second() {
	w.image("app:2")
	w.put(snapshot(2, "app:2"))
	w.report("db-r1", "db-r2")
}

// report counts as a controller should, and says which revisions there are.
func (w stateful) report(current, update string) {
	w.set(func(set *appsv1.StatefulSet) {
		s := appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, CurrentRevision: current, UpdateRevision: update}
		for _, o := range w.objects {
			p, ok := o.(*corev1.Pod)
			if !ok || len(p.OwnerReferences) == 0 || p.OwnerReferences[0].UID != set.UID {
				continue
			}
			s.Replicas++
			if len(p.Status.Conditions) > 0 {
				s.ReadyReplicas++
				s.AvailableReplicas++
			}
			if p.DeletionTimestamp == nil && p.Labels[appsv1.StatefulSetRevisionLabel] == current {
				s.CurrentReplicas++
			}
			if p.DeletionTimestamp == nil && p.Labels[appsv1.StatefulSetRevisionLabel] == update {
				s.UpdatedReplicas++
			}
		}
		set.Status = s
	})
}

// gone ends a pod that somebody deletes.
func (w stateful) gone(who, name string) {
	w.as(who, func() { w.mark(name) })
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, name) })
}

// unready is a pod that stops to serve.
func (w stateful) unready(name string) {
	w.as("kubelet", func() {
		w.pod(name, func(p *corev1.Pod) {
			crashes := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{crashes}}
		})
	})
}

// starting is a pod that was never ready.
func (w stateful) starting(name string, container corev1.ContainerStatus) {
	w.as("kubelet", func() {
		w.pod(name, func(p *corev1.Pod) {
			since := metav1.NewTime(start)
			p.Status = corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &since, ContainerStatuses: []corev1.ContainerStatus{container},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: since}},
			}
		})
	})
}

// update replaces one pod.
func (w stateful) update(ordinal, revision int) {
	w.gone(manager, fmt.Sprintf("db-%d", ordinal))
	w.put(member(ordinal, revision))
}

// spoiled is a rollout to db-r2 that has come to db-2, when somebody puts something unreadable in the place of that
// revision, stamped for a generation of the set.
func (w stateful) spoiled(generation string) {
	w.second()
	w.update(2, 2)
	w.as("user", func() {
		w.remove(&appsv1.ControllerRevision{}, "db-r2")
		r := snapshot(2, "app:2")
		r.UID = "another"
		r.Annotations = map[string]string{history.ParentUIDAnnotation: "db-uid", history.ParentGenerationAnnotation: generation}
		r.Data.Raw = []byte(`{"spec":{"template":"none"}}`)
		w.put(r)
	})
}

// promoted is a set whose pod db-0, below the partition, came from db-r2 and is gone, when somebody says that this is
// the current revision. It returns the last moment before.
func (w stateful) promoted() (before uint64) {
	w.partition(1)
	w.second()
	w.gone("user", "db-0")
	w.as("user", func() { w.put(member(0, 2)) })
	before = w.rv
	w.as("user", func() { w.report("db-r2", "db-r2") })
	w.gone("user", "db-0")
	return before
}

// knowing is a pass whose cache of sets had reached a resource version, and those of everything else what there is now.
func (w stateful) knowing(sets uint64) *check.Pass {
	p := seeing("1", w.rv)
	p.Views[resourceOf(&appsv1.StatefulSet{})] = sets
	return p
}

// promise is one that is broken, and what looks like it and is none.
type promise struct {
	want, name string
	bad, good  func(w stateful)
}

var statefulPromises = []promise{
	{"P1", "one pod for each ordinal", func(w stateful) {
		p := member(2, 1)
		p.Name = "db-02"
		w.put(p)
	}, func(w stateful) {
		w.gone("user", "db-2")
		w.put(member(2, 1))
	}},
	{"P2", "an ordinal that is asked for", func(w stateful) { w.put(member(3, 1)) }, func(w stateful) {
		w.scale(4)
		w.put(member(3, 1))
	}},
	{"P2", "the ordinals begin elsewhere", func(w stateful) {
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} })
		w.report("db-r1", "db-r1")
		w.put(member(3, 1))
		w.gone(manager, "db-0")
		w.put(member(0, 1))
	}, func(w stateful) {
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} })
		w.put(member(3, 1))
		w.gone(manager, "db-0")
	}},
	{"P3", "as asked", func(w stateful) { w.mark("db-2") }, func(w stateful) {
		w.second()
		w.mark("db-2")
	}},
	{"P3", "as asked, but for the volumes of an earlier set", func(w stateful) {
		w.adopted("db-2")
		w.mark("db-2")
	}, func(w stateful) {
		w.second()
		w.adopted("db-2")
		w.mark("db-2")
	}},
	{"P3", "below the partition, from the current revision", func(w stateful) {
		w.partition(2)
		w.second()
		w.update(2, 2)
		w.mark("db-1")
	}, func(w stateful) {
		w.partition(1)
		w.second()
		w.update(2, 2)
		w.mark("db-1")
	}},
	{"P4", "what the revision asks for", func(w stateful) {
		w.second()
		p := member(2, 1)
		p.Labels[appsv1.StatefulSetRevisionLabel] = "db-r2"
		w.gone(manager, "db-2")
		w.put(p)
	}, func(w stateful) {
		w.second()
		p := member(2, 2)
		p.Spec.Hostname = p.Name
		w.gone(manager, "db-2")
		w.put(p)
	}},
	{"P5", "below the partition", func(w stateful) {
		w.partition(2)
		w.second()
		w.gone("user", "db-0")
		w.put(member(0, 2))
	}, func(w stateful) {
		w.partition(2)
		w.second()
		w.gone("user", "db-0")
		w.put(member(0, 1))
	}},
	{"P5", "a partition above what was updated", func(w stateful) {
		w.second()
		w.update(2, 2)
		w.partition(3)
		w.report("db-r1", "db-r2")
		w.gone("user", "db-1")
		w.put(member(1, 2))
	}, func(w stateful) {
		w.second()
		w.update(2, 2)
		w.partition(3)
		w.report("db-r1", "db-r2")
		w.gone("user", "db-2")
		w.put(member(2, 2)) // as it was
	}},
	{"R1", "one at a time", func(w stateful) {
		w.parallel()
		w.second()
		w.mark("db-2")
		w.mark("db-1")
	}, func(w stateful) {
		w.parallel()
		w.second()
		w.unready("db-1")
		w.mark("db-1")
	}},
	{"R1", "as many at a time as the spec says", func(w stateful) {
		w.unavailable(intstr.FromString("60%")) // of three, rounded down
		w.second()
		w.mark("db-2")
		w.mark("db-1")
	}, func(w stateful) {
		w.unavailable(intstr.FromInt32(2))
		w.second()
		w.mark("db-2")
		w.mark("db-1")
	}},
	{"R1", "one is gone that is to come back", func(w stateful) {
		w.parallel()
		w.second()
		w.gone(manager, "db-0")
		w.partition(1)
		w.mark("db-2")
	}, func(w stateful) { // it may never be made
		w.parallel()
		w.second()
		w.gone(manager, "db-0")
		w.partition(1)
		w.forget("db-r1")
		w.mark("db-2")
	}},
	{"R1", "none if they are left to the user", func(w stateful) {
		w.onDelete()
		w.second()
		w.mark("db-2")
	}, func(w stateful) {
		w.onDelete()
		w.second()
		w.as("user", func() { w.mark("db-2") })
	}},
	{"R3", "made one after the other", func(w stateful) {
		w.gone("user", "db-1")
		w.gone("user", "db-2")
		w.put(member(2, 1))
	}, func(w stateful) {
		w.gone("user", "db-1")
		w.gone("user", "db-2")
		w.put(member(1, 1))
		w.put(member(2, 1))
	}},
	{"R3", "made before one whose revision is lost", func(w stateful) {
		w.partition(1)
		w.second()
		w.gone("user", "db-0")
		w.gone("user", "db-2")
		w.put(member(2, 2))
	}, func(w stateful) { // that one may never be made
		w.partition(1)
		w.second()
		w.forget("db-r1")
		w.gone("user", "db-0")
		w.gone("user", "db-2")
		w.put(member(2, 2))
	}},
	{"R3", "made when the one before it serves", func(w stateful) {
		w.gone("user", "db-1")
		w.gone("user", "db-2")
		p := member(1, 1)
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		w.put(p)
		w.put(member(2, 1))
	}, func(w stateful) { // the controller need not know yet that it broke
		w.gone("user", "db-2")
		w.unready("db-1")
		w.put(member(2, 1))
	}},
	{"R3", "in no order if they are parallel", func(w stateful) {
		w.gone("user", "db-1")
		w.gone("user", "db-2")
		w.parallel()
		w.report("db-r1", "db-r1")
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement })
		w.report("db-r1", "db-r1")
		w.put(member(2, 1))
	}, func(w stateful) {
		w.gone("user", "db-1")
		w.gone("user", "db-2")
		w.parallel()
		w.put(member(2, 1))
	}},
	{"R3", "updated from the end", func(w stateful) {
		w.second()
		w.mark("db-1")
	}, func(w stateful) {
		w.second()
		w.update(2, 2)
		w.mark("db-1")
	}},
	{"R3", "what is broken may be repaired first", func(w stateful) {
		w.second()
		w.mark("db-0")
	}, func(w stateful) {
		w.second()
		w.unready("db-0")
		w.mark("db-0")
	}},
	{"R3", "what is only starting is left to start", func(w stateful) {
		w.second()
		w.starting("db-2", corev1.ContainerStatus{})
		w.mark("db-2")
	}, func(w stateful) {
		w.second()
		w.starting("db-2", corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}})
		w.mark("db-2")
	}},
	{"R3", "what is only starting goes if somebody wants it so", func(w stateful) {
		w.second()
		w.starting("db-2", corev1.ContainerStatus{})
		w.spec(func(*appsv1.StatefulSetSpec) {})
		w.mark("db-2")
	}, func(w stateful) {
		w.second()
		w.starting("db-2", corev1.ContainerStatus{})
		w.as("user", func() {
			w.set(func(set *appsv1.StatefulSet) {
				set.Annotations = map[string]string{"cairn.dev/replace-never-ready": "true"}
			})
		})
		w.mark("db-2")
	}},
	{"R3", "scaled down from the end", func(w stateful) {
		w.scale(1)
		w.mark("db-1")
	}, func(w stateful) {
		w.scale(1)
		w.gone(manager, "db-2")
		w.mark("db-1")
	}},
	{"R3", "scaled down while no other one does not serve before one that does not", func(w stateful) {
		w.scale(0)
		w.unready("db-0")
		w.unready("db-2")
		w.report("db-r1", "db-r1") // its controller has seen that
		w.mark("db-2")
	}, func(w stateful) {
		w.scale(0)
		w.unready("db-2")
		w.report("db-r1", "db-r1")
		w.mark("db-2") // it is the one that goes
	}},
	{"R3", "scaled down while the lowest that does not serve stays", func(w stateful) {
		w.scale(1)
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.mark("db-2")
	}, func(w stateful) {
		w.scale(0)
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.mark("db-2") // upstream's order
	}},
	{"R3", "scaled down while all that stay serve", func(w stateful) {
		w.scale(2)
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.mark("db-2")
	}, func(w stateful) {
		w.scale(2)
		w.unready("db-0")
		w.mark("db-2") // its controller need not know yet
	}},
	{"R3", "scaled down in no order if they are parallel", func(w stateful) {
		w.parallel()
		w.scale(0)
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.spec(func(spec *appsv1.StatefulSetSpec) { spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement })
		w.report("db-r1", "db-r1")
		w.mark("db-1")
	}, func(w stateful) {
		w.parallel()
		w.scale(0)
		w.unready("db-0")
		w.report("db-r1", "db-r1")
		w.mark("db-1")
	}},
	{"R3", "what is updated, by a revision that nobody can read any more", func(w stateful) {
		w.spoiled("1")
		w.mark("db-1")
	}, func(w stateful) {
		w.spoiled("2")
		w.mark("db-1")
	}},
	{"P5", "below the partition, by the status that was read", func(w stateful) {
		w.promoted()
		w.in(w.knowing(w.rv), func() { w.put(member(0, 1)) })
	}, func(w stateful) {
		before := w.promoted()
		w.in(w.knowing(before), func() { w.put(member(0, 1)) })
	}},
	{"P3", "below the partition, by the status that was read", func(w stateful) {
		w.promoted()
		w.put(member(0, 2))
		w.image("app:3")
		w.unready("db-0")
		w.in(w.knowing(w.rv), func() { w.mark("db-0") })
	}, func(w stateful) {
		before := w.promoted()
		w.put(member(0, 2))
		w.image("app:3")
		w.unready("db-0")
		w.in(w.knowing(before), func() { w.mark("db-0") })
	}},
	{"S1", "together not more than there are", func(w stateful) {
		w.second()
		w.set(func(set *appsv1.StatefulSet) { set.Status.UpdatedReplicas = 1 })
	}, func(w stateful) {
		w.second()
		w.update(2, 2)
		w.report("db-r1", "db-r2")
	}},
	{"S1", "one revision is both", func(w stateful) {
		w.set(func(set *appsv1.StatefulSet) { set.Status.CurrentReplicas = 2 })
	}, func(w stateful) {
		w.gone("user", "db-2")
		w.report("db-r1", "db-r1")
	}},
	{"S3", "promoted when all are updated", func(w stateful) {
		w.second()
		w.update(2, 2)
		w.update(1, 2)
		w.report("db-r2", "db-r2")
	}, func(w stateful) {
		w.second()
		w.update(2, 2)
		w.update(1, 2)
		w.update(0, 2)
		w.as("user", func() { w.mark("db-1") }) // nobody can have seen this
		w.report("db-r2", "db-r2")
	}},
	{"S3", "promoted when none is asked for and none is held back", func(w stateful) {
		w.partition(1)
		w.second()
		w.scale(0)
		for _, name := range []string{"db-2", "db-1", "db-0"} {
			w.gone(manager, name)
		}
		w.report("db-r2", "db-r2")
	}, func(w stateful) {
		w.second()
		w.scale(0)
		for _, name := range []string{"db-2", "db-1", "db-0"} {
			w.gone(manager, name)
		}
		w.report("db-r2", "db-r2")
	}},
	{"S3", "promoted when none is asked for and none is left", func(w stateful) {
		w.second()
		w.scale(0)
		w.gone(manager, "db-2")
		w.report("db-r2", "db-r2")
	}, func(w stateful) {
		w.second()
		w.scale(0)
		w.gone(manager, "db-2")
		w.report("db-r1", "db-r2")
	}},
	{"P3", "as asked, but for what admission changed", func(w stateful) {
		w.mutated("db-2")
		w.mark("db-2") // what takes its place will be changed as well
	}, func(w stateful) {
		w.second()
		w.mutated("db-2")
		w.mark("db-2")
	}},
	{"S3", "promoted once it is so", func(w stateful) {
		w.second()
		w.update(2, 2)
		w.report("db-r2", "db-r2")
		w.report("db-r2", "db-r2")
	}, func(w stateful) {
		w.second()
		for _, n := range []int{2, 1, 0} {
			w.update(n, 2)
			w.report("db-r1", "db-r2")
		}
		w.report("db-r2", "db-r2")
	}},
	{"H3", "a revision that status names", func(w stateful) {
		w.second()
		w.scale(0)
		for _, name := range []string{"db-2", "db-1", "db-0"} {
			w.gone(manager, name)
		}
		w.remove(&appsv1.ControllerRevision{}, "db-r1")
	}, func(w stateful) {
		w.put(snapshot(2, "app:2"))
		w.remove(&appsv1.ControllerRevision{}, "db-r2")
	}},
}

func TestStatefulSetPromises(t *testing.T) {
	for _, p := range slices.Concat(statefulPromises, nameplates, storage) {
		t.Run(p.want+" "+p.name, func(t *testing.T) {
			broken := newStateful(t)
			p.bad(broken)
			if got := check.Check(broken.history(), parents.StatefulSet()); len(got) != 1 || got[0].Invariant != p.want {
				t.Errorf("want one violation of %s, got %d:\n%s", p.want, len(got), story(got))
			}
			kept := newStateful(t)
			p.good(kept)
			if got := check.Check(kept.history(), parents.StatefulSet()); len(got) != 0 {
				t.Errorf("want none, got %d:\n%s", len(got), story(got))
			}
		})
	}
}

// A status that says that something else is current does not make it so: pods below the partition are judged by what
// was.
func TestAWrongPromotionChangesNothing(t *testing.T) {
	w := newStateful(t)
	w.partition(2)
	w.second()
	w.report("db-r2", "db-r2")
	w.gone("user", "db-0")
	w.put(member(0, 2))
	got := check.Check(w.history(), parents.StatefulSet())
	if len(got) != 2 || got[0].Invariant != "S3" || got[1].Invariant != "P5" {
		t.Errorf("want S3 and P5, got:\n%s", story(got))
	}
}
