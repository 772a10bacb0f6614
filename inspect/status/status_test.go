package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/rollback"
)

// TestFailing: a child that fails a check says which, and what it says itself.
func TestFailing(t *testing.T) {
	child := func(condition map[string]any) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{"nonsense", map[string]any{"type": "Other"}, condition}}}
	}
	ready := v1alpha1.StatusConditionCheck{Type: "Ready", Status: new("True")}
	reason := v1alpha1.StatusConditionCheck{Type: "Ready", Reason: new("Fine")}
	for name, c := range map[string]struct {
		object map[string]any
		check  v1alpha1.StatusConditionCheck
		want   string
	}{
		"passes":        {child(map[string]any{"type": "Ready", "status": "True"}), ready, ""},
		"any will do":   {child(map[string]any{"type": "Ready", "status": "False"}), v1alpha1.StatusConditionCheck{Type: "Ready"}, ""},
		"missing":       {child(nil), ready, `required condition type missing: "Ready"`},
		"no status":     {map[string]any{}, ready, `required condition type missing: "Ready"`},
		"odd status":    {map[string]any{"status": map[string]any{"conditions": "all good"}}, ready, `required condition type missing: "Ready"`},
		"status":        {child(map[string]any{"type": "Ready", "status": "False"}), ready, `"Ready" condition status is "False" (want "True")`},
		"status, why":   {child(map[string]any{"type": "Ready", "reason": "Ill", "message": "a cold"}), ready, `"Ready" condition status is "" (want "True"), Ill: a cold`},
		"reason":        {child(map[string]any{"type": "Ready", "reason": "Ill", "message": "a cold"}), reason, `"Ready" condition reason is "Ill" (want "Fine"): a cold`},
		"reason passes": {child(map[string]any{"type": "Ready", "reason": "Fine"}), reason, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rule := metacontroller.ReadyRule(&v1alpha1.ChildUpdateStrategy{
				StatusChecks: v1alpha1.ChildUpdateStatusChecks{Conditions: []v1alpha1.StatusConditionCheck{c.check}},
			})
			m := object.Member{Object: &unstructured.Unstructured{Object: c.object}, Ready: rule}
			if got := unavailableReason(m, time.Now()); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestLacks: besides its checks, a child has to be there, to be seen, and to last.
func TestLacks(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	child := func(created time.Duration, ready string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"observedGeneration": int64(1),
			"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": ready}},
		}}}
		o.SetGeneration(2)
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-created)))
		return o
	}
	strategy := func(method v1alpha1.ChildUpdateMethod, seconds int32, checks ...v1alpha1.StatusConditionCheck) *v1alpha1.ChildUpdateStrategy {
		return &v1alpha1.ChildUpdateStrategy{
			Method: method, MinReadySeconds: &seconds, StatusChecks: v1alpha1.ChildUpdateStatusChecks{Conditions: checks},
		}
	}
	ready := v1alpha1.StatusConditionCheck{Type: "Ready", Status: new("True")}
	going := child(time.Hour, ago(time.Hour))
	going.SetDeletionTimestamp(new(metav1.NewTime(now)))
	for name, c := range map[string]struct {
		object   *unstructured.Unstructured
		strategy *v1alpha1.ChildUpdateStrategy
		want     string
	}{
		"missing":            {nil, nil, "it does not exist"},
		"going":              {going, nil, "it is terminating"},
		"no strategy":        {child(0, ""), nil, ""},
		"unseen":             {child(0, ""), strategy(v1alpha1.ChildUpdateRollingInPlace, 0), "its controller has not observed its latest spec"},
		"unseen, recreated":  {child(0, ""), strategy(v1alpha1.ChildUpdateRollingRecreate, 0), ""},
		"not long enough":    {child(time.Hour, ago(12*time.Second)), strategy(v1alpha1.ChildUpdateRollingRecreate, 30, ready), "it has passed its checks for 12s, and must for 30s"},
		"long enough":        {child(time.Hour, ago(30*time.Second)), strategy(v1alpha1.ChildUpdateRollingRecreate, 30, ready), ""},
		"without checks":     {child(5*time.Second, ago(time.Hour)), strategy(v1alpha1.ChildUpdateRollingRecreate, 30), "it has passed its checks for 5s, and must for 30s"},
		"a clock ahead":      {child(time.Hour, ago(-time.Hour)), strategy(v1alpha1.ChildUpdateRollingRecreate, 30, ready), "it has passed its checks for 0s, and must for 30s"},
		"no transition time": {child(time.Hour, ""), strategy(v1alpha1.ChildUpdateRollingRecreate, 30, ready), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unavailableReason(object.NewMember(metacontroller.Child{}, c.object, c.strategy), now); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestComplete: a rollout is complete if the controller says so of this very spec, and what can be seen agrees.
func TestComplete(t *testing.T) {
	silent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet"}}
	done := func() Status {
		return Status{
			Conditions: []Condition{{Type: "Updated", Status: "True"}, {Type: "HistoryHealthy", Status: "False"}},
			Total:      3, Rolled: 2, Updated: 2, Available: 3,
		}
	}
	for name, c := range map[string]struct {
		change func(*Status)
		want   bool
	}{
		"done":                  {func(*Status) {}, true},
		"the controller says":   {func(s *Status) { s.Conditions[0].Status = "False" }, false},
		"it does not say":       {func(s *Status) { s.Conditions = nil }, false},
		"nothing is rolled out": {func(s *Status) { s.Conditions, s.Controller, s.Rolled, s.Updated = nil, "catset", 0, 0 }, true},
		"a DaemonSet says so":   {func(s *Status) { s.Conditions, s.Rolled, s.Updated = nil, 0, 0 }, false},
		"of an older spec":      {func(s *Status) { s.lags = true }, false},
		"an old child is left":  {func(s *Status) { s.Updated = 1 }, false},
		"a child fails":         {func(s *Status) { s.Available = 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := done()
			c.change(&s)
			if s.settle(silent, nil); s.Complete() != c.want {
				t.Errorf("%+v: complete is %t", s, s.Complete())
			}
		})
	}
}

// TestRolledBack: an edit after a rollback is in progress until its controller has seen it.
func TestRolledBack(t *testing.T) {
	silent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet"}}
	for lags, want := range map[bool]State{false: Failed, true: InProgress} {
		s := Status{
			Conditions: []Condition{{Type: "Updated", Status: "True"}}, Total: 1, Rolled: 1, Updated: 1, Available: 1,
			rolledBack: &rollback.Note{From: "web-2", To: "web-1"}, lags: lags,
		}
		if s.settle(silent, nil); s.State != want {
			t.Errorf("lags is %t: %s, want %s", lags, s.State, want)
		}
	}
}

// TestUnobserved: conditions about an older spec are not taken for an answer.
func TestUnobserved(t *testing.T) {
	parent := func(generation int64, status map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"generation": generation}, "status": status}
	}
	for name, c := range map[string]struct {
		parent map[string]any
		want   string
	}{
		"seen":          {parent(3, map[string]any{"observedGeneration": int64(3)}), ""},
		"older":         {parent(3, map[string]any{"observedGeneration": int64(2)}), "The conditions are about generation 2 of the spec, which is at 3 by now."},
		"no status":     {parent(3, nil), "Its controller has not reported on it yet, or does not run."},
		"no generation": {parent(0, nil), ""},
		"odd":           {parent(3, map[string]any{"observedGeneration": "three"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unobserved(c.parent); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestAKindThatIsRolledNoLonger: a child that a revision claims counts, although its kind is updated in another way by
// now.
func TestAKindThatIsRolledNoLonger(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
	cc.Spec.ChildResources[0].UpdateStrategy.Method = v1alpha1.ChildUpdateInPlace
	pod := &unstructured.Unstructured{}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace("shop")
	pod.SetName("nap-0")
	pod.SetLabels(map[string]string{"app": "nap"})
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: inspecttest.Pets.String(), Kind: "CatSet", Name: "nap", UID: nap.GetUID(), Controller: new(true)}})
	i := inspect.New(inspecttest.PetServer(t, interceptor.Funcs{}, nap, cc, inspecttest.Taken(t, cc, nap, 1, "nap-0"), pod))
	s, err := Of(t.Context(), i, nap, time.Now())
	if err != nil || s.Rolled != 1 || s.Updated != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestChildrenThatCannotBeSeen: a child that nobody could look for is not said to be missing, and an object that
// matches the selector and is somebody else's is no child.
func TestChildrenThatCannotBeSeen(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
	cc.Spec.ChildResources = append(cc.Spec.ChildResources, v1alpha1.ChildResource{
		ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "configmaps"},
	})
	claimed := inspecttest.Taken(t, cc, nap, 1, "nap-0", "nap-1")
	child := func(kind, name, uid string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind(kind)
		o.SetNamespace("shop")
		o.SetName(name)
		o.SetLabels(map[string]string{"app": "nap"})
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: inspecttest.Pets.String(), Kind: "CatSet", Name: "nap", UID: nap.GetUID(), Controller: new(true)}})
		if uid != "" {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: inspecttest.Pets.String(), Kind: "CatSet", Name: "other", UID: "other", Controller: new(true)}})
		}
		return o
	}
	for name, c := range map[string]struct {
		hidden         string
		waits          []Wait
		total, passing int
		warning        string
	}{
		"all are seen": {waits: []Wait{{Child: "Pod nap-1", For: "it does not exist"}}, total: 3, passing: 2},
		"no pods":      {hidden: "PodList", total: 1, passing: 1, warning: "Children of kind Pod could not be looked at: you may not."},
		"no settings": {
			hidden: "ConfigMapList", waits: []Wait{{Child: "Pod nap-1", For: "it does not exist"}}, total: 2, passing: 1,
			warning: "Children of kind ConfigMap could not be looked at: you may not.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			funcs := interceptor.Funcs{List: func(ctx context.Context, cl client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if list.GetObjectKind().GroupVersionKind().Kind == c.hidden && c.hidden != "" {
					return errors.New("you may not")
				}
				return cl.List(ctx, list, opts...)
			}}
			i := inspect.New(inspecttest.PetServer(t, funcs, nap, cc, claimed,
				child("Pod", "nap-0", ""), child("ConfigMap", "nap", ""), child("Pod", "other", "other")))
			s, err := Of(t.Context(), i, nap, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for n := range s.Waits {
				if s.Waits[n].Entry == nil || s.Waits[n].Entry.Name != claimed.Name {
					t.Errorf("%s belongs to %v", s.Waits[n].Child, s.Waits[n].Entry)
				}
				s.Waits[n].Entry = nil
			}
			if d := cmp.Diff(c.waits, s.Waits); d != "" {
				t.Error(d)
			}
			if s.Total != c.total || s.Available != c.passing || !strings.Contains(strings.Join(s.Warnings, "\n"), c.warning) {
				t.Errorf("%d of %d pass, %q", s.Available, s.Total, s.Warnings)
			}
		})
	}
}
