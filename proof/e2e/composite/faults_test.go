package composite

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file lets webhooks fail, in every way that failure-modes.md names: nothing is deleted, the parent says why, and
// goes on when the webhook does.

func TestABadAnswerDeletesNothing(t *testing.T) {
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	answer := func(children ...any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(m{"children": children}) }
	}
	pod := func(name, namespace string) m {
		return m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name, "namespace": namespace}}
	}
	l := newLab(t)
	set, _ := l.running(2, func(cc *v1alpha1.CompositeController) { cc.Spec.Hooks.Sync.Webhook.Timeout = new("3s") })
	before := l.uids(set)
	replicas := int64(2)
	for _, c := range []struct {
		name, reason string
		serve        http.HandlerFunc
	}{
		{"500", "HookBadStatus", text(500, "no")},
		{"201", "HookBadStatus", text(201, `{"children":[]}`)},
		{"no children", "HookAnswerIncomplete", text(200, `{}`)},
		{"HTML", "HookAnswerMalformed", text(200, "<html>children</html>")},
		{"cut off", "HookAnswerMalformed", text(200, `{"children":[`)},
		{"a redirect", "HookRedirected", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}},
		{"too slow", "HookTimedOut", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // until then nobody sees that the client has gone
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		}},
		{"huge", "HookAnswerTooLarge", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"children":[], "status": {"x":"`))
			piece := []byte(strings.Repeat("x", 1<<20))
			for range 17 {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
			_, _ = w.Write([]byte(`"}}`))
		}},
		{"an undeclared kind", "HookAnswerContradictory", answer(m{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": "s"}})},
		{"a foreign namespace", "HookAnswerContradictory", answer(pod("x", "kube-system"))},
		{"a child twice", "HookAnswerContradictory", answer(pod("x", l.namespace), pod("x", l.namespace))},
		{"labels that are not selected", "SelectorMismatch", answer(pod("x", l.namespace))},
	} {
		t.Run(c.name, func(t *testing.T) {
			lt := l.with(t)
			l.fail(c.serve)
			replicas++
			lt.scale(set, replicas) // so that it is asked
			lt.reports(set, c.reason, "")
			if after := lt.uids(set); !maps.Equal(before, after) {
				t.Errorf("pods were touched: %v, %v", before, after)
			}
		})
	}
	l.event(set, "SyncError", "Sync error: ")
	l.answer(l.pods)
	l.scale(set, 2) // or it would be asked when the delay is over
	l.rolledOut(set)
	if after := l.uids(set); !maps.Equal(before, after) {
		t.Errorf("pods were touched: %v, %v", before, after)
	}
}

func TestAnAnswerWithoutStatusIsFine(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any { return m{"children": l.pods(in).(m)["children"]} })
	set, _ := l.running(2)
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 2, "app:2")
}

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

// TestAStrangerOfTheSameName: create only, then the adoption rules.
func TestAStrangerOfTheSameName(t *testing.T) {
	l := newLab(t)
	stranger := &unstructured.Unstructured{Object: m{
		"metadata": m{"name": "web-0", "namespace": l.namespace, "labels": m{"app": "else"}},
		"spec":     m{"containers": []any{m{"name": "main", "image": "else:1"}}},
	}}
	stranger.SetGroupVersionKind(podKind)
	l.create(stranger)
	cc := l.install(l.controller())
	l.cairn(cc)
	set := l.set(setKind, "web", 2, "app:1")
	l.create(set)
	l.reports(set, "ChildExists", "Pod web-0 exists already and is not ours")
	uid := stranger.GetUID()
	l.reload(stranger)
	if stranger.GetUID() != uid || metav1.GetControllerOf(stranger) != nil || imageOf(stranger) != "else:1" {
		t.Errorf("it was touched: %v", stranger.Object)
	}
	if err := l.Delete(t.Context(), stranger, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	l.rolledOut(set)
	l.images(set, 2, "app:1")
}

// TestTemplateLabelsThatAreNotTheSelectors is metacontroller#194: the hook gives its children labels of its own.
func TestTemplateLabelsThatAreNotTheSelectors(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
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

// with is the lab for a part of a test.
func (l *lab) with(t *testing.T) *lab {
	t.Helper()
	return &lab{T: t, WithWatch: l.WithWatch, sandbox: l.sandbox, namespace: l.namespace, name: l.name, url: l.url}
}
