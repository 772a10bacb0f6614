package deploy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// tenants makes roles and bindings.
const tenants = `
metadata: {name: tenants}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: tenants}
  childResources:
  - {apiVersion: rbac.authorization.k8s.io/v1, resource: roles}
  - {apiVersion: rbac.authorization.k8s.io/v1, resource: rolebindings}`

func rbac(resources ...string) (out []schema.GroupResource) {
	for _, resource := range resources {
		out = append(out, schema.GroupResource{Group: rbacv1.GroupName, Resource: resource})
	}
	return out
}

// TestBoundRoles: a role is bound if it is named, and no other.
func TestBoundRoles(t *testing.T) {
	got, err := CompositeRoles(parse[v1alpha1.CompositeController](t, tenants), Grant{
		Allow:    rbac("roles", "rolebindings"),
		Bind:     []RoleRef{{"clusterroles", "view"}, {"roles", "guest"}, {"clusterroles", "edit"}, {"clusterroles", "view"}},
		Escalate: []string{"roles"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSpace(`
ClusterRole cairn-composite:tenants
  tenants.ctl.example.com get list watch
  tenants/status.ctl.example.com patch
  tenants/finalizers.ctl.example.com update
  roles.rbac.authorization.k8s.io get list watch create patch delete escalate
  rolebindings.rbac.authorization.k8s.io get list watch create patch delete
  roles.rbac.authorization.k8s.io bind [guest]
  clusterroles.rbac.authorization.k8s.io bind [edit view]`), render(t, got)); d != "" {
		t.Error(d)
	}
}

// TestEscalationIsDecided: roles and bindings that the API server would refuse to the manager are refused here.
func TestEscalationIsDecided(t *testing.T) {
	c := parse[v1alpha1.CompositeController](t, tenants)
	for _, tc := range []struct {
		grant Grant
		want  []string
	}{
		{Grant{}, []string{"rolebindings", "roles"}},
		{Grant{Escalate: []string{"roles"}}, []string{"rolebindings"}},
		{Grant{Bind: []RoleRef{{"roles", "guest"}}}, []string{"roles"}},
		{Grant{Held: []string{"roles"}}, []string{"rolebindings"}},
		{Grant{Held: []string{"roles", "rolebindings"}}, nil},
	} {
		tc.grant.Allow = rbac("roles", "rolebindings")
		_, err := CompositeRoles(c, tc.grant)
		escalation, ok := errors.AsType[*EscalationError](err)
		if ok != (tc.want != nil) || ok && !slices.Equal(escalation.Resources, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.grant, err, tc.want)
		}
	}
	// Whoever decorates bindings changes them.
	_, err := DecoratorRoles(parse[v1alpha1.DecoratorController](t,
		`{metadata: {name: x}, spec: {resources: [{apiVersion: rbac.authorization.k8s.io/v1, resource: clusterrolebindings}]}}`),
		Grant{Allow: rbac("clusterrolebindings")})
	if _, ok := errors.AsType[*EscalationError](err); !ok {
		t.Errorf("decorated bindings: %v", err)
	}
}

// TestRefusedEscalation: what would be more than was named is an error.
func TestRefusedEscalation(t *testing.T) {
	bare := "{metadata: {name: cats}, spec: {parentResource: {apiVersion: v1, resource: cats}}}"
	for _, tc := range []struct {
		controller string
		grant      Grant
		want       string
	}{
		{tenants, Grant{Bind: []RoleRef{{"clusterroles", ""}}}, "name one role"},
		{tenants, Grant{Bind: []RoleRef{{"clusterroles", "*"}}}, "name one role"},
		{tenants, Grant{Bind: []RoleRef{{"clusterroles", "a/b"}}}, "name one role"},
		{tenants, Grant{Bind: []RoleRef{{"*", "view"}}}, "only roles and clusterroles are bound"},
		{tenants, Grant{Escalate: []string{"clusterroles"}}, "does not write such roles"},
		{tenants, Grant{Escalate: []string{"rolebindings"}}, "does not write such roles"},
		{bare, Grant{Escalate: []string{"roles"}}, "does not write such roles"},
		{bare, Grant{Bind: []RoleRef{{"clusterroles", "view"}}}, "does not write bindings"},
	} {
		tc.grant.Allow = rbac("roles", "rolebindings")
		if got, err := CompositeRoles(parse[v1alpha1.CompositeController](t, tc.controller), tc.grant); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v\n%s", tc.grant, err, render(t, got))
		}
	}
}
