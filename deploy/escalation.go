package deploy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// This file is about controllers that create roles and bindings. The right to write them is not enough: the API server
// lets no client grant rights that it does not have, unless it may bind that role, or escalate.

// RoleRef names a role that bindings refer to.
type RoleRef struct {
	// Resource is roles or clusterroles.
	Resource string
	// Name is the role's.
	Name string
}

// The resources of RBAC, and which of them bind roles.
var (
	roleResources    = []string{"roles", "clusterroles"}
	bindingResources = []string{"rolebindings", "clusterrolebindings"}
)

// EscalationError says that a controller writes roles or bindings which the API server would refuse to the manager. Say
// in [Grant] what they may hold.
type EscalationError struct {
	// Resources are sorted, and of the group rbac.authorization.k8s.io. There is at least one.
	Resources []string
}

func (e *EscalationError) Error() string {
	var parts []string
	for _, resource := range e.Resources {
		what := "refuses a role with rights that its author does not have"
		if slices.Contains(bindingResources, resource) {
			what = "refuses to bind a role with rights that the author of the binding does not have"
		}
		parts = append(parts, fmt.Sprintf("%s: the API server %s", resource, what))
	}
	return strings.Join(parts, "; ")
}

// escalation grants what it takes to write roles and bindings, or returns the error.
func (r *rights) escalation(g Grant) ([]rbacv1.PolicyRule, error) {
	written := r.writtenRBAC()
	for _, resource := range g.Escalate {
		if !slices.Contains(roleResources, resource) || !written.Has(resource) {
			return nil, fmt.Errorf("escalate on %s: the controller does not write such roles", resource)
		}
		r.allow(schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}, "", "escalate")
	}
	if len(g.Bind) > 0 && !written.HasAny(bindingResources...) {
		return nil, fmt.Errorf("bind %s: the controller does not write bindings", g.Bind[0].Name)
	}
	bound, err := boundRoles(g.Bind)
	if err != nil {
		return nil, err
	}
	missing := written.Clone().Delete(g.Escalate...).Delete(g.Held...)
	if len(g.Bind) > 0 {
		missing.Delete(bindingResources...)
	}
	if missing.Len() > 0 {
		return nil, &EscalationError{Resources: sets.List(missing)}
	}
	return bound, nil
}

// writtenRBAC are the resources of RBAC that the controller creates or changes.
func (r *rights) writtenRBAC() sets.Set[string] {
	out := sets.New[string]()
	for _, is := range r.resources {
		if is.Group == rbacv1.GroupName && is.sub == "" && (slices.Contains(is.verbs, "create") || slices.Contains(is.verbs, "patch")) {
			out.Insert(is.Resource)
		}
	}
	return out
}

// boundRoles are the rules that let roles be bound, each by its name.
func boundRoles(refs []RoleRef) ([]rbacv1.PolicyRule, error) {
	names := map[string]sets.Set[string]{}
	for _, ref := range refs {
		if !slices.Contains(roleResources, ref.Resource) {
			return nil, fmt.Errorf("bind %s/%s: only %s are bound", ref.Resource, ref.Name, strings.Join(roleResources, " and "))
		}
		if problems := content.IsPathSegmentName(ref.Name); ref.Name == "" || ref.Name == rbacv1.ResourceAll || len(problems) > 0 {
			return nil, fmt.Errorf("bind %s/%s: name one role", ref.Resource, ref.Name)
		}
		if names[ref.Resource] == nil {
			names[ref.Resource] = sets.New[string]()
		}
		names[ref.Resource].Insert(ref.Name)
	}
	var out []rbacv1.PolicyRule
	for _, resource := range roleResources {
		if names[resource].Len() > 0 {
			out = append(out, rbacv1.PolicyRule{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource},
				ResourceNames: sets.List(names[resource]), Verbs: []string{"bind"},
			})
		}
	}
	return out, nil
}
