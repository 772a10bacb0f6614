package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file collects rights and makes rules of them. A name that RBAC would read as a wildcard is an error here.

// The verbs that the manager uses: on what it keeps in a cache, on parents, which it reads past the cache as well, and
// on what it makes. delete is also what OwnerReferencesPermissionEnforcement asks for when an object is adopted or
// released.
var (
	toWatch = []string{"list", "watch"}
	toRead  = []string{"get", "list", "watch"}
	toMake  = []string{"get", "list", "watch", "create", "patch", "delete"}
)

// rights are what one controller needs, in the order in which it says so.
type rights struct {
	resources []right
	// listed are the resources that the controller names, parents those among them that it makes the others for, and made
	// those that it makes.
	listed, parents, made sets.Set[schema.GroupResource]
	// referred are the names that hooks refer to.
	referred map[referred]sets.Set[string]
	// account is the ServiceAccount that the controller names.
	account types.NamespacedName
	// own are the manager's beside those of the account.
	own []rbacv1.PolicyRule
}

// referred is where an object is that a hook refers to: secrets or configmaps of one namespace.
type referred struct{ namespace, resource string }

// newRights returns those of a controller, none yet. The error says that its account has no such name.
func newRights(controller metav1.Object) (*rights, error) {
	none := sets.New[schema.GroupResource]
	account, err := cairn.ServiceAccountOf(controller)
	return &rights{
		listed: none(), parents: none(), made: none(), referred: map[referred]sets.Set[string]{}, account: account,
	}, err
}

// named reports whether the controller names an account.
func (r *rights) named() bool { return r.account != types.NamespacedName{} }

// right is what may be done with one resource. sub is a subresource with its slash, or empty.
type right struct {
	schema.GroupResource

	sub   string
	verbs []string
}

// allow adds verbs, each once.
func (r *rights) allow(resource schema.GroupResource, sub string, verbs ...string) {
	i := slices.IndexFunc(r.resources, func(is right) bool { return is.GroupResource == resource && is.sub == sub })
	if i < 0 {
		i = len(r.resources)
		r.resources = append(r.resources, right{GroupResource: resource, sub: sub})
	}
	for _, verb := range verbs {
		if !slices.Contains(r.resources[i].verbs, verb) {
			r.resources[i].verbs = append(r.resources[i].verbs, verb)
		}
	}
}

// owner lets the manager, which writes the revisions of what is recorded whoever reads that, set blockOwnerDeletion.
func (r *rights) owner(of schema.GroupResource) {
	if !r.named() {
		r.allow(of, "/finalizers", "update")
		return
	}
	r.own = append(r.own, rbacv1.PolicyRule{
		APIGroups: []string{of.Group}, Resources: []string{of.Resource + "/finalizers"}, Verbs: []string{"update"},
	})
}

// rules joins what differs in the resource only.
func (r *rights) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, is := range r.resources {
		name := is.Resource + is.sub
		i := slices.IndexFunc(out, func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] == is.Group && slices.Equal(rule.Verbs, is.verbs)
		})
		if i < 0 {
			out = append(out, rbacv1.PolicyRule{APIGroups: []string{is.Group}, Resources: []string{name}, Verbs: is.verbs})
			continue
		}
		out[i].Resources = append(out[i].Resources, name)
	}
	return out
}

// resource reads what a controller lists.
func (r *rights) resource(rule v1alpha1.ResourceRule) (schema.GroupResource, error) {
	version, err := schema.ParseGroupVersion(rule.APIVersion)
	if err != nil {
		return schema.GroupResource{}, err
	}
	out := version.WithResource(rule.Resource).GroupResource()
	r.listed.Insert(out)
	return out, grantable(out)
}

