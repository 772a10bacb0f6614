package deploy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file makes the roles of one CompositeController, DecoratorController or HistoryPolicy: what the manager may
// touch is what that object names. The roles that all of a kind share are files, roles/composite.yaml,
// roles/decorator.yaml and roles/recorder.yaml.

// Grant is what the roles of a controller are to hold, or not to hold, beyond what the controller says itself.
type Grant struct {
	// Related are the resources that its customize hook may ask for. Only the hook knows them. They are granted to be
	// read.
	Related []schema.GroupResource
	// Allow are resources that are granted although they give other rights as well, Secrets those that hooks may refer to;
	// see [PowerfulError].
	Allow   []schema.GroupResource
	Secrets []types.NamespacedName
	// Cluster are the resources whose objects are in no namespace, of those that the controller has as parents: see
	// [Parents]. Their children are wherever the webhook says, so that pods among them are powerful.
	Cluster []schema.GroupResource
	// Bind are the roles that bindings among the children may refer to, Escalate those of roles and clusterroles that may
	// hold rights which the manager does not have, which is to give it all of them. Held are the resources of RBAC for
	// which neither is needed, because the manager has the rights that they hand out. Without any of these the error is an
	// [*EscalationError].
	Bind           []RoleRef
	Escalate, Held []string
	// Undo grants what it takes to undo rollouts that have exceeded their deadline: parents are patched.
	Undo bool
	// Constrained grants the manager to act as the controller's ServiceAccount only for what the account is granted here
	// (constrained impersonation, Kubernetes 1.36). Without it the manager may do all that the account may.
	Constrained bool
	// Namespace, unless it is empty, is the only one in which anything is granted, Secrets and ConfigMaps that the
	// controller names excepted. Parents and children that are in no namespace cannot be granted then.
	Namespace string
}

// NoControllerError says that an object has no roles: it is neither a CompositeController nor a DecoratorController,
// nor a HistoryPolicy.
type NoControllerError struct {
	// Kind is what it is.
	Kind schema.GroupVersionKind
}

func (e *NoControllerError) Error() string {
	return fmt.Sprintf("%s is no CompositeController and no DecoratorController of %s, and no HistoryPolicy of %s",
		e.Kind.Kind, v1alpha1.SchemeGroupVersion, cairn.SchemeGroupVersion)
}

// RolesOf returns the roles of a controller that was read from a file or from the API server. The error is a
// [*NoControllerError] if it is none, and otherwise as for [CompositeRoles].
func RolesOf(controller *unstructured.Unstructured, g Grant) ([]runtime.Object, error) {
	switch kind := controller.GroupVersionKind(); kind {
	case v1alpha1.SchemeGroupVersion.WithKind("CompositeController"):
		return rolesOf(controller, CompositeRoles, g)
	case v1alpha1.SchemeGroupVersion.WithKind("DecoratorController"):
		return rolesOf(controller, DecoratorRoles, g)
	case cairn.SchemeGroupVersion.WithKind("HistoryPolicy"):
		return rolesOf(controller, PolicyRoles, g)
	default:
		return nil, &NoControllerError{Kind: kind}
	}
}

// Parents returns the resources that a CompositeController or a DecoratorController makes children for, none of
// anything else. Whoever knows which of them are in no namespace says so in [Grant].Cluster.
func Parents(controller *unstructured.Unstructured) []schema.GroupVersionResource {
	rules, _, _ := unstructured.NestedSlice(controller.Object, "spec", "resources")
	if rule, found, _ := unstructured.NestedMap(controller.Object, "spec", "parentResource"); found {
		rules = append(rules, rule)
	}
	var out []schema.GroupVersionResource
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		apiVersion, _ := rule["apiVersion"].(string)
		resource, _ := rule["resource"].(string)
		if version, err := schema.ParseGroupVersion(apiVersion); err == nil {
			out = append(out, version.WithResource(resource))
		}
	}
	return out
}

func rolesOf[T any](o *unstructured.Unstructured, roles func(*T, Grant) ([]runtime.Object, error), g Grant) ([]runtime.Object, error) {
	var controller T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &controller); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	out, err := roles(&controller, g)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return out, nil
}

