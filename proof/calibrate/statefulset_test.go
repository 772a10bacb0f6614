package calibrate_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file is what the upstream StatefulSet controller gets wrong.

func statefulSets(t *testing.T) *room {
	t.Helper()
	return newRoom(t, sandbox.StatefulSet, parents.StatefulSet())
}

// statefulSet creates one named web.
func (r *room) statefulSet(replicas int32, change func(*appsv1.StatefulSetSpec)) {
	r.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(replicas), Selector: selector(), Template: template("app:1")},
	}
	change(&set.Spec)
	if _, err := r.User.AppsV1().StatefulSets(r.Namespace).Create(r.Context(), set, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// patch edits the StatefulSet.
func (r *room) patch(data string) {
	r.Helper()
	sets := r.User.AppsV1().StatefulSets(r.Namespace)
	if _, err := sets.Patch(r.Context(), "web", types.StrategicMergePatchType, []byte(data), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

func (r *room) image(image string) {
	r.Helper()
	r.patch(imagePatch(image))
}

// until waits until the controller has seen the last edit and its status is so.
func (r *room) until(what string, is func(appsv1.StatefulSetStatus) bool) {
	r.Helper()
	r.Eventually(what, func(ctx context.Context) error {
		set, err := r.User.AppsV1().StatefulSets(r.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && (set.Status.ObservedGeneration < set.Generation || !is(set.Status)) {
			err = fmt.Errorf("generation %d, status %v", set.Generation, set.Status.String())
		}
		return err
	})
}

func (r *room) updated(replicas, updated int32) {
	r.Helper()
	r.until("wait for the rollout", func(s appsv1.StatefulSetStatus) bool {
		return s.Replicas == replicas && s.AvailableReplicas == replicas && s.UpdatedReplicas == updated
	})
}

// Number 16. Nobody told the clean-up on the error path what is in use.
func TestStatefulSetDeletesItsCurrentRevision(t *testing.T) {
	r := statefulSets(t)
	m := r.manager()
	r.statefulSet(3, func(spec *appsv1.StatefulSetSpec) {
		spec.RevisionHistoryLimit = new(int32(1))
		spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
	})
	r.updated(3, 3)
	current := r.revisions()[0].Name
	r.image("app:2")
	r.updated(3, 2)
	r.image("app:3") // app:2 is history now, as much of it as may be kept
	r.updated(3, 2)

	m.kill()
	r.image("app:4")
	r.killPod("web-0")
	m.faults.Refuse(fault.Refusal{
		Resource: schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, Verb: "create",
		Status: http.StatusInternalServerError, Times: 1,
	})
	m.start()
	r.podRuns("web-2", "app:4")
	r.until("wait for the rollout", func(s appsv1.StatefulSetStatus) bool { return s.AvailableReplicas == 3 })
	if m.faults.Hits() != 1 {
		t.Fatalf("%d writes failed, want the first one:\n%s", m.faults.Hits(), m.faults.Log())
	}

	found := r.ever()
	r.finds(found, "H3", "controllerrevisions", current)
	r.findsEither(found, []string{"P5", "P4"}, "pods", "web-0") // see TestTheSweepFindsThatTheCurrentRevisionIsDeleted
}

// revisions returns the revisions, oldest first.
func (r *room) revisions() []appsv1.ControllerRevision {
	r.Helper()
	list, err := r.User.AppsV1().ControllerRevisions(r.Namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// Number 41. Of a pod that never was current, one current pod less.
func TestStatefulSetCountsBelowZero(t *testing.T) {
	r := statefulSets(t)
	m := r.manager()
	r.statefulSet(1, func(spec *appsv1.StatefulSetSpec) { spec.PodManagementPolicy = appsv1.ParallelPodManagement })
	r.updated(1, 1)
	r.image("broken:2") // is never promoted
	r.until("wait for the broken pod", func(s appsv1.StatefulSetStatus) bool {
		return s.Replicas == 1 && s.UpdatedReplicas == 1 && s.CurrentReplicas == 0
	})
	r.image("app:3")
	r.updated(1, 1)

	found := r.ever()
	t.Log(m.faults.Log())
	r.finds(found, "S1", "statefulsets", "web")
	for _, v := range found {
		if v.Invariant == "S1" && !strings.Contains(v.Sentence, "refused with 422, because currentReplicas is -1") {
			t.Errorf("found something else: %s", v)
		}
	}
}

// Number 40. All of no pods are updated.
func TestStatefulSetPromotesWithoutPods(t *testing.T) {
	r := statefulSets(t)
	r.manager()
	r.statefulSet(2, func(spec *appsv1.StatefulSetSpec) {
		spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
	})
	r.updated(2, 2)
	r.image("app:2")
	r.updated(2, 1)
	r.patch(`{"spec":{"replicas":0}}`)
	r.updated(0, 0)

	found := r.ever()
	r.finds(found, "S3", "statefulsets", "web")
}

// Kubernetes#67250, #60164 and #141095: under OrderedReady neither an undo nor another edit replaces a pod that never
// becomes ready. The pass that sees the last edit deletes nothing. The scenarios sts-broken-then-undo,
// sts-broken-from-birth and sts-broken-then-edited play the same on cairn.
func TestStatefulSetCannotLeaveABrokenRevision(t *testing.T) {
	for issue, images := range map[string][]string{
		"67250":  {"app:1", "broken:2", "app:1"},
		"60164":  {"broken:1", "app:2"},
		"141095": {"app:1", "broken:2", "app:3"},
	} {
		t.Run(issue, func(t *testing.T) {
			r := statefulSets(t)
			r.manager()
			r.statefulSet(2, func(spec *appsv1.StatefulSetSpec) { spec.Template = template(images[0]) })
			stuck, broken := "web-0", images[0]
			if len(images) == 3 {
				stuck, broken = "web-1", images[1]
				r.updated(2, 2)
				r.image(broken)
			}
			r.podRuns(stuck, broken)
			r.image(images[len(images)-1])
			r.until("wait for a pass", func(appsv1.StatefulSetStatus) bool { return true })
			pod, err := r.User.CoreV1().Pods(r.Namespace).Get(r.Context(), stuck, metav1.GetOptions{})
			if err != nil || pod.DeletionTimestamp != nil || pod.Spec.Containers[0].Image != broken {
				t.Errorf("%v, or the pod goes: this is fixed upstream", err)
			}
		})
	}
}
