package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// parse returns a controller as its author wrote it.
func parse[T any](t *testing.T, manifest string) *T {
	t.Helper()
	c := new(T)
	if err := yaml.UnmarshalStrict([]byte(manifest), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompositeRoles(t *testing.T) {
	for name, c := range map[string]struct {
		controller string
		grant      Grant
		want       string
	}{
		// Whoever looks at the rules of a controller without hooks sees what every parent needs, and nothing to write on it.
		"nothing listed": {
			controller: `
metadata: {name: bare}
spec: {parentResource: {apiVersion: ctl.example.com/v1, resource: cats}}`,
			want: `
ClusterRole cairn-composite:bare
  cats.ctl.example.com get list watch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update`,
		},
		"rolling, and a finalize hook": {
			controller: `
metadata: {name: catset}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: catsets}
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate}}
  - {apiVersion: v1, resource: services}
  - {apiVersion: apps/v1, resource: deployments}
  - {apiVersion: apps/v1beta1, resource: deployments}
  hooks:
    sync: {webhook: {url: http://hook}}
    finalize: {webhook: {url: http://hook}}`,
			want: `
ClusterRole cairn-composite:catset
  catsets.ctl.example.com get list watch patch
  catsets/status.ctl.example.com patch
  catsets/finalizers.ctl.example.com update
  controllerrevisions.metacontroller.k8s.io get list watch create patch delete
  pods,services get list watch create patch delete
  deployments.apps get list watch create patch delete`,
		},
		"recorded, and not rolled": {
			controller: `
metadata: {name: cats}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: cats, revisionHistory: {fieldPaths: [spec.template]}}
  childResources: [{apiVersion: v1, resource: pods}]`,
			want: `
ClusterRole cairn-composite:cats
  cats.ctl.example.com get list watch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update
  controllerrevisions.metacontroller.k8s.io get list watch create patch delete
  pods get list watch create patch delete`,
		},
		// A child of the parent's own kind gets one rule.
		"children that are parents": {
			controller: `
metadata: {name: trees}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: trees}
  childResources: [{apiVersion: ctl.example.com/v1, resource: trees}]`,
			want: `
ClusterRole cairn-composite:trees
  trees.ctl.example.com get list watch create patch delete
  trees/status.ctl.example.com patch
  trees/finalizers.ctl.example.com update`,
		},
		"related, in one namespace": {
			controller: `
metadata: {name: cats}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: cats}
  childResources: [{apiVersion: v1, resource: configmaps}]`,
			grant: Grant{
				Namespace: "team",
				Related:   []schema.GroupResource{{Resource: "configmaps"}, {Resource: "secrets"}, {Group: "apps", Resource: "deployments"}},
				Allow:     []schema.GroupResource{{Resource: "secrets"}},
			},
			want: `
Role team/cairn-composite:cats
  cats.ctl.example.com get list watch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update
  configmaps get list watch create patch delete
  secrets list watch
  deployments.apps list watch`,
		},
		// Each object is named, whichever hook refers to it; hooks that nobody asks refer to nothing.
		"credentials": {
			controller: `
metadata: {name: tls}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: cats}
  hooks:
    sync: {webhook: {url: https://a, caBundle: {configMapRef: {name: ca, namespace: hooks}}, authorization: {secretRef: {name: token, namespace: hooks, key: k}}}}
    finalize: {webhook: {url: https://b, caBundle: {secretRef: {name: ca, namespace: other}}}}
    customize: {webhook: {url: https://c, clientTLS: {secretRef: {name: pair, namespace: hooks}}}}
    preUpdateChild: {webhook: {url: https://d, basicAuth: {secretRef: {name: never, namespace: hooks}}}}
  endpointConfigs:
  - {host: e, basicAuth: {secretRef: {name: user, namespace: hooks}}}`,
			grant: Grant{Secrets: []types.NamespacedName{
				{Namespace: "hooks", Name: "token"},
				{Namespace: "other", Name: "ca"},
				{Namespace: "hooks", Name: "pair"},
				{Namespace: "hooks", Name: "user"},
			}},
			want: `
ClusterRole cairn-composite:tls
  cats.ctl.example.com get list watch patch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update
Role hooks/cairn-composite:tls:credentials
  secrets list watch [pair token user]
  configmaps list watch [ca]
Role other/cairn-composite:tls:credentials
  secrets list watch [ca]`,
		},
		"powerful, on purpose": {
			controller: `
metadata: {name: tenants}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: tenants}
  childResources: [{apiVersion: rbac.authorization.k8s.io/v1, resource: rolebindings}]`,
			grant: Grant{Allow: rbac("rolebindings"), Held: []string{"rolebindings"}},
			want: `
ClusterRole cairn-composite:tenants
  tenants.ctl.example.com get list watch
  tenants/status.ctl.example.com patch
  tenants/finalizers.ctl.example.com update
  rolebindings.rbac.authorization.k8s.io get list watch create patch delete`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CompositeRoles(parse[v1alpha1.CompositeController](t, c.controller), c.grant)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.TrimSpace(c.want), render(t, got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecoratorRoles(t *testing.T) {
	const labels = `
metadata: {name: labels}
spec:
  resources: [{apiVersion: v1, resource: namespaces}, {apiVersion: apps/v1, resource: deployments}]
  hooks: {sync: {webhook: {url: https://a, authorization: {secretRef: {name: token, namespace: hooks, key: k}}}}}`
	for manifest, want := range map[string]string{
		labels: `
ClusterRole cairn-decorator:labels
  namespaces get list watch patch
  namespaces/status patch
  deployments.apps get list watch patch
  deployments/status.apps patch
Role hooks/cairn-decorator:labels:credentials
  secrets list watch [token]`,
		labels + `
  attachments:
  - {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: Recreate}}
  - {apiVersion: v1, resource: persistentvolumeclaims}`: `
ClusterRole cairn-decorator:labels
  namespaces get list watch patch
  namespaces/status patch
  namespaces/finalizers update
  deployments.apps get list watch patch
  deployments/status.apps patch
  deployments/finalizers.apps update
  services,configmaps get list watch create patch delete
  persistentvolumeclaims get list watch create delete
Role hooks/cairn-decorator:labels:credentials
  secrets list watch [token]`,
	} {
		got, err := DecoratorRoles(parse[v1alpha1.DecoratorController](t, manifest), Grant{Allow: []schema.GroupResource{secrets}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.TrimSpace(want), render(t, got)); d != "" {
			t.Error(d)
		}
	}
}

// TestRefusedRoles: what RBAC would read as more than one object or resource is said, and not granted.
func TestRefusedRoles(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{`parentResource: {apiVersion: v1, resource: "*"}`, `parentResource: resource "*"`},
		{`parentResource: {apiVersion: "*/v1", resource: cats}`, `parentResource: API group "*"`},
		{`parentResource: {apiVersion: a/b/c, resource: cats}`, `parentResource: unexpected GroupVersion`},
		{`parentResource: {apiVersion: v1, resource: ""}`, `resource ""`},
		{`{parentResource: {apiVersion: v1, resource: cats}, childResources: [{apiVersion: v1, resource: pods/exec}]}`, `childResources[0]: resource "pods/exec"`},
		{`{parentResource: {apiVersion: v1, resource: cats}, childResources: [{apiVersion: v1, resource: secrets}]}`, `secrets: they are credentials of everybody`},
		{`{parentResource: {apiVersion: v1, resource: cats}, childResources: [{apiVersion: metacontroller.k8s.io/v1alpha1, resource: controllerrevisions}]}`, `controllerrevisions.metacontroller.k8s.io: they say`},
		{`{parentResource: {apiVersion: v1, resource: cats}, hooks: {sync: {webhook: {clientTLS: {secretRef: {namespace: hooks, name: ""}}}}}}`, `by the name ""`},
		{`{parentResource: {apiVersion: v1, resource: cats}, hooks: {sync: {webhook: {clientTLS: {secretRef: {namespace: "", name: tls}}}}}}`, `namespace ""`},
	} {
		controller := parse[v1alpha1.CompositeController](t, "metadata: {name: cats}\nspec: "+strings.TrimSpace(braced(c.spec)))
		if got, err := CompositeRoles(controller, Grant{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\n%s", c.spec, err, render(t, got))
		}
	}
	bare := parse[v1alpha1.CompositeController](t, "{metadata: {name: cats}, spec: {parentResource: {apiVersion: v1, resource: cats}}}")
	for _, g := range []Grant{{Namespace: "*"}, {Related: []schema.GroupResource{{Resource: "*"}}}, {Related: []schema.GroupResource{{Group: "*", Resource: "pods"}}}} {
		if _, err := CompositeRoles(bare, g); err == nil {
			t.Errorf("%+v is granted", g)
		}
	}
	bare.Name = ""
	if _, err := CompositeRoles(bare, Grant{}); err == nil {
		t.Error("roles without a name")
	}
	_, err := DecoratorRoles(parse[v1alpha1.DecoratorController](t, `{metadata: {name: x}, spec: {resources: [{apiVersion: apiextensions.k8s.io/v1, resource: customresourcedefinitions}, {apiVersion: v1, resource: secrets}]}}`), Grant{})
	powerful, ok := errors.AsType[*PowerfulError](err)
	if want := []schema.GroupResource{{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, {Resource: "secrets"}}; !ok || !slices.Equal(powerful.Resources, want) {
		t.Error(err)
	}
}

// TestSecretsAreGrantedOnPurpose: those that a webhook names, and those that it may ask for.
func TestSecretsAreGrantedOnPurpose(t *testing.T) {
	c := parse[v1alpha1.CompositeController](t, `
metadata: {name: cats}
spec:
  parentResource: {apiVersion: v1, resource: cats}
  hooks: {sync: {webhook: {url: https://a, authorization: {secretRef: {name: token, namespace: hooks, key: k}}}}}
  endpointConfigs: [{host: e, clientTLS: {secretRef: {name: pair, namespace: hooks}}}]`)
	token, pair := types.NamespacedName{Namespace: "hooks", Name: "token"}, types.NamespacedName{Namespace: "hooks", Name: "pair"}
	for _, tc := range []struct {
		grant     Grant
		secrets   []types.NamespacedName
		resources []schema.GroupResource
	}{
		{Grant{}, []types.NamespacedName{pair, token}, nil},
		{Grant{Secrets: []types.NamespacedName{pair}}, []types.NamespacedName{token}, nil},
		{
			Grant{Secrets: []types.NamespacedName{pair, token}, Related: []schema.GroupResource{secrets}},
			nil,
			[]schema.GroupResource{secrets},
		},
		{Grant{Secrets: []types.NamespacedName{pair, token}}, nil, nil},
		{Grant{Allow: []schema.GroupResource{secrets}, Related: []schema.GroupResource{secrets}}, nil, nil},
	} {
		_, err := CompositeRoles(c, tc.grant)
		refused, _ := errors.AsType[*PowerfulError](err)
		if refused == nil {
			refused = &PowerfulError{}
		}
		if !slices.Equal(refused.Secrets, tc.secrets) || !slices.Equal(refused.Resources, tc.resources) {
			t.Errorf("%+v: %v", tc.grant, err)
		}
	}
}

// TestPodsOfParentsInNoNamespace: they run everywhere, so that they are granted on purpose; children that run nothing,
// and what is decorated itself, are not concerned.
func TestPodsOfParentsInNoNamespace(t *testing.T) {
	composite := `{kind: CompositeController, apiVersion: metacontroller.k8s.io/v1alpha1, metadata: {name: x}, spec: {
		parentResource: {apiVersion: example.com/v1, resource: trees},
		childResources: [{apiVersion: v1, resource: configmaps}, {apiVersion: v1, resource: pods}, {apiVersion: batch/v1, resource: jobs},
			{apiVersion: apps/v1, resource: deployments}]}}`
	decorator := `{kind: DecoratorController, apiVersion: metacontroller.k8s.io/v1alpha1, metadata: {name: x}, spec: {
		resources: [{apiVersion: v1, resource: pods}, {apiVersion: example.com/v1, resource: trees}],
		attachments: [{apiVersion: v1, resource: replicationcontrollers}]}}`
	trees := schema.GroupResource{Group: "example.com", Resource: "trees"}
	for manifest, want := range map[string][]string{
		composite: {"deployments.apps", "jobs.batch", "pods"},
		decorator: {"replicationcontrollers"},
	} {
		o := parse[unstructured.Unstructured](t, manifest)
		if parents := Parents(o); !slices.ContainsFunc(parents, func(r schema.GroupVersionResource) bool { return r.GroupResource() == trees }) {
			t.Errorf("parents: %v", parents)
		}
		if _, err := RolesOf(o, Grant{}); err != nil {
			t.Errorf("parents in a namespace: %v", err)
		}
		_, err := RolesOf(o, Grant{Cluster: []schema.GroupResource{trees}})
		refused, ok := errors.AsType[*PowerfulError](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		var got []string
		for _, r := range refused.Resources {
			got = append(got, r.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := RolesOf(o, Grant{Cluster: []schema.GroupResource{trees}, Allow: refused.Resources}); err != nil {
			t.Errorf("on purpose: %v", err)
		}
	}
}

// TestNoRoleSaysAll: whatever a controller says, no rule of its roles covers more than it names.
func TestNoRoleSaysAll(t *testing.T) {
	odd := rapid.SampledFrom([]string{"*", "", "a/b", "*/v1", "pods/exec", "A", "x y", ".."})
	granted := 0
	rapid.Check(t, func(rt *rapid.T) {
		word := func(label, usual string) string {
			if rapid.IntRange(0, 9).Draw(rt, label) == 0 {
				return odd.Draw(rt, label)
			}
			return usual
		}
		rule := func(label string) v1alpha1.ResourceRule {
			return v1alpha1.ResourceRule{APIVersion: word(label, "apps/v1"), Resource: word(label, "deployments")}
		}
		c := &v1alpha1.CompositeController{}
		c.Name = word("name", "cats")
		c.Spec.ParentResource.ResourceRule = rule("parent")
		c.Spec.ChildResources = []v1alpha1.ChildResource{{ResourceRule: rule("child")}}
		ref := v1alpha1.SecretReference{Name: word("secret", "tls"), Namespace: word("secret", "hooks")}
		c.Spec.EndpointConfigs = []v1alpha1.EndpointConfig{{ClientTLS: &v1alpha1.ClientTLS{SecretRef: ref}}}
		g := Grant{Namespace: word("namespace", "team"), Related: []schema.GroupResource{{Resource: word("related", "pods")}}, Allow: []schema.GroupResource{secrets}}
		objects, err := CompositeRoles(c, g)
		if err != nil {
			return
		}
		granted++
		for _, o := range objects {
			for _, rule := range rulesOf(o) {
				all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames)
				if slices.Contains(all, "*") || slices.Contains(rule.Resources, "") || slices.Contains(rule.ResourceNames, "") {
					rt.Fatalf("%+v", rule)
				}
				if slices.Equal(rule.Resources, []string{"secrets"}) && len(rule.ResourceNames) == 0 {
					rt.Fatalf("all secrets: %+v", rule)
				}
			}
		}
	})
	if granted == 0 {
		t.Error("nothing was ever granted")
	}
}

func braced(s string) string {
	if strings.HasPrefix(s, "{") {
		return s
	}
	return "{" + s + "}"
}

func rulesOf(o runtime.Object) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		return o.Rules
	case *rbacv1.Role:
		return o.Rules
	}
	return nil
}

// render writes roles as a person would list them, with the account that each is bound to unless that is the manager's.
func render(t *testing.T, objects []runtime.Object) string {
	t.Helper()
	to := map[string]string{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			to["ClusterRole "+o.RoleRef.Name] += bound(t, o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			to["Role "+o.Namespace+"/"+o.RoleRef.Name] += bound(t, o.RoleRef, o.Subjects)
		}
	}
	var out strings.Builder
	heading := func(role string) {
		fmt.Fprintln(&out, strings.TrimSuffix(role+" for "+to[role], " for cairn-system/cairn-manager"))
		delete(to, role)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			fmt.Fprintf(&out, "ServiceAccount %s/%s\n", o.Namespace, o.Name)
		case *rbacv1.ClusterRole:
			heading("ClusterRole " + o.Name)
		case *rbacv1.Role:
			heading("Role " + o.Namespace + "/" + o.Name)
		}
		for _, rule := range rulesOf(o) {
			resources := strings.Join(rule.Resources, ",")
			if rule.APIGroups[0] != "" {
				resources += "." + rule.APIGroups[0]
			}
			names := ""
			if len(rule.ResourceNames) > 0 {
				names = fmt.Sprintf(" %v", rule.ResourceNames)
			}
			fmt.Fprintf(&out, "  %s %s%s\n", resources, strings.Join(rule.Verbs, " "), names)
		}
	}
	if len(to) > 0 {
		t.Errorf("bindings of no role: %v", to)
	}
	return strings.TrimSpace(out.String())
}

// bound returns the one account that a binding gives rights to.
func bound(t *testing.T, to rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	t.Helper()
	if to.APIGroup != rbacv1.GroupName || len(subjects) != 1 || subjects[0].Kind != rbacv1.ServiceAccountKind {
		t.Errorf("%+v is bound to %+v", to, subjects)
	}
	return subjects[0].Namespace + "/" + subjects[0].Name
}

// TestRolesOfAnAccount: what the controller needs is the account's, and the manager may act as it, and as nobody else.
func TestRolesOfAnAccount(t *testing.T) {
	const cats = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: cats, annotations: {cairn.dev/service-account: team/runner}}
spec:
  parentResource: {apiVersion: ctl.example.com/v1, resource: cats}
  childResources: [{apiVersion: rbac.authorization.k8s.io/v1, resource: rolebindings, updateStrategy: {method: RollingInPlace}}]
  hooks: {sync: {webhook: {url: https://a, clientTLS: {secretRef: {name: pair, namespace: hooks}}}}}`
	const account = `
ServiceAccount team/runner
ClusterRole cairn-composite:cats for team/runner
  cats.ctl.example.com get list watch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update
  controllerrevisions.metacontroller.k8s.io get list watch create patch delete override
  rolebindings.rbac.authorization.k8s.io get list watch create patch delete
  clusterroles.rbac.authorization.k8s.io bind [view]
Role hooks/cairn-composite:cats:credentials for team/runner
  secrets list watch [pair]
`
	on := func(verbs string) string {
		return "impersonate-on:serviceaccount:" + strings.ReplaceAll(verbs, " ", " impersonate-on:serviceaccount:")
	}
	behalf := `
  cats/status.ctl.example.com ` + on("patch") + `
  cats/finalizers.ctl.example.com ` + on("update") + `
  controllerrevisions.metacontroller.k8s.io ` + on("get list watch create patch delete") + `
  rolebindings.rbac.authorization.k8s.io ` + on("get list watch create patch delete") + `
Role hooks/cairn-composite:cats:impersonate:credentials
  secrets ` + on("list watch") + ` [pair]
Role team/cairn-composite:cats:impersonate:as
  serviceaccounts list watch [runner]
  serviceaccounts.authentication.k8s.io impersonate:serviceaccount [runner]
ClusterRole cairn-composite:cats:impersonate:as
  selfsubjectaccessreviews.authorization.k8s.io ` + on("create")
	grant := Grant{
		Allow: rbac("rolebindings"), Bind: []RoleRef{{"clusterroles", "view"}}, Secrets: []types.NamespacedName{{Namespace: "hooks", Name: "pair"}},
	}
	constrained := grant
	constrained.Constrained = true
	undo := constrained
	undo.Undo, undo.Namespace = true, "shop"
	const policy = `
apiVersion: cairn.dev/v1alpha1
kind: HistoryPolicy
metadata: {name: maps, annotations: {cairn.dev/service-account: team/runner}}
spec: {resource: {apiVersion: v1, resource: configmaps}}`
	for name, c := range map[string]struct {
		manifest string
		grant    Grant
		want     string
	}{
		"all that the account may": {cats, grant, account + `
Role team/cairn-composite:cats:impersonate
  serviceaccounts list watch [runner]
  serviceaccounts impersonate [runner]`},
		"what is granted here": {cats, constrained, account + `
ClusterRole cairn-composite:cats:impersonate
  cats.ctl.example.com ` + on("get list watch") + behalf},
		"what a rollback reads, which is in no namespace": {cats, undo, `
ServiceAccount team/runner
Role shop/cairn-composite:cats for team/runner
  cats.ctl.example.com get list watch patch
  cats/status.ctl.example.com patch
  cats/finalizers.ctl.example.com update
  controllerrevisions.metacontroller.k8s.io get list watch create patch delete override
  rolebindings.rbac.authorization.k8s.io get list watch create patch delete
  clusterroles.rbac.authorization.k8s.io bind [view]
Role hooks/cairn-composite:cats:credentials for team/runner
  secrets list watch [pair]
ClusterRole cairn-composite:cats:definitions for team/runner
  customresourcedefinitions.apiextensions.k8s.io get [cats.ctl.example.com]
Role shop/cairn-composite:cats:impersonate
  cats.ctl.example.com ` + on("get list watch patch") + behalf + `
  customresourcedefinitions.apiextensions.k8s.io ` + on("get") + ` [cats.ctl.example.com]`},
		// The manager writes the revisions of what is recorded, so that they are the policies' to protect.
		"of a policy": {policy, Grant{Namespace: "shop"}, `
ServiceAccount team/runner
Role shop/cairn-recorder:maps for team/runner
  configmaps get list watch
Role team/cairn-recorder:maps:impersonate
  serviceaccounts list watch [runner]
  serviceaccounts impersonate [runner]
Role shop/cairn-recorder:maps:revisions
  configmaps/finalizers update`},
	} {
		got, err := RolesOf(parse[unstructured.Unstructured](t, c.manifest), c.grant)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(strings.ReplaceAll(strings.TrimSpace(c.want), "\n\n", "\n"), render(t, got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if _, err := RolesOf(parse[unstructured.Unstructured](t, strings.Replace(cats, "team/runner", "runner", 1)), grant); err == nil ||
		!strings.Contains(err.Error(), "NAMESPACE/NAME does") {
		t.Error(err)
	}
}

// What is recorded is read, and nothing else: the policy says it. Secrets are granted to who allows them.
func TestPolicyRoles(t *testing.T) {
	for name, c := range map[string]struct{ policy, want string }{
		"plain": {`
metadata: {name: maps}
spec: {resource: {apiVersion: v1, resource: configmaps}}`, `
ClusterRole cairn-recorder:maps
  configmaps get list watch
  configmaps/finalizers update`},
		"namespaces": {`
metadata: {name: ingresses}
spec: {resource: {apiVersion: networking.k8s.io/v1, resource: ingresses}, namespaceSelector: {matchLabels: {a: b}}}`, `
ClusterRole cairn-recorder:ingresses
  ingresses.networking.k8s.io get list watch
  ingresses/finalizers.networking.k8s.io update
  namespaces list watch`},
		"secrets, on purpose": {`
metadata: {name: secrets}
spec: {resource: {apiVersion: v1, resource: secrets}, allowSensitive: true}`, `
ClusterRole cairn-recorder:secrets
  secrets get list watch
  secrets/finalizers update`},
	} {
		roles, err := PolicyRoles(parse[cairn.HistoryPolicy](t, c.policy), Grant{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(strings.TrimSpace(c.want), strings.TrimSpace(render(t, roles))); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	_, err := PolicyRoles(parse[cairn.HistoryPolicy](t, "metadata: {name: s}\nspec: {resource: {apiVersion: v1, resource: secrets}}"), Grant{})
	if _, powerful := errors.AsType[*PowerfulError](err); !powerful {
		t.Errorf("secrets are granted: %v", err)
	}
}
