package composite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/manager"
)

// This file holds what a real API server refuses: what cannot be made again is not deleted, what cannot be told is
// shown, and what cannot be made is in nobody's way.

// deny makes a policy that refuses pods of the lab's namespace without a label, and waits until it is in force.
func (l *lab) deny() (lift func()) {
	l.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: l.name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "'team' in object.metadata.labels", Message: "a team label is needed"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: l.name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: l.name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: l.namespace},
			}},
		},
	}
	l.create(policy)
	l.create(binding)
	probe := func() error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "probe", Labels: map[string]string{"a": "b"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
		}
		return l.Create(l.Context(), pod, client.DryRunAll)
	}
	l.eventually("wait for the policy", func() error {
		if probe() == nil {
			return errors.New("the pod is let in")
		}
		return nil
	})
	return func() {
		l.Helper()
		for _, o := range []client.Object{binding, policy} {
			must(l, l.Delete(l.Context(), o))
		}
		l.eventually("wait for the end of the policy", probe)
	}
}

// TestWhatCannotBeMadeAgainIsKept: a policy comes that refuses what serves. A restart, an edit of the parent and a
// repair are no reasons to delete any of it, the condition says what is in the way, and it goes on once that is gone.
func TestWhatCannotBeMadeAgainIsKept(t *testing.T) {
	for _, c := range []struct {
		name, fieldManager string
		method             v1alpha1.ChildUpdateMethod
		restarted, edited  string // reasons of the condition
	}{
		{"merge, rolled", "", v1alpha1.ChildUpdateRollingRecreate, "", "ReplacementRefused"},
		{"merge, at once", "", v1alpha1.ChildUpdateRecreate, "", "ReplacementRefused"},
		{"apply, rolled", "metacontroller", v1alpha1.ChildUpdateRollingRecreate, "ComparisonRefused", "ComparisonRefused"},
		{"apply, at once", "metacontroller", v1alpha1.ChildUpdateRecreate, "ComparisonRefused", "ComparisonRefused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
				cc.Spec.ChildResources[0].UpdateStrategy.Method = c.method
			}))
			options := func(o *manager.Options) { o.FieldManager = c.fieldManager }
			stop := l.cairnWith(options, cc)
			set := l.set(setKind, "web", 3, "app:1")
			l.create(set)
			l.served(set, 3, "app:1")
			before := l.uids(set)
			stop()
			lift := l.deny()
			l.cairnWith(options, cc)
			if c.restarted != "" {
				l.reports(set, c.restarted, "a team label is needed")
			}
			l.image(set, "app:2")
			l.reports(set, c.edited, "a team label is needed")
			if after := l.uids(set); !maps.Equal(before, after) {
				t.Fatalf("pods were deleted: %v, then %v", before, after)
			}
			lift()
			l.image(set, "app:3") // so that the back-off is not waited for
			l.served(set, 3, "app:3")
		})
	}
}

// served waits until as many pods of an image are there and ready, and no others.
func (l *lab) served(set *unstructured.Unstructured, count int, image string) {
	l.Helper()
	l.eventually(fmt.Sprintf("wait for %d pods of %s", count, image), func() error {
		pods := l.podsOf(set)
		for name, pod := range pods {
			conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
			ready := slices.ContainsFunc(conditions, func(c any) bool { return c.(m)["type"] == "Ready" && c.(m)["status"] == "True" })
			if imageOf(pod) != image || !ready {
				return fmt.Errorf("%s has %s, ready: %v", name, imageOf(pod), ready)
			}
		}
		if len(pods) != count {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
}

// TestAFullQuotaHoldsNoReplacement: the share of a child that is replaced is free again.
func TestAFullQuotaHoldsNoReplacement(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	l.cairn(cc)
	set := l.set(setKind, "web", 2, "app:1")
	l.create(set)
	l.rolledOut(set)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("2")}},
	}
	l.create(quota)
	l.eventually("wait for the quota", func() error {
		l.reload(quota)
		if used := quota.Status.Used["pods"]; used.Value() != 2 {
			return fmt.Errorf("%s pods are used", used.String())
		}
		return nil
	})
	l.image(set, "app:2")
	l.rolledOut(set)
	l.images(set, 2, "app:2")
}

// TestDriftIsRepaired: whether a child is what is wanted is found out about itself, after a restart as well, so that no
// name, port or quota is in the way. And it is made again under its own ports.
func TestDriftIsRepaired(t *testing.T) {
	for _, method := range []v1alpha1.ChildUpdateMethod{v1alpha1.ChildUpdateInPlace, v1alpha1.ChildUpdateRecreate} {
		t.Run(string(method), func(t *testing.T) {
			l := newLab(t)
			l.answer(func(request) any {
				return m{"status": m{}, "children": []any{m{
					"apiVersion": "v1", "kind": "Service",
					"metadata": m{"name": "web", "namespace": l.namespace, "labels": m{"app": l.namespace + "-web"}},
					"spec": m{
						"type": "NodePort", "clusterIP": "10.96.77.7", "selector": m{"app": "web"},
						"ports": []any{m{"port": 80, "nodePort": 31377}},
					},
				}}}
			})
			cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
				cc.Spec.ChildResources[0].Resource = "services"
				cc.Spec.ChildResources[0].UpdateStrategy = &v1alpha1.ChildUpdateStrategy{Method: method}
			}))
			stop := l.cairn(cc)
			set := l.set(setKind, "web", 1, "app:1")
			l.create(set)
			service := func() *corev1.Service {
				var s corev1.Service
				if err := l.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: "web"}, &s); err != nil {
					return nil
				}
				return &s
			}
			l.eventually("wait for the Service", func() error {
				if service() == nil {
					return errors.New("there is none")
				}
				return nil
			})
			stop()
			uid := service().UID
			l.patch(service(), `{"spec":{"selector":{"app":"somebody-elses"}}}`)
			l.cairn(cc)
			l.eventually("wait for the repair", func() error {
				if s := service(); s == nil || s.Spec.Selector["app"] != "web" {
					return fmt.Errorf("the Service is %v", s)
				}
				return nil
			})
			s := service()
			if again := s.UID != uid; again != (method == v1alpha1.ChildUpdateRecreate) || s.Spec.Ports[0].NodePort != 31377 {
				t.Errorf("made again: %v; %+v", again, s.Spec)
			}
		})
	}
}

// TestOneBadChildIsInNobodysWay: the others are made, of its kind and of those after it.
func TestOneBadChildIsInNobodysWay(t *testing.T) {
	l := newLab(t)
	l.answer(func(in request) any {
		out := l.pods(in).(m)
		pods := out["children"].([]any)
		_ = unstructured.SetNestedField(pods[0].(m), "not valid!", "spec", "schedulerName")
		_ = unstructured.SetNestedField(pods[0].(m), "Sometimes", "spec", "restartPolicy")
		return out
	})
	cc := l.install(l.controller())
	l.cairn(cc)
	set := l.set(setKind, "web", 4, "app:1")
	l.create(set)
	l.reports(set, "SyncError", "create Pod web-3: ")
	l.event(set, "SyncError", "Sync error: ")
	l.eventually("wait for the others", func() error {
		if names := strings.Join(slices.Sorted(maps.Keys(l.uids(set))), " "); names != "web-0 web-1 web-2" {
			return errors.New(names)
		}
		return nil
	})
}
