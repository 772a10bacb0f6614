package check_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file holds what may be missing at rest: a child that is held back, if nobody knows what it came from, and the
// status says so.

func TestHeldBackAndLost(t *testing.T) {
	lose := func(w cats) {
		w.as("user", func() { w.remove(catRevision(1, "app:1"), catRevision(1, "app:1").GetName()) })
	}
	adopted := func(w cats) {
		w.claims("app:1")
		w.as("user", func() {
			w.remove(&corev1.Pod{}, "cats-0")
			planted := cat(0, "app:1")
			planted.OwnerReferences = nil
			w.put(planted)
		})
		w.pod("cats-0", func(p *corev1.Pod) { p.OwnerReferences = catOwner() })
	}
	const (
		missing = "Pod cats-0 is missing and is not made from another revision"
		unsaid  = "cats-0 is held back and its revision is lost, and no condition of the status says so"
		unmade  = "nothing is at cats-0, and nothing stands in the way"
	)
	for _, test := range []struct {
		name, says, want string
		do               func(w cats)
	}{
		{"its revision was deleted", "Pod cats-0 is held; " + missing, "", lose},
		{"beside something else", "Pod cats-7 exists already. Besides, Pod cats-0 is held; " + missing, "", lose},
		{"with its namespace", strings.Replace(missing, "cats-0", "sim/cats-0", 1), "", lose},
		{"nobody says so", "Pod cats-7 exists already", unsaid, lose},
		{"another one is named", strings.Replace(missing, "cats-0", "cats-00", 1), unsaid, lose},
		{"its revision is there", missing, unmade, func(cats) {}},
		{"no revision ever said what it was made from", missing, "", adopted},
		{"one of them said so later", missing, unmade, func(w cats) {
			adopted(w)
			w.claims("app:1", 0)
		}},
		{"its revision went with the parent before", missing, "", func(w cats) {
			lose(w)
			again := get(w.world, catset.New("", "", "", 0, ""), "cats")
			w.as("user", func() { w.remove(again, "cats") })
			again.SetUID("new-uid")
			w.as("user", func() { w.put(again) })
			log := get(w.world, catRevision(2, "app:2"), catRevision(2, "app:2").GetName())
			refs := log.GetOwnerReferences()
			refs[0].UID = "new-uid"
			log.SetOwnerReferences(refs)
			w.put(log)
			for _, name := range []string{"cats-1", "cats-2"} {
				w.pod(name, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "new-uid" })
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCats(t, catset.HeldBack)
			w.edited()
			w.claims("app:2", 1, 2)
			w.roll(1)
			w.roll(2)
			w.put(again(w, config("app:2")))
			test.do(w)
			w.as("user", func() { w.remove(&corev1.Pod{}, "cats-0") })
			w.set(func(set *unstructured.Unstructured) {
				condition := map[string]any{"type": "Updated", "status": "False", "reason": "Any", "message": test.says}
				set.Object["status"] = map[string]any{
					"observedGeneration": set.GetGeneration(), "replicas": int64(2), "readyReplicas": int64(2), "conditions": []any{condition},
				}
			})
			found := check.Rest(w.history(), w.rv, catset.Kinds()[0])
			if len(found) > 1 || len(found) == 1 != (test.want != "") || len(found) == 1 && !strings.HasSuffix(found[0].Sentence, test.want) {
				t.Errorf("want %q, got:\n%s", test.want, story(found))
			}
		})
	}
}