// CompositeRoles returns the roles that the manager needs to run one CompositeController, bound to the manager's
// service account. If the controller names a ServiceAccount, they are bound to that, and the manager may act as it. The
// error is a [*PowerfulError], an [*EscalationError], or says which field of the controller cannot
// be granted.
func CompositeRoles(c *v1alpha1.CompositeController, g Grant) ([]runtime.Object, error) {
	r, err := newRights(c)
	if err != nil {
		return nil, err
	}
	parent, err := r.resource(c.Spec.ParentResource.ResourceRule)
	if err != nil {
		return nil, fmt.Errorf("parentResource: %w", err)
	}
	r.parents.Insert(parent)
	hooks := c.Spec.Hooks
	if hooks == nil {
		hooks = &v1alpha1.CompositeControllerHooks{}
	}
	r.allow(parent, "", toRead...)
	if hooks.Finalize != nil || g.Undo {
		r.allow(parent, "", "patch") // the finalizer, the spec
	}
	r.allow(parent, "/status", "patch")
	r.allow(parent, "/finalizers", "update") // blockOwnerDeletion, of children and of revisions
	// A controller that rolls children, or sets revisionHistory, has revisions.
	if slices.ContainsFunc(c.Spec.ChildResources, rolling) || c.Spec.ParentResource.RevisionHistory != nil {
		r.allow(v1alpha1.SchemeGroupVersion.WithResource("controllerrevisions").GroupResource(), "", toMake...)
		if r.named() { // the admission policies know the manager's account by its name, no other
			r.allow(v1alpha1.SchemeGroupVersion.WithResource("controllerrevisions").GroupResource(), "", "override")
		}
	}
	for i, child := range c.Spec.ChildResources {
		resource, err := r.resource(child.ResourceRule)
		if err != nil {
			return nil, fmt.Errorf("childResources[%d]: %w", i, err)
		}
		r.made.Insert(resource)
		r.allow(resource, "", toMake...)
	}
	r.hooks(c.Spec.EndpointConfigs, hooks.Sync, hooks.Finalize, hooks.Customize)
	return r.roles("cairn-composite:"+c.Name, c.Name, g)
}

// DecoratorRoles returns the roles that the manager needs to run one DecoratorController. Errors are as for
// [CompositeRoles].
func DecoratorRoles(c *v1alpha1.DecoratorController, g Grant) ([]runtime.Object, error) {
	r, err := newRights(c)
	if err != nil {
		return nil, err
	}
	for i, rule := range c.Spec.Resources {
		resource, err := r.resource(rule.ResourceRule)
		if err != nil {
			return nil, fmt.Errorf("resources[%d]: %w", i, err)
		}
		r.parents.Insert(resource)
		r.allow(resource, "", toRead...)
		r.allow(resource, "", "patch") // labels, annotations, the finalizer
		r.allow(resource, "/status", "patch")
		if len(c.Spec.Attachments) > 0 {
			r.allow(resource, "/finalizers", "update")
		}
	}
	for i, attachment := range c.Spec.Attachments {
		resource, err := r.resource(attachment.ResourceRule)
		if err != nil {
			return nil, fmt.Errorf("attachments[%d]: %w", i, err)
		}
		r.made.Insert(resource)
		r.allow(resource, "", "get", "list", "watch", "create")
		// Nothing is adopted, so an attachment with OnDelete is never changed. Whether one is to be recreated is asked by a
		// dry run of the change.
		if attachment.UpdateStrategy.EffectiveMethod() != v1alpha1.ChildUpdateOnDelete {
			r.allow(resource, "", "patch")
		}
		r.allow(resource, "", "delete")
	}
	if hooks := c.Spec.Hooks; hooks != nil {
		r.hooks(c.Spec.EndpointConfigs, hooks.Sync, hooks.Finalize, hooks.Customize)
	}
	return r.roles("cairn-decorator:"+c.Name, c.Name, g)
}

// PolicyRoles returns the roles that the manager needs to carry out one HistoryPolicy. The error is a [*PowerfulError],
// or says which field of the policy cannot be granted.
func PolicyRoles(p *cairn.HistoryPolicy, g Grant) ([]runtime.Object, error) {
	r, err := newRights(p)
	if err != nil {
		return nil, err
	}
	resource, err := r.resource(v1alpha1.ResourceRule{APIVersion: p.Spec.Resource.APIVersion, Resource: p.Spec.Resource.Resource})
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	if p.Spec.AllowSensitive { // somebody has decided that already
		g.Allow = append(g.Allow, resource)
	}
	r.allow(resource, "", toRead...)
	r.owner(resource)
	if p.Spec.NamespaceSelector != nil {
		r.allow(schema.GroupResource{Resource: "namespaces"}, "", toWatch...)
	}
	return r.roles("cairn-recorder:"+p.Name, p.Name, g)
}

func rolling(c v1alpha1.ChildResource) bool { return c.UpdateStrategy.EffectiveMethod().Rolling() }

// YAML returns objects as one YAML stream.
func YAML(objects []runtime.Object) string {
	var out strings.Builder
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(must(yaml.Marshal(o))) // plain data
	}
	return out.String()
}

