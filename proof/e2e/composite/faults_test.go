package composite

import (
	"maps"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// This file has hooks that are busy, and hooks whose answers differ from the stored children without a change. The
// other failures of hooks are scenarios of proof/fault: see hookFaults.

func TestABusyHookIsAskedLater(t *testing.T) {
	l := newLab(t)
	set, _ := l.running(1)
	l.fail(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	l.scale(set, 2)
	l.reports(set, "HookBusy", "it is called again in 1s")
	l.answer(l.pods)
	l.rolledOut(set)
	l.images(set, 2, "app:1")
}

// TestTemplateLabelsThatAreNotTheSelectors is metacontroller#194: the hook gives its children labels of its own.
func TestTemplateLabelsThatAreNotTheSelectors(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
		delete(out, "status") // an answer without a status is valid
		for _, c := range out["children"].([]any) {
			_ = unstructured.SetNestedStringMap(c.(m), map[string]string{"app": l.namespace + "-web"}, "metadata", "labels")
		}
		return out
	})
	cc := l.install(l.controller())
	l.cairn(cc)
	set := l.set(setKind, "web", 3, "app:1")
	_ = unstructured.SetNestedStringMap(set.Object, map[string]string{"other": "label"}, "spec", "template", "metadata", "labels")
	l.create(set)
	l.rolledOut(set)
	least := l.least(set)
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 3, "app:2")
	if n := least(); n < 2 {
		t.Errorf("only %d of 3 were ready at a time", n)
	}
	if n := len(l.revisions(set)); n != 2 {
		t.Errorf("%d revisions", n)
	}
}

// TestDefaultsAreNoDifference is metacontroller#863: a list that the API server adds to, under a method that recreates.
func TestDefaultsAreNoDifference(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
		for _, c := range out["children"].([]any) {
			_ = unstructured.SetNestedSlice(c.(m), []any{m{"key": "k", "operator": "Exists"}}, "spec", "tolerations")
		}
		return out
	})
	cc := l.install(l.controller())
	stop := l.cairn(cc)
	set := l.set(setKind, "web", 2, "app:1")
	l.create(set)
	l.rolledOut(set)
	before := l.uids(set)
	l.scale(set, 3)
	l.rolledOut(set)
	stop() // what was learnt is forgotten
	l.cairn(cc)
	l.scale(set, 2)
	l.rolledOut(set)
	if after := l.uids(set); !maps.Equal(before, after) {
		t.Errorf("pods were recreated: %v, %v", before, after)
	}
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 2, "app:2")
}
