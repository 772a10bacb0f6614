package composite

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
)

// This file shows that the roles of a controller that hands out rights suffice for what was named, and for nothing
// else.

// TestBoundRoles: a controller that makes bindings gets to make those of roles that were named, and of no others.
func TestBoundRoles(t *testing.T) {
	l := newLab(t)
	kind := schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	binding := func(set *unstructured.Unstructured) m {
		role := set.GetName()
		labels, _, _ := unstructured.NestedMap(set.Object, "spec", "selector", "matchLabels")
		return m{
			"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding",
			"metadata": m{"name": role, "namespace": l.namespace, "labels": labels},
			"roleRef":  m{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
			"subjects": []any{m{"apiGroup": rbacv1.GroupName, "kind": "User", "name": "guest"}},
		}
	}
	l.answer(func(in request) any {
		return m{"status": m{}, "children": []any{binding(in.Parent)}}
	})
	cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
		cc.Spec.ChildResources = []v1alpha1.ChildResource{{
			ResourceRule:   v1alpha1.ResourceRule{APIVersion: rbacv1.SchemeGroupVersion.String(), Resource: kind.Resource},
			UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateInPlace},
		}}
	}))
	me := identity{l}
	me.apply(shared(t, composite.Name), deploy.YAML(l.roles(cc, deploy.Grant{
		Allow: []schema.GroupResource{kind}, Bind: []deploy.RoleRef{{Resource: "clusterroles", Name: "view"}},
	})))
	a := me.run(manager.Options{Controllers: []string{composite.Name}})
	l.create(l.set(setKind, "view", 1, "app"))
	l.create(l.set(setKind, "admin", 1, "app"))
	l.eventually("wait for the binding that was named, and for the refusal of the other one", func() error {
		var made rbacv1.RoleBinding
		if err := l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: "view"}, &made); err != nil {
			return err
		}
		for _, what := range a.refused() {
			if strings.HasPrefix(what, "create "+kind.String()) {
				return nil
			}
		}
		return fmt.Errorf("refused: %v", a.refused())
	})
	var made rbacv1.RoleBinding
	if err := l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: "admin"}, &made); err == nil {
		t.Error("a role is bound that nobody named")
	}
}
