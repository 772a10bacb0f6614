package history_test

// The tests that the Controller History proposal lists at its end, under its names. TestDataCannotBeUpdated is among
// the tests of the sandbox, because only a real API server refuses it.

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

func TestCreateARevision(t *testing.T) {
	s := newServer(t, agent("agent:1"))
	log := newLog(s)

	v, recorded := mustPass(t, log, s.parent())
	if v.Change != revision.RollForward || recorded.Update.Number != 1 || recorded.CollisionCount != nil {
		t.Errorf("%s to revision %d with collision count %v", v.Change, recorded.Update.Number, recorded.CollisionCount)
	}
	o := s.stored()[recorded.Update.Name]
	if o == nil {
		t.Fatalf("revision %s is not stored", recorded.Update.Name)
	}
	if o.Revision != 1 || o.Name != "agent-"+recorded.Update.Hash || o.Labels["controller-revision-hash"] != recorded.Update.Hash {
		t.Errorf("stored %s as revision %d with labels %v", o.Name, o.Revision, o.Labels)
	}
	if ref := metav1.GetControllerOf(o); ref == nil || ref.UID != "agent-uid" || ref.Kind != "DaemonSet" || ref.APIVersion != "apps/v1" {
		t.Errorf("its controller is %+v", ref)
	}
	var data struct {
		Spec struct{ Template map[string]any }
	}
	if err := json.Unmarshal(o.Data.Raw, &data); err != nil || data.Spec.Template["$patch"] != "replace" {
		t.Errorf("data %s, %v", o.Data.Raw, err)
	}

	// A change of the template makes the next revision; one of anything else makes none.
	mustPass(t, log, s.image("agent:2"))
	s.Forget()
	mustPass(t, log, s.edit(func(ds *appsv1.DaemonSet) {
		one, limit := intstr.FromInt32(1), int32(3)
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one}
		ds.Spec.RevisionHistoryLimit = &limit
		ds.Spec.MinReadySeconds = 5
		ds.Labels = map[string]string{"team": "blue"}
	}))
	if diff := cmp.Diff(map[string]int64{"agent:1": 1, "agent:2": 2}, s.numbers()); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if len(s.Writes()) != 0 {
		t.Errorf("a change outside the template wrote %v", s.Writes())
	}
}

func TestReconstructTheHistory(t *testing.T) {
	s := newServer(t, agent("agent:1"))
	mustPass(t, newLog(s), s.parent())
	templates := []appsv1.DaemonSetSpec{s.parent().Spec}
	for _, image := range []string{"agent:2", "agent:3"} {
		mustPass(t, newLog(s), s.image(image))
		templates = append(templates, s.parent().Spec)
	}
	// Another process, without anything remembered.
	for name, read := range map[string]func(*history.Log) ([]revision.Revision, error){
		"Claim": func(l *history.Log) ([]revision.Revision, error) { return l.Claim(t.Context(), s.parent(), matching) },
		"List":  func(l *history.Log) ([]revision.Revision, error) { return l.List(t.Context(), s.parent()) },
	} {
		s.Forget()
		entries, err := read(newLog(s))
		if err != nil || len(entries) != 3 {
			t.Fatalf("%s: %d revisions, %v", name, len(entries), err)
		}
		for i, r := range entries {
			if r.Number != int64(i+1) || r.Err != nil {
				t.Errorf("%s: revision %d is number %d, %v", name, i+1, r.Number, r.Err)
			}
			var restored appsv1.DaemonSet
			if err := r.Snapshot.Into(&restored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(templates[i].Template, restored.Spec.Template); diff != "" {
				t.Errorf("%s: template of revision %d (-want +got):\n%s", name, i+1, diff)
			}
		}
		if len(s.Writes()) != 0 {
			t.Errorf("%s wrote %v", name, s.Writes())
		}
	}

	// Going back finds the first revision again and makes it the newest; its data stays (H4).
	before := s.stored()
	v, recorded := mustPass(t, newLog(s), s.image("agent:1"))
	if v.Change != revision.Rollback || recorded.Update.Number != 4 {
		t.Errorf("%s to revision %d", v.Change, recorded.Update.Number)
	}
	if diff := cmp.Diff(map[string]int64{"agent:1": 4, "agent:2": 2, "agent:3": 3}, s.numbers()); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	for name, o := range s.stored() {
		if diff := cmp.Diff(before[name].Data, o.Data); diff != "" {
			t.Errorf("the data of %s changed:\n%s", name, diff)
		}
	}
}

func TestDeleteToHonourTheLimit(t *testing.T) {
	for _, c := range []struct {
		limit int
		live  []string
		want  []string
	}{
		{limit: 10, want: []string{"agent:1", "agent:2", "agent:3", "agent:4", "agent:5", "agent:6"}},
		{limit: 2, want: []string{"agent:4", "agent:5", "agent:6"}},
		{limit: 2, live: []string{"agent:2", "agent:3"}, want: []string{"agent:2", "agent:3", "agent:4", "agent:5", "agent:6"}},
		{limit: 0, live: []string{"agent:1"}, want: []string{"agent:1", "agent:6"}},
		{limit: 0, want: []string{"agent:6"}},
	} {
		t.Run(fmt.Sprintf("limit %d with %d live", c.limit, len(c.live)), func(t *testing.T) {
			s := newServer(t, agent("agent:1"))
			log := newLog(s)
			_, recorded := mustPass(t, log, s.parent())
			for i := 2; i <= 6; i++ {
				_, recorded = mustPass(t, log, s.image(fmt.Sprintf("agent:%d", i)))
			}
			var live []string
			for _, o := range s.stored() {
				if slices.Contains(c.live, imageOf(t, o)) {
					live = append(live, o.Labels["controller-revision-hash"])
				}
			}
			entries, err := log.Claim(t.Context(), s.parent(), matching)
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Truncate(t.Context(), s.parent(), entries, recorded.Update, revision.NewInUse(live...), c.limit); err != nil {
				t.Fatal(err)
			}
			var got []string
			for image := range s.numbers() {
				got = append(got, image)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what stays (-want +got):\n%s", diff)
			}
		})
	}
}