// grantable refuses what is not the name of a resource, in particular a star.
func grantable(r schema.GroupResource) error {
	if problems := validation.IsDNS1123Label(r.Resource); len(problems) > 0 {
		return fmt.Errorf("resource %q: %s", r.Resource, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(r.Group); r.Group != "" && len(problems) > 0 {
		return fmt.Errorf("API group %q: %s", r.Group, problems[0])
	}
	return nil
}

// hooks adds the Secrets and ConfigMaps that hooks refer to. Entries that are nil are not asked.
func (r *rights) hooks(endpoints []v1alpha1.EndpointConfig, hooks ...*v1alpha1.Hook) {
	for _, h := range hooks {
		if h != nil && h.Webhook != nil {
			r.endpoint(h.Webhook.CABundle, h.Webhook.ClientTLS, h.Webhook.Authorization, h.Webhook.BasicAuth)
		}
	}
	for _, e := range endpoints {
		r.endpoint(e.CABundle, e.ClientTLS, e.Authorization, e.BasicAuth)
	}
}

func (r *rights) endpoint(ca *v1alpha1.CABundle, tls *v1alpha1.ClientTLS, token *v1alpha1.Authorization, user *v1alpha1.BasicAuth) {
	if ca != nil && ca.SecretRef != nil {
		r.refer(secrets.Resource, ca.SecretRef.Namespace, ca.SecretRef.Name)
	}
	if ca != nil && ca.ConfigMapRef != nil {
		r.refer("configmaps", ca.ConfigMapRef.Namespace, ca.ConfigMapRef.Name)
	}
	if tls != nil {
		r.refer(secrets.Resource, tls.SecretRef.Namespace, tls.SecretRef.Name)
	}
	if token != nil {
		r.refer(secrets.Resource, token.SecretRef.Namespace, token.SecretRef.Name)
	}
	if user != nil {
		r.refer(secrets.Resource, user.SecretRef.Namespace, user.SecretRef.Name)
	}
}

func (r *rights) refer(resource, namespace, name string) {
	where := referred{namespace, resource}
	if r.referred[where] == nil {
		r.referred[where] = sets.New[string]()
	}
	r.referred[where].Insert(name)
}

// credentials returns, by namespace, the rules for what hooks refer to by name. Without a name a rule would grant all,
// so an empty one is an error.
func (r *rights) credentials() (map[string][]rbacv1.PolicyRule, error) {
	out := map[string][]rbacv1.PolicyRule{}
	secretsFirst := func(a, b referred) int { return -strings.Compare(a.resource, b.resource) }
	for _, where := range slices.SortedFunc(maps.Keys(r.referred), secretsFirst) {
		names := sets.List(r.referred[where])
		for _, name := range names {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				return nil, fmt.Errorf("a hook refers to %s in namespace %q by the name %q: %s", where.resource, where.namespace, name, problems[0])
			}
		}
		if problems := validation.IsDNS1123Label(where.namespace); len(problems) > 0 {
			return nil, fmt.Errorf("a hook refers to %s in namespace %q: %s", where.resource, where.namespace, problems[0])
		}
		out[where.namespace] = append(out[where.namespace], rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{where.resource}, ResourceNames: names, Verbs: toWatch,
		})
	}
	return out, nil
}

// PowerfulError says that a controller lists resources that give more than they seem to: any user who may create a
// parent, or operates the webhook, would have it too. Grant them on purpose, with [Grant].Allow and [Grant].Secrets, or
// list other resources.
type PowerfulError struct {
	// Resources and Secrets, which are named, are sorted. There is at least one of them.
	Resources []schema.GroupResource
	Secrets   []types.NamespacedName
}

func (e *PowerfulError) Error() string {
	var parts []string
	for _, r := range e.Resources {
		const everywhere = "the parents are in no namespace, so these run in any, as any service account there"
		parts = append(parts, fmt.Sprintf("%s: %s", r, cmp.Or(why(r), everywhere)))
	}
	for _, s := range e.Secrets {
		parts = append(parts, fmt.Sprintf("Secret %s: it is sent to the webhook, or decides whom the manager believes", s))
	}
	return "the controller would get more than it seems to: " + strings.Join(parts, "; ")
}

// powerful checks what the controller lists and names.
func (r *rights) powerful(g Grant) error {
	refused := &PowerfulError{}
	for resource := range r.listed {
		everywhere := runsPods(resource) && r.made.Has(resource) && r.parents.HasAny(g.Cluster...)
		if (why(resource) != "" || everywhere) && !slices.Contains(g.Allow, resource) {
			refused.Resources = append(refused.Resources, resource)
		}
	}
	for where, names := range r.referred {
		for name := range names {
			secret := types.NamespacedName{Namespace: where.namespace, Name: name}
			if where.resource == secrets.Resource && !slices.Contains(g.Allow, secrets) && !slices.Contains(g.Secrets, secret) {
				refused.Secrets = append(refused.Secrets, secret)
			}
		}
	}
	if len(refused.Resources)+len(refused.Secrets) == 0 {
		return nil
	}
	slices.SortFunc(refused.Resources, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(refused.Secrets, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return refused
}

// secrets are what is sensitive to read, not to write only.
var secrets = schema.GroupResource{Resource: "secrets"}

// runsPods reports whether an object of a resource is a pod, or makes some.
func runsPods(r schema.GroupResource) bool {
	switch r.Group {
	case "":
		return r.Resource == "pods" || r.Resource == "replicationcontrollers"
	case "apps":
		return r.Resource != "controllerrevisions"
	default:
		return r.Group == "batch"
	}
}

// why says which other rights follow from writing a resource, empty if there are none.
func why(r schema.GroupResource) string {
	switch r.Group {
	case "":
		if r == secrets {
			return "they are credentials of everybody"
		}
	case rbacv1.GroupName:
		return "they hand out rights"
	case "admissionregistration.k8s.io", "apiregistration.k8s.io", "apiextensions.k8s.io":
		return "they decide about requests of everybody"
	case "certificates.k8s.io":
		return "they make identities"
	case v1alpha1.SchemeGroupVersion.Group:
		return "they say what the manager does"
	}
	return ""
}
