package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file makes the API server's own policies: those that refuse, and those that change what is created.

// deny puts a policy in force until the test ends or the function is called that it returns: what the expression is
// true of is refused. It is in force when deny returns; try is answered by it.
func (l *lab) deny(verb registrationv1.OperationType, resource, refused string, try func() error) (lift func()) {
	l.Helper()
	const message = "this is not allowed here"
	policies := l.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := l.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	fail := registrationv1.Fail
	policy := &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "deny-" + l.namespace},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConstraints: l.match(verb, resource),
			Validations: []registrationv1.Validation{{Expression: "!(" + refused + ")", Message: message}},
		},
	}
	binding := &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
		},
	}
	if _, err := policies.Create(l.Context(), policy, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = policies.Delete(context.WithoutCancel(l.Context()), policy.Name, metav1.DeleteOptions{}) })
	if _, err := bindings.Create(l.Context(), binding, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	lift = func() { _ = bindings.Delete(context.WithoutCancel(l.Context()), binding.Name, metav1.DeleteOptions{}) }
	l.Cleanup(lift)
	l.until("the policy is in force", func() error {
		if err := try(); err == nil || !strings.Contains(err.Error(), message) {
			return errors.Join(fmt.Errorf("%s of %s is not refused by it", verb, resource), err)
		}
		return nil
	})
	// The policies of an API server are read by several plugins; each of them has seen this one shortly after the first.
	time.Sleep(poll) //nolint:forbidigo // nothing tells of it
	return lift
}

// mutate has a policy change pods when they are created, until the test ends: by an expression for a list of JSON
// patches, of what the condition is true of. It is in force when mutate returns.
func (l *lab) mutate(condition, patches string) {
	l.Helper()
	policies := l.client.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := l.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	fail := registrationv1.Fail
	policy := &registrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "change-" + l.namespace},
		Spec: registrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConstraints: l.match(registrationv1.Create, "pods"), ReinvocationPolicy: registrationv1.NeverReinvocationPolicy,
			MatchConditions: []registrationv1.MatchCondition{{Name: "which", Expression: condition + " || object.metadata.name == 'probe'"}},
			Mutations: []registrationv1.Mutation{{
				PatchType: registrationv1.PatchTypeJSONPatch,
				// The probe gets a label instead, by which one sees that the policy is in force.
				JSONPatch: &registrationv1.JSONPatch{Expression: "object.metadata.name == 'probe' ? " +
					"[JSONPatch{op: 'add', path: '/metadata/labels/seen', value: 'yes'}] : " + patches},
			}},
		},
	}
	binding := &registrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta, Spec: registrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	switch _, err := policies.Create(l.Context(), policy, metav1.CreateOptions{}); {
	case apierrors.IsNotFound(err) && os.Getenv(sandboxtest.BinariesVariable) != "":
		l.Skip("MutatingAdmissionPolicy is served from 1.36 on")
	case err != nil:
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = policies.Delete(context.WithoutCancel(l.Context()), policy.Name, metav1.DeleteOptions{}) })
	if _, err := bindings.Create(l.Context(), binding, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = bindings.Delete(context.WithoutCancel(l.Context()), binding.Name, metav1.DeleteOptions{}) })
	l.until("the policy is in force", func() error {
		made, err := l.client.CoreV1().Pods(l.namespace).Create(l.Context(), l.pod("probe", map[string]string{"app": "probe"}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || made.Labels["seen"] != "yes" {
			return errors.Join(errors.New("a pod came back unchanged"), err)
		}
		return nil
	})
}

// match picks what policies are about: one verb and one resource in the lab's namespace.
func (l *lab) match(verb registrationv1.OperationType, resource string) *registrationv1.MatchResources {
	return &registrationv1.MatchResources{
		NamespaceSelector: l.selector(),
		ResourceRules:     []registrationv1.NamedRuleWithOperations{{RuleWithOperations: ruleFor(verb, resource)}},
	}
}
