package e2e

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/internal/manager"
)

// This file checks that revisions from other times and hands are recognised for what they are.

// rewrite replaces the only revision of ds by one whose data went through change, as an older version would have
// written it: same name, labels and owner, no stamp.
func (e *env) rewrite(ds *appsv1.DaemonSet, change func(template map[string]any)) {
	e.Helper()
	revisions := e.revisions(ds)
	if len(revisions) != 1 {
		e.Fatalf("%d revisions, want 1", len(revisions))
	}
	old := revisions[0]
	var data map[string]any
	must(e, json.Unmarshal(old.Data.Raw, &data))
	change(data["spec"].(map[string]any)["template"].(map[string]any))
	raw, err := json.Marshal(data)
	if err != nil {
		e.Fatal(err)
	}
	must(e, e.Delete(e.Context(), &old))
	e.create(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name, Labels: old.Labels, OwnerReferences: old.OwnerReferences},
		Data:       runtime.RawExtension{Raw: raw},
		Revision:   old.Revision,
	})
}

func TestRevisionsOfOlderVersionsStartNoRollout(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(template map[string]any)
	}{
		{"creationTimestamp null, as before 1.34", func(template map[string]any) {
			template["metadata"].(map[string]any)["creationTimestamp"] = nil
		}},
		{"without a field that is defaulted today", func(template map[string]any) {
			delete(template["spec"].(map[string]any), "terminationGracePeriodSeconds")
		}},
		{"without a nested default", func(template map[string]any) {
			delete(template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any), "terminationMessagePolicy")
		}},
		{"with one name of the service account only", func(template map[string]any) {
			delete(template["spec"].(map[string]any), "serviceAccount")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEnv(t)
			stop := e.cairn()
			ds := e.daemonSet("old", "app:1", func(ds *appsv1.DaemonSet) {
				ds.Spec.Template.Spec.ServiceAccountName = "default"
			})
			e.create(ds)
			e.rolledOut(ds)
			stop()
			e.rewrite(ds, test.change)
			pods, revisions := e.pods(ds), e.revisions(ds)

			e.cairn()
			e.stamped(ds)
			e.settled(ds)
			e.sameVersions("no restart", pods, e.pods(ds))
			e.onlyStamped("no new revision", revisions, e.revisions(ds))
			if ds.Status.CollisionCount != nil {
				t.Errorf("collisionCount is %d, want none", *ds.Status.CollisionCount)
			}

			// The next edit rolls, and comes back to the very same revision.
			e.image(ds, "app:2")
			e.rolledOut(ds)
			e.image(ds, "app:1")
			e.rolledOut(ds)
			e.images(ds, "app:1")
			after := e.revisions(ds)
			if len(after) != 2 || after[1].UID != revisions[0].UID || after[1].Revision != 3 {
				t.Errorf("want revision %s renumbered to 3, have %+v", revisions[0].Name, after)
			}
		})
	}
}

func (e *env) cairnWithoutAsking() (stop func()) {
	e.Helper()
	return e.cairnWith(func(*rest.Config) {}, manager.Options{AskServer: false})
}

// It shows that the tests above pass because the server is asked, and what --ask-server=false costs.
func TestWithoutAskingAMissingDefaultCountsAsAChange(t *testing.T) {
	e := newEnv(t)
	stop := e.cairnWithoutAsking()
	ds := e.daemonSet("unasked", "app:1")
	e.create(ds)
	e.rolledOut(ds)
	stop()
	e.rewrite(ds, func(template map[string]any) {
		delete(template["spec"].(map[string]any), "terminationGracePeriodSeconds")
	})
	e.cairnWithoutAsking()
	e.eventually("wait for a second revision", func() error {
		if n := len(e.revisions(ds)); n != 2 {
			return errorf("%d revisions", n)
		}
		return nil
	})
}
