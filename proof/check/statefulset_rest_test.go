package check_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file is about StatefulSets at rest: what is as asked, what a controller can only wait for, and what it should
// have done.

// missing is a pod that somebody deleted and nobody made again, and a status that says so.
func (w stateful) missing(name string) {
	w.gone("user", name)
	status := get(w.world, &appsv1.StatefulSet{}, "db").Status
	w.report(status.CurrentRevision, status.UpdateRevision)
}

// forget is a user who deletes a revision.
func (w stateful) forget(name string) {
	w.as("user", func() { w.remove(&appsv1.ControllerRevision{}, name) })
}

func TestStatefulSetAtRest(t *testing.T) {
	for _, test := range []struct {
		want, name string
		do         func(w stateful)
	}{
		{"", "nothing", func(stateful) {}},
		{"", "half of it waits behind the partition", func(w stateful) {
			w.partition(2)
			w.second()
			w.update(2, 2)
			w.report("db-r1", "db-r2")
		}},
		{"S3", "all are updated and nobody says so", func(w stateful) {
			w.onDelete()
			w.second()
			for _, n := range []int{0, 1, 2} {
				w.gone("user", fmt.Sprintf("db-%d", n))
				w.put(member(n, 2))
			}
			w.report("db-r1", "db-r2")
		}},
		{"P2", "one too many", func(w stateful) {
			w.as("user", func() { w.put(member(7, 1)) })
			w.report("db-r1", "db-r1")
		}},
		{"", "one too many, and in its order it waits for one that does not serve", func(w stateful) {
			w.scale(2)
			w.unready("db-0")
			w.report("db-r1", "db-r1")
		}},
		{"P2", "one too many, and there is no order", func(w stateful) {
			w.parallel()
			w.scale(2)
			w.unready("db-0")
			w.report("db-r1", "db-r1")
		}},
		{"P2", "two too many, and the lower one does not serve", func(w stateful) {
			w.scale(1)
			w.unready("db-1")
			w.report("db-r1", "db-r1")
		}},
		{"", "two too many, and neither serves", func(w stateful) {
			w.scale(1)
			w.unready("db-1")
			w.unready("db-2")
			w.report("db-r1", "db-r1")
		}},
		{"S3", "none is left, and nobody says so", func(w stateful) {
			w.second()
			w.scale(0)
			for _, name := range []string{"db-2", "db-1", "db-0"} {
				w.gone(manager, name)
			}
			w.report("db-r1", "db-r2")
		}},
		{"", "none is left, and the partition holds", func(w stateful) {
			w.partition(1)
			w.second()
			w.scale(0)
			for _, name := range []string{"db-2", "db-1", "db-0"} {
				w.gone(manager, name)
			}
			w.report("db-r1", "db-r2")
		}},
		{"", "admission took a claim away", func(w stateful) { w.mutated("db-2") }},
		{"P2", "one too many, and nothing that stays is down", func(w stateful) {
			w.scale(2)
			w.unready("db-2")
			w.report("db-r1", "db-r1")
		}},
		{"", "one lacks its claim", func(w stateful) { w.adopted("db-2") }},
		{"C1", "one is missing", func(w stateful) { w.missing("db-2") }},
		{"C1", "one is missing, and one behind it does not serve", func(w stateful) {
			w.unready("db-2")
			w.missing("db-0")
		}},
		{"", "one is missing, and in its order it waits for one that does not serve", func(w stateful) {
			w.unready("db-0")
			w.missing("db-2")
		}},
		{"C1", "one is missing, one before it does not serve, and there is no order", func(w stateful) {
			w.parallel()
			w.unready("db-0")
			w.missing("db-2")
		}},
		{"", "one is missing, and its name is that of a stranger", func(w stateful) {
			w.missing("db-2")
			w.as("user", func() {
				stranger := member(2, 1)
				stranger.OwnerReferences, stranger.Labels = nil, nil
				w.put(stranger)
			})
		}},
		{"C1", "one is missing, and its name is that of an orphan", func(w stateful) {
			w.spec(func(spec *appsv1.StatefulSetSpec) { spec.Selector = &metav1.LabelSelector{} })
			w.missing("db-2")
			w.as("user", func() {
				orphan := member(2, 1)
				orphan.OwnerReferences = nil
				w.put(orphan)
			})
		}},
		{"", "one is missing below the partition, and the current revision is gone", func(w stateful) {
			w.partition(2)
			w.second()
			w.update(2, 2)
			w.forget("db-r1")
			w.missing("db-1")
		}},
		{"C1", "an old one is left above the partition, beside one that is missing and whose revision is gone", func(w stateful) {
			w.partition(1)
			w.second()
			w.update(2, 2)
			w.forget("db-r1")
			w.missing("db-0")
		}},
		{"C1", "one is missing where the rollout is not, and the current revision is gone", func(w stateful) {
			w.second()
			w.forget("db-r1")
			w.missing("db-1")
		}},
		{"C1", "one is missing where the rollout is, and the current revision is gone", func(w stateful) {
			w.second()
			w.forget("db-r1")
			w.missing("db-2")
		}},
		{"C1", "one is missing that its user took, and the current revision is gone", func(w stateful) {
			w.onDelete()
			w.second()
			w.forget("db-r1")
			w.missing("db-1")
		}},
		{"C1", "one is missing, and the revision that is gone is the only one", func(w stateful) {
			w.forget("db-r1")
			w.missing("db-0")
		}},
		{"S1", "a wrong counter", func(w stateful) {
			w.gone("user", "db-2")
			w.put(member(2, 1))
			w.unready("db-2")
			w.set(func(set *appsv1.StatefulSet) { set.Status.AvailableReplicas = 2 })
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newStateful(t)
			test.do(w)
			got := check.Rest(w.history(), w.rv, parents.StatefulSet())
			if test.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || got[0].Invariant != test.want {
				t.Errorf("want one violation of %q, got %d:\n%s", test.want, len(got), story(got))
			}
		})
	}
}
