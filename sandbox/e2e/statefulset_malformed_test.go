package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file has StatefulSets that something is wrong with.

// TestStatefulSetMalformed: what is wrong with a set is said by an event and a condition, and the set beside it rolls on.
func TestStatefulSetMalformed(t *testing.T) {
	grows := func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", 1<<20)}}
	}
	keepsAll := func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = new(int32(-1)) }
	for name, c := range map[string]struct {
		set       string // its name
		options   []setOption
		edit      []setOption
		condition appsv1.StatefulSetConditionType
		reason    string
		event     string
	}{
		"a revision over 1 MiB":          {"db", nil, []setOption{grows}, "HistoryHealthy", "SnapshotTooLarge", "RecordFailed"},
		"a negative history limit":       {"db", []setOption{keepsAll}, nil, "HistoryHealthy", "NegativeHistoryLimit", "NegativeHistoryLimit"},
		"pods that are refused":          {strings.Repeat("long", 15), nil, nil, "Updated", "RolloutFailing", "FailedCreate"},
		"a revision that cannot be read": {"db", nil, nil, "HistoryHealthy", "RevisionUnreadable", "RevisionUnreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.statefulCairn()
			neighbour := e.statefulSet("healthy")
			e.create(neighbour)
			if strings.Contains(name, "cannot be read") {
				e.create(&appsv1.ControllerRevision{
					ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "planted", Labels: map[string]string{"app": "db", "controller.kubernetes.io/hash": "planted"}},
					Data:       runtime.RawExtension{Raw: []byte(`{"spec":{"template":"no"}}`)},
				})
			}
			set := e.statefulSet(c.set, c.options...)
			e.create(set)
			if c.edit != nil {
				e.setRolledOut(set)
				e.editSet(set, c.edit...)
			}
			e.eventually("wait for the condition and the event", func() error {
				e.reloadSet(set)
				for _, condition := range set.Status.Conditions {
					if condition.Type == c.condition && condition.Reason == c.reason && condition.Status == corev1.ConditionFalse {
						return e.hasEvent(set, c.event)
					}
				}
				return errorf("conditions %+v", set.Status.Conditions)
			})
			e.setRolledOut(neighbour)
			e.editSet(neighbour, setImage("app:2"))
			e.setRolledOut(neighbour)
			if name == "a revision over 1 MiB" && e.setImages(set) != "app:1,app:1,app:1" {
				t.Errorf("pods %s", e.setImages(set))
			}
		})
	}
}

// hasEvent returns an error unless there is an event of that reason about o.
func (e *env) hasEvent(o client.Object, reason string) error {
	e.Helper()
	var list eventsv1.EventList
	if err := e.List(e.Context(), &list, client.InNamespace(o.GetNamespace())); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Regarding.UID == o.GetUID() && event.Reason == reason {
			return nil
		}
	}
	return errorf("no event %s among %d", reason, len(list.Items))
}
