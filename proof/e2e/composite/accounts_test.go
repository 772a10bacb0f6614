package composite

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file gives controllers accounts of their own: what is granted to one of them is no other's.

// says waits until the condition Ready of a CompositeController has that reason and a message that contains text.
func (l *lab) says(cc *v1alpha1.CompositeController, reason, text string) {
	l.Helper()
	l.eventually("wait for what "+cc.Name+" says", func() error {
		l.reload(cc)
		ready := meta.FindStatusCondition(cc.Status.Conditions, hosting.Ready)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("want %s: %s; Ready is %+v", reason, text, ready)
		}
		return nil
	})
}

// names changes the account that a CompositeController names.
func (l *lab) names(cc *v1alpha1.CompositeController, account string) {
	l.Helper()
	l.eventually("annotate "+cc.Name, func() error {
		l.reload(cc)
		cc.Annotations = map[string]string{cairn.ServiceAccountAnnotation: account}
		return l.Update(l.Context(), cc)
	})
}

// TestGrantsDoNotAddUp: two controllers that are harmless each, one with parents in no namespace, one with pods. A
// third one that asks for both gets neither: without an account, with one that was granted nothing, or with that of
// either.
func TestGrantsDoNotAddUp(t *testing.T) {
	l := newLab(t)
	of := func(name string, parents v1alpha1.ResourceRule, children string) *v1alpha1.CompositeController {
		return l.install(l.controller(func(cc *v1alpha1.CompositeController) {
			cc.Name = name + "-" + l.name
			cc.Annotations = map[string]string{cairn.ServiceAccountAnnotation: l.namespace + "/" + name}
			cc.Spec.ParentResource.ResourceRule, cc.Spec.ParentResource.RevisionHistory = parents, nil
			cc.Spec.ParentResource.LabelSelector.MatchLabels["for"] = name
			cc.Spec.ChildResources = []v1alpha1.ChildResource{{ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: children}}}
		}))
	}
	set := v1alpha1.ResourceRule{APIVersion: "test.cairn.dev/v1", Resource: "sets"}
	clusterSet := v1alpha1.ResourceRule{APIVersion: "test.cairn.dev/v1", Resource: "clustersets"}
	everywhere, pods, both := of("everywhere", clusterSet, "configmaps"), of("pods", set, "pods"), of("both", clusterSet, "pods")
	l.answer(func(in request) any {
		if in.Parent.GetLabels()["for"] == "everywhere" {
			labels, _, _ := unstructured.NestedMap(in.Parent.Object, "spec", "selector", "matchLabels")
			return m{"status": m{}, "children": []any{m{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": "a", "namespace": l.namespace, "labels": labels},
			}}}
		}
		return l.pods(in)
	})
	l.cairn(everywhere, pods)
	asked := l.set(clusterSetKind, l.namespace, 1, "evil:1")
	asked.SetLabels(map[string]string{"lab": l.namespace, "for": "both"})
	l.create(asked)
	for _, step := range []struct{ account, reason, text string }{
		{l.namespace + "/both", hosting.ImpersonationForbidden, "may not look up ServiceAccount " + l.namespace + "/both: apply what cairn roles prints"},
		{l.namespace + "/everywhere", hosting.NotSynced, l.namespace + `:everywhere" cannot list resource "pods"`},
		{l.namespace + "/pods", hosting.NotSynced, l.namespace + `:pods" cannot list resource "clustersets"`},
		{"everywhere", host.InvalidServiceAccount, `"everywhere" names no ServiceAccount; NAMESPACE/NAME does`},
	} {
		l.names(both, step.account)
		l.says(both, step.reason, step.text)
	}
	l.eventually("take the account away", func() error {
		l.reload(both)
		both.Annotations = nil
		return l.Update(l.Context(), both)
	})
	l.says(both, host.NoServiceAccount, "annotate it with cairn.dev/service-account=NAMESPACE/NAME")

	// The harmless ones work meanwhile.
	web, one := l.set(setKind, "web", 1, "app:1"), l.set(clusterSetKind, "one-"+l.namespace, 1, "app:1")
	web.SetLabels(map[string]string{"lab": l.namespace, "for": "pods"})
	one.SetLabels(map[string]string{"lab": l.namespace, "for": "everywhere"})
	l.create(web)
	l.create(one)
	l.eventually("wait for what they make", func() error {
		if n := len(l.podsOf(web)); n != 1 {
			return fmt.Errorf("%d pods", n)
		}
		return l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: "a"}, &corev1.ConfigMap{})
	})
	if n := len(l.podsOf(asked)); n != 0 {
		t.Errorf("%d pods", n)
	}

	// With what it was granted on purpose the third one runs.
	l.names(both, l.namespace+"/both")
	roles := l.roles(both, deploy.Grant{})
	must(t, install.Apply(l.Context(), l.sandbox.Config(), deploy.YAML(roles)))
	l.says(both, hosting.Running, "")
	l.eventually("wait for its pod", func() error {
		pod := &unstructured.Unstructured{}
		pod.SetGroupVersionKind(podKind)
		return l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: l.namespace + "-0"}, pod)
	})
}

// TestRightsThatAreTakenAway: while a controller runs, its account loses a right, the manager the right to act as it,
// and the account is deleted. Ready is False as soon as a pass fails, nothing is created, and the controller goes on
// when the right is given back.
func TestRightsThatAreTakenAway(t *testing.T) {
	l := newLab(t)
	set, cc := l.running(1)
	l.says(cc, hosting.Running, "")
	replicas := int64(2)
	roles := deploy.YAML(l.roles(cc, deploy.Grant{}))
	name := "cairn-composite:" + cc.Name
	account := metav1.ObjectMeta{Namespace: l.namespace, Name: "runner"}
	for _, c := range []struct {
		taken           client.Object
		reason, message string
	}{
		{&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}, hosting.Forbidden, `runner" cannot `},
		{&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name + ":impersonate"}}, hosting.ImpersonationForbidden, ""},
		{&corev1.ServiceAccount{ObjectMeta: account}, hosting.ServiceAccountNotFound, "/runner does not exist"},
	} {
		must(t, l.Delete(l.Context(), c.taken))
		l.eventually("have it refused", func() error { // authorizer and watch learn of it a moment later
			replicas = 5 - replicas
			l.scale(set, replicas)
			l.reload(cc)
			ready := meta.FindStatusCondition(cc.Status.Conditions, hosting.Ready)
			if ready.Reason != c.reason || !strings.Contains(ready.Message, c.message) {
				return fmt.Errorf("want %s; Ready is %+v", c.reason, ready)
			}
			return nil
		})
		before := l.uids(set)
		l.scale(set, 6)
		if after := l.uids(set); !maps.Equal(before, after) {
			t.Errorf("%T: pods were %v and are %v", c.taken, before, after)
		}
		must(t, install.Apply(l.Context(), l.sandbox.Config(), roles))
		l.says(cc, hosting.Running, "")
		l.rolledOut(set)
		if n := len(l.podsOf(set)); n != 6 {
			t.Errorf("%T: %d pods, want 6", c.taken, n)
		}
	}
}