// roles checks what was collected and makes objects of it.
func (r *rights) roles(name, controller string, g Grant) ([]runtime.Object, error) {
	if problems := validation.IsDNS1123Subdomain(controller); len(problems) > 0 {
		return nil, fmt.Errorf("the controller's name %q: %s", controller, problems[0])
	}
	if problems := validation.IsDNS1123Label(g.Namespace); g.Namespace != "" && len(problems) > 0 {
		return nil, fmt.Errorf("namespace %q: %s", g.Namespace, problems[0])
	}
	for _, related := range g.Related {
		if err := grantable(related); err != nil {
			return nil, fmt.Errorf("related resource %s: %w", related, err)
		}
		if related == secrets {
			r.listed.Insert(related)
		}
	}
	credentials, err := r.credentials()
	if err != nil {
		return nil, err
	}
	bound, err := r.escalation(g)
	if err := errors.Join(r.powerful(g), err); err != nil { // all that the user has to decide, at once
		return nil, err
	}
	for _, related := range g.Related {
		r.allow(related, "", toWatch...)
	}
	rules := append(r.rules(), bound...)
	if !r.named() {
		return append(granted(name, g.Namespace, rules, credentials, manager()), everywhere(name, r.scales(g), manager())...), nil
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: r.account.Name, Namespace: r.account.Namespace}
	out := []runtime.Object{serviceAccount(r.account)}
	out = append(out, granted(name, g.Namespace, rules, credentials, account)...)
	out = append(out, everywhere(name, r.scales(g), account)...)
	out = append(out, r.impersonation(name, g, rules, credentials)...)
	if len(r.own) > 0 {
		out = append(out, granted(name+":revisions", g.Namespace, r.own, nil, manager())...)
	}
	return out, nil
}

// scales returns the rule to read the CustomResourceDefinitions of parents that may be rolled back: they name the field
// that holds the scale, which a rollback keeps.
func (r *rights) scales(g Grant) []rbacv1.PolicyRule {
	var definitions []string
	for parent := range r.parents {
		if g.Undo && strings.Contains(parent.Group, ".") {
			definitions = append(definitions, parent.String())
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	slices.Sort(definitions)
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: definitions,
		Verbs: []string{"get"},
	}}
}

// everywhere returns a ClusterRole and its binding to one subject, also for a grant in one namespace. It returns
// nothing if there are no rules.
func everywhere(name string, rules []rbacv1.PolicyRule, to rbacv1.Subject) []runtime.Object {
	if len(rules) == 0 {
		return nil
	}
	return granted(name+":definitions", "", rules, nil, to)
}

// granted are the roles of one subject: everywhere, or in one namespace; and those for what hooks refer to, by the
// namespace in which that is.
func granted(name, namespace string, rules []rbacv1.PolicyRule, by map[string][]rbacv1.PolicyRule, to rbacv1.Subject) []runtime.Object {
	out := []runtime.Object{clusterRole(name, rules), clusterRoleBinding(name, to)}
	if namespace != "" {
		out = []runtime.Object{role(name, namespace, rules), roleBinding(name, namespace, to)}
	}
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		out = append(out, role(name+":credentials", namespace, by[namespace]), roleBinding(name+":credentials", namespace, to))
	}
	return out
}

// impersonation lets the manager look the account up and act as it: with all its rights, or with these rules and no
// others. Reviews are how the manager finds out what it may do.
func (r *rights) impersonation(
	name string, g Grant, rules []rbacv1.PolicyRule, credentials map[string][]rbacv1.PolicyRule,
) []runtime.Object {
	name += ":impersonate"
	rule := func(group string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{r.account.Name}, Verbs: verbs,
		}
	}
	look := rule("", toWatch...)
	if !g.Constrained {
		in := r.account.Namespace
		rules := []rbacv1.PolicyRule{look, rule("", "impersonate")}
		return []runtime.Object{role(name, in, rules), roleBinding(name, in, manager())}
	}
	as := rule(authenticationv1.GroupName, "impersonate:serviceaccount")
	for namespace := range credentials {
		credentials[namespace] = onBehalf(credentials[namespace])
	}
	out := granted(name, g.Namespace, onBehalf(rules), credentials, manager())
	name += ":as"
	in := r.account.Namespace
	review := onBehalf(append([]rbacv1.PolicyRule{{
		APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"selfsubjectaccessreviews"}, Verbs: []string{"create"},
	}}, r.scales(g)...))
	return append(out, role(name, in, []rbacv1.PolicyRule{look, as}), roleBinding(name, in, manager()),
		clusterRole(name, review), clusterRoleBinding(name, manager()))
}

// requests are the verbs of requests; others, such as bind, are asked for the account itself.
var requests = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// onBehalf are the same rules for whoever acts as a ServiceAccount.
func onBehalf(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		rule := *rule.DeepCopy()
		rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(requests, verb) })
		for i, verb := range rule.Verbs {
			rule.Verbs[i] = "impersonate-on:serviceaccount:" + verb
		}
		if len(rule.Verbs) > 0 {
			out = append(out, rule)
		}
	}
	return out
}

func serviceAccount(name types.NamespacedName) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
	}
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func role(name, namespace string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Rules: rules}
}

func clusterRoleBinding(name string, to rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{to},
	}
}

func roleBinding(name, namespace string, to rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: rbacType("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{to},
	}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// manager is the manager's own account.
func manager() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: ServiceAccount, Namespace: Namespace}
}
