package composite

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

func finalizing(l *lab) func(*v1alpha1.CompositeController) {
	return func(cc *v1alpha1.CompositeController) {
		cc.Spec.Hooks.Finalize = &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(l.url + "/finalize")}}
	}
}

// tearDown lets one pod go after the other, and is done when none is left.
func tearDown(l *lab) func(request) any {
	return func(in request) any {
		if !in.Finalizing {
			return l.pods(in)
		}
		children := []any{}
		for i := range len(in.Children["Pod.v1"]) - 1 {
			children = append(children, l.pod(in, fmt.Sprintf("web-%d", i)))
		}
		return m{"children": children, "finalized": len(in.Children["Pod.v1"]) == 0}
	}
}

func TestFinalize(t *testing.T) {
	for name, leave := range map[string]func(l *lab, set *unstructured.Unstructured){
		"deleted": func(l *lab, set *unstructured.Unstructured) {
			must(l, l.Delete(l.Context(), set, client.PropagationPolicy("Background")))
		},
		"out of the selector": func(l *lab, set *unstructured.Unstructured) {
			l.eventually("take the label off", func() error {
				l.reload(set)
				set.SetLabels(nil)
				return l.Update(l.Context(), set)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.answer(tearDown(l))
			set, cc := l.running(3, finalizing(l))
			finalizer := "metacontroller.io/compositecontroller-" + cc.Name
			if !slices.Contains(set.GetFinalizers(), finalizer) {
				t.Fatalf("finalizers: %v", set.GetFinalizers())
			}
			leave(l, set)
			l.eventually("be let go", func() error {
				err := l.Get(t.Context(), client.ObjectKeyFromObject(set), set)
				if apierrors.IsNotFound(err) || err == nil && len(set.GetFinalizers()) == 0 {
					return nil
				}
				return fmt.Errorf("%w: finalizers %v, pods %v", err, set.GetFinalizers(), l.uids(set))
			})
			if pods := l.podsOf(set); len(pods) > 0 {
				t.Errorf("it went before its pods: %v", pods)
			}
		})
	}
}

// TestAFinalizerThatNobodyAsksForGoes: a controller without the hook, or one that lost it, holds nobody back.
func TestAFinalizerThatNobodyAsksForGoes(t *testing.T) {
	l := newLab(t)
	l.answer(tearDown(l))
	set, cc := l.running(2, finalizing(l))
	before := l.uids(set)
	l.reload(cc)
	cc.Spec.Hooks.Finalize = nil
	must(t, l.Update(t.Context(), cc))
	l.eventually("lose the finalizer", func() error {
		if l.reload(set); len(set.GetFinalizers()) > 0 {
			return fmt.Errorf("%v", set.GetFinalizers())
		}
		return nil
	})
	if after := l.uids(set); !maps.Equal(before, after) {
		t.Errorf("pods were touched: %v, %v", before, after)
	}
}

// TestAFailingFinalizeHookHoldsTheParent: nothing is deleted, and the parent stays until the hook is done.
func TestAFailingFinalizeHookHoldsTheParent(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		if in.Finalizing {
			return m{"finalized": "perhaps"}
		}
		return l.pods(in)
	})
	set, _ := l.running(2, finalizing(l))
	before := l.uids(set)
	must(t, l.Delete(t.Context(), set, client.PropagationPolicy("Background")))
	l.reports(set, "HookAnswerMalformed", "")
	if after := l.uids(set); !maps.Equal(before, after) {
		t.Errorf("pods were touched: %v, %v", before, after)
	}
	l.answer(tearDown(l))
	l.eventually("be let go", func() error {
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
