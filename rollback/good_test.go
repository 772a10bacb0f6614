package rollback

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

var began = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

func revisionNamed(name string) Revision { return Revision{Name: name, UID: types.UID("uid-" + name)} }

// observed returns the good revisions after several observations, "revision available/desired" each, 40 seconds apart.
// A "!" marks one that is not complete.
func observed(t *testing.T, steps ...string) (out Good) {
	t.Helper()
	for i, step := range steps {
		var name string
		var available, desired int
		if _, err := fmt.Sscanf(strings.Replace(step, "/", " ", 1), "%s %d %d", &name, &available, &desired); err != nil {
			t.Fatal(step, err)
		}
		name, underWay := strings.CutSuffix(name, "!")
		out = out.Observed(revisionNamed(name), !underWay, available, desired, began.Add(time.Duration(i)*40*time.Second))
	}
	return out
}

func TestGood(t *testing.T) {
	for name, c := range map[string]struct {
		steps        []string
		last, before string
	}{
		"nothing":                        {nil, "", ""},
		"all are available":              {[]string{"a 3/3"}, "a", ""},
		"all but one":                    {[]string{"a 2/3"}, "", ""},
		"more than are desired":          {[]string{"a 4/3"}, "a", ""},
		"none are desired":               {[]string{"a 0/0"}, "", ""},
		"the rollout is under way":       {[]string{"a! 3/3"}, "", ""},
		"the next one":                   {[]string{"a 3/3", "b! 1/3", "b 3/3"}, "b", "a"},
		"the next one fails":             {[]string{"a 3/3", "b! 1/3"}, "a", ""},
		"one that falls in part":         {[]string{"a 3/3", "b 3/3", "b 1/3"}, "b", "a"},
		"one that falls altogether":      {[]string{"a 3/3", "b 3/3", "b 0/3", "b 0/3", "c! 0/3"}, "a", "b"},
		"it falls, and nothing is next":  {[]string{"a 3/3", "b 3/3", "b 0/3", "b 0/3", "b 0/3"}, "b", "a"},
		"it falls for a moment":          {[]string{"a 3/3", "b 3/3", "b 0/3", "c! 0/3", "c! 0/3", "c! 0/3"}, "b", "a"},
		"it starts after a scale to 0":   {[]string{"a 3/3", "b 3/3", "b 0/3", "b 0/0", "b 0/3", "c! 0/3"}, "b", "a"},
		"it falls and recovers":          {[]string{"a 3/3", "b 3/3", "b 0/3", "b 2/3", "b 3/3", "c! 1/3"}, "b", "a"},
		"it falls, and is good again":    {[]string{"a 3/3", "b 3/3", "b 0/3", "b 0/3", "c! 0/3", "b 3/3"}, "b", "a"},
		"the only one falls":             {[]string{"a 3/3", "a 0/3"}, "a", ""},
		"scaled to zero":                 {[]string{"a 3/3", "b 3/3", "b 0/0"}, "b", "a"},
		"back on purpose":                {[]string{"a 3/3", "b 3/3", "a 3/3"}, "a", "b"},
		"three":                          {[]string{"a 3/3", "b 3/3", "c 3/3"}, "c", "b"},
		"one that could not be recorded": {[]string{"a 3/3", " 3/3"}[:1], "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observed(t, c.steps...); got.Last.Name != c.last || got.Before.Name != c.before {
				t.Errorf("last %q, before %q, want %q and %q", got.Last.Name, got.Before.Name, c.last, c.before)
			}
		})
	}
	if got := observed(t, "a 3/3").Observed(Revision{}, true, 3, 3, began); got.Last.Name != "a" {
		t.Errorf("a revision that is not recorded is good: %v", got)
	}
	again := Revision{"b", "another"}
	if got := observed(t, "a 3/3", "b 3/3").Observed(again, true, 3, 3, began); got.Last != again || got.Before.Name != "a" {
		t.Errorf("deleted and recorded again: %v", got)
	}
}

func TestDownIsReadBack(t *testing.T) {
	good := observed(t, "a 3/3", "b 3/3", "b 0/3")
	if got := GoodOf(daemonSet(*good.Condition(metav1.Time{}))); good.Down != began.Add(80*time.Second) || got != good {
		t.Errorf("%v is read as %v", good, got)
	}
}

func TestTarget(t *testing.T) {
	good := observed(t, "a 3/3", "b 3/3")
	// A user has gone back to b, and its children may only be slow.
	for failed, want := range map[string]string{"c": "b", "a": "b", "b": ""} {
		if got := good.Target(failed); got.Name != want {
			t.Errorf("%s has failed: back to %s, want %s", failed, got, want)
		}
	}
	if got := observed(t, "a 3/3").Target("a"); !got.IsZero() {
		t.Errorf("back to %s", got)
	}
}

// daemonSet is a parent with conditions of a type of its own.
func daemonSet(conditions ...metav1.Condition) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{}
	for _, c := range conditions {
		ds.Status.Conditions = append(ds.Status.Conditions, appsv1.DaemonSetCondition{
			Type: appsv1.DaemonSetConditionType(c.Type), Status: "True", Reason: c.Reason, Message: c.Message,
		})
	}
	return ds
}

func FuzzGoodIsReadBack(f *testing.F) {
	f.Add("web-7c9d", "0b1e7e44-7c5e-4a63-9d4b-9a8f0b7f3c11", "web-5d4f", "1")
	f.Add("a", "b", "", "")
	f.Fuzz(func(t *testing.T, name, uid, before, beforeUID string) {
		if strings.ContainsAny(name+before, "/= \t\n\v\f\r\u0085\u00a0") || len(strings.Fields(uid)) != 1 || strings.Join(strings.Fields(name+uid+before+beforeUID), "") != name+uid+before+beforeUID {
			t.Skip() // the API server accepts no such name, and makes the UIDs
		}
		good := Good{Last: revisionOf(name + "/" + uid), Before: revisionOf(before + "/" + beforeUID)}
		c := good.Condition(metav1.Time{})
		if good.Last.IsZero() {
			if c != nil {
				t.Errorf("%+v", c)
			}
			return
		}
		typed := daemonSet(metav1.Condition{Type: "Other"}, *c)
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		if got := GoodOf(typed); got != good {
			t.Errorf("%q is read as %v", c.Message, got)
		}
		if got := GoodOf(&unstructured.Unstructured{Object: tree}); got != good && validUTF8(c.Message) {
			t.Errorf("untyped, %q is read as %v", c.Message, got)
		}
	})
}

func validUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }

// TestWhatSaysNothing: other shapes of objects, and conditions of others.
func TestWhatSaysNothing(t *testing.T) {
	theirs := metav1.Condition{Type: LastGood, Reason: "Theirs", Message: "revision=web-1/u"}
	for name, o := range map[string]runtime.Object{
		"no status": &metav1.PartialObjectMetadata{}, "no conditions": &appsv1.DaemonSet{}, "somebody else's": daemonSet(theirs),
		"no list":            &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": "x"}}},
		"no status, untyped": &unstructured.Unstructured{Object: map[string]any{}},
		"no condition":       &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{"x", nil}}}},
	} {
		if got := GoodOf(o); got != (Good{}) {
			t.Errorf("%s: %v", name, got)
		}
		if got := ProgressOf(o); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
