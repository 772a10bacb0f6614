package composite

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilsets "k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/cli"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file shows that the roles that are made for a controller are what its manager needs, and no more: every verb
// that is granted is used, and none that is used is refused. The identity is one that other tests grant nothing to.

// audit notes what a client asks of the API server, and what is refused.
type audit struct {
	mu     sync.Mutex
	used   map[string]bool // "get pods", "patch sets.test.cairn.dev/status"
	denied []string
	// namespaces are those of lists and watches, by resource; "" stands for all.
	namespaces map[string]map[string]bool
	// early is what somebody else does just before the next request of a kind, by that.
	early map[string]func()
}

var requests = &apirequest.RequestInfoFactory{
	APIPrefixes: utilsets.NewString("api", "apis"), GrouplessAPIPrefixes: utilsets.NewString("api"),
}

func newAudit() *audit {
	return &audit{used: map[string]bool{}, namespaces: map[string]map[string]bool{}, early: map[string]func(){}}
}

// wrap goes into [rest.Config.Wrap].
func (a *audit) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		info, err := requests.NewRequestInfo(req)
		if err == nil && info.IsResourceRequest && req.URL.Query().Get("dryRun") == "" {
			a.letGoFirst(info.Verb + " " + named(info.APIGroup, info.Resource, info.Subresource))
		}
		resp, failed := next.RoundTrip(req)
		if err != nil || !info.IsResourceRequest {
			return resp, failed
		}
		resource := named(info.APIGroup, info.Resource, info.Subresource)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used[info.Verb+" "+resource] = true
		if info.Verb == "list" || info.Verb == "watch" {
			if a.namespaces[resource] == nil {
				a.namespaces[resource] = map[string]bool{}
			}
			a.namespaces[resource][info.Namespace] = true
		}
		if failed == nil && resp.StatusCode == http.StatusForbidden {
			a.denied = append(a.denied, fmt.Sprintf("%s %s %s/%s", info.Verb, resource, info.Namespace, info.Name))
		}
		return resp, failed
	})
}

// justBefore lets somebody else do something just before the next request of a kind is sent, so that no cache shows it
// yet.
func (a *audit) justBefore(what string, do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.early[what] = do
}

func (a *audit) letGoFirst(what string) {
	a.mu.Lock()
	do := a.early[what]
	delete(a.early, what)
	a.mu.Unlock()
	if do != nil {
		do()
	}
}

func (a *audit) did(what string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used[what]
}

// looked returns the namespaces in which a resource was listed or watched.
func (a *audit) looked(resource string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.namespaces[resource]))
}

func (a *audit) refused() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.denied)
}

func named(group, resource, sub string) string {
	if group != "" {
		resource += "." + group
	}
	if sub != "" {
		resource += "/" + sub
	}
	return resource
}

// exactly fails the test if anything was refused, or anything that manifests grant was not used.
func (a *audit) exactly(t *testing.T, manifests ...string) {
	t.Helper()
	for _, what := range a.refused() {
		t.Errorf("refused: %s", what)
	}
	for _, what := range granted(t, manifests...) {
		verb, resource, _ := strings.Cut(what, " ")
		switch {
		case a.did(what):
		case verb == "list" && a.did("watch "+resource): // where a watch does not begin with what there is
		case what == "patch events": // when one is repeated about the same version of an object
		default:
			t.Errorf("granted and not used: %s", what)
		}
	}
}

// identity is a service account of a test's own, which may do what the shared roles and those of its controllers say.
type identity struct{ lab *lab }

// apply grants what manifests grant the manager to the identity instead.
func (i identity) apply(manifests ...string) {
	i.lab.Helper()
	for n, manifest := range manifests {
		manifests[n] = strings.NewReplacer(
			"name: "+deploy.ServiceAccount, "name: "+i.name(),
			"name: cairn-"+composite.Name+"\n", "name: "+i.name()+"\n",
			"name: cairn-"+decorator.Name+"\n", "name: "+i.name()+"\n",
		).Replace(manifest)
	}
	if err := install.Apply(i.lab.Context(), i.lab.sandbox.Config(), manifests...); err != nil {
		i.lab.Fatal(err)
	}
}

func (i identity) name() string { return "cairn-" + i.lab.namespace }

// shared are the roles of all controllers of a kind.
func shared(t *testing.T, name string) string {
	t.Helper()
	roles, err := deploy.Roles(name, false)
	if err != nil {
		t.Fatal(err)
	}
	return roles
}

// roles are those of one controller.
func (l *lab) roles(cc *v1alpha1.CompositeController, g deploy.Grant) []runtime.Object {
	l.Helper()
	roles, err := deploy.CompositeRoles(cc, g)
	if err != nil {
		l.Fatal(err)
	}
	return roles
}

// run runs a manager as the identity until the test ends, and returns what it asks for.
func (i identity) run(o manager.Options) *audit {
	l := i.lab
	l.Helper()
	a := newAudit()
	cfg := configOf(l.T, l.sandbox, i.name())
	cfg.Wrap(a.wrap)
	o.Config, o.Logger = cfg, klog.Background()
	o.MetricsBindAddress, o.HealthProbeBindAddress = manager.Off, manager.Off
	o.HookAllow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, o) }()
	l.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.Errorf("the manager ended with: %v", err)
		}
	})
	return a
}

// asksFor returns the address of a customize hook that asks for all objects of a resource, and the certificate that it
// is trusted by.
func (l *lab) asksFor(apiVersion, resource string) (url, ca string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"relatedResources":[{"apiVersion":%q,"resource":%q}]}`, apiVersion, resource)
	}))
	l.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// granted lists what roles grant, as an audit has it. What is granted for the sake of admission is never asked for, and
// what the manager does for another account is that account's.
func granted(t *testing.T, manifests ...string) []string {
	t.Helper()
	var out []string
	for _, manifest := range manifests {
		for document := range strings.SplitSeq(manifest, "\n---\n") {
			var role rbacv1.ClusterRole // a Role has the same rules
			must(t, yaml.Unmarshal([]byte(document), &role))
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					resource, sub, _ := strings.Cut(resource, "/")
					for _, verb := range rule.Verbs {
						if sub != "finalizers" && verb != "override" && !strings.HasPrefix(verb, "impersonate") {
							out = append(out, verb+" "+named(rule.APIGroups[0], resource, sub))
						}
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// strategies are the ways in which children are changed, with the field manager of each.
var strategies = map[string]string{"dynamic-apply": "", "server-side-apply": "metacontroller"}

// TestRolesAreExact goes through everything that a manager does for a controller: with its own rights and children that
// are merged, and with those of an account, only for what that was granted, and children that the API server applies.
func TestRolesAreExact(t *testing.T) {
	for name, fieldManager := range strategies {
		t.Run(name, func(t *testing.T) { rolesAreExact(t, fieldManager) })
	}
}

// account is that of a controller which is tried with a way to apply children.
func (l *lab) account(fieldManager string) map[string]string {
	if fieldManager == "" {
		return nil
	}
	return accountOf(l.namespace)
}

// constrains reports whether the API server knows constrained impersonation, which is on since Kubernetes 1.36.
func (l *lab) constrains() bool {
	l.Helper()
	server, err := discovery.NewDiscoveryClientForConfig(l.sandbox.Config())
	must(l, err)
	version, err := server.ServerVersion()
	must(l, err)
	minor, err := strconv.Atoi(version.Minor)
	must(l, err)
	return minor >= 36
}

func rolesAreExact(t *testing.T, fieldManager string) {
	t.Helper()
	l := newLab(t)
	related, ca := l.asksFor("v1", "services")
	cc := l.install(l.controller(func(cc *v1alpha1.CompositeController) {
		cc.Annotations = l.account(fieldManager)
		cc.Spec.ParentResource.RevisionHistory.Limit = new(int32(0))
		bundle := &v1alpha1.CABundle{ConfigMapRef: &v1alpha1.CABundleReference{Name: "ca", Namespace: l.namespace}}
		token := v1alpha1.SecretKeyReference{SecretReference: v1alpha1.SecretReference{Name: "token", Namespace: l.namespace}, Key: "token"}
		cc.Spec.Hooks.Sync.Webhook.Authorization = &v1alpha1.Authorization{SecretRef: token}
		cc.Spec.Hooks.Finalize = cc.Spec.Hooks.Sync
		cc.Spec.Hooks.Customize = &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(related), CABundle: bundle}}
	}))
	l.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "token"}, StringData: map[string]string{"token": "t"}})
	l.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "ca"}, Data: map[string]string{"ca.crt": ca}})
	own := deploy.YAML(l.roles(cc, deploy.Grant{
		Related: []schema.GroupResource{{Resource: "services"}}, Secrets: []types.NamespacedName{{Namespace: l.namespace, Name: "token"}},
		Constrained: l.constrains(),
	}))
	me := identity{l}
	me.apply(shared(t, composite.Name), own)
	a := me.run(manager.Options{Controllers: []string{composite.Name}, FieldManager: fieldManager})

	// An orphan is adopted, the others are made; they are rolled, and the old revision is deleted.
	set := l.set(setKind, "web", 2, "nginx:1.27")
	orphan := &unstructured.Unstructured{Object: l.pod(request{Parent: set}, "web-0")}
	l.create(orphan)
	l.create(set)
	l.rolledOut(set)
	l.image(set, "nginx:1.28")
	l.rolledOut(set)
	l.eventually("wait until the old revision is deleted", func() error {
		if n := len(l.revisions(set)); n != 1 {
			return fmt.Errorf("there are %d revisions", n)
		}
		return nil
	})
	// Names that are taken are looked at, of a child and of a revision, if the cache does not show by whom.
	a.justBefore("create pods", func() {
		stranger := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "web-2"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other"}}},
		}
		if err := l.Create(l.Context(), stranger); err != nil {
			l.Error(err)
		}
	})
	l.scale(set, 3)
	l.reports(set, "ChildExists", "web-2")
	l.scale(set, 2)
	l.rolledOut(set)
	lost := l.revisions(set)[0]
	l.eventually("take the labels from the revision", func() error {
		l.reload(&lost)
		lost.Labels = nil
		return l.Update(l.Context(), &lost)
	})
	l.eventually("wait for a revision in its place", func() error {
		revisions := l.revisions(set)
		if len(revisions) != 1 || revisions[0].Name == lost.Name {
			return fmt.Errorf("there are %d revisions: %+v", len(revisions), revisions)
		}
		return nil
	})
	// The finalizer goes with the parent.
	l.answer(func(in request) any { return m{"status": m{}, "children": []any{}, "finalized": in.Finalizing} })
	must(t, l.Delete(l.Context(), set))
	l.eventually("wait until the parent is gone", func() error {
		err := l.Get(l.Context(), client.ObjectKeyFromObject(set), set.DeepCopy())
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there (%w)", err)
		}
		return nil
	})

	a.exactly(t, shared(t, composite.Name), own)
}

// TestRolesWithoutFinalizers: what no request shows is needed for admission (OwnerReferencesPermissionEnforcement).
func TestRolesWithoutFinalizers(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	roles := l.roles(cc, deploy.Grant{})
	cluster, ok := roles[1].(*rbacv1.ClusterRole)
	if !ok {
		t.Fatalf("%T", roles[1])
	}
	cluster.Rules = slices.DeleteFunc(cluster.Rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "sets/finalizers" })
	me := identity{l}
	me.apply(shared(t, composite.Name), deploy.YAML(roles))
	me.run(manager.Options{Controllers: []string{composite.Name}})
	set := l.set(setKind, "web", 1, "nginx:1.27")
	l.create(set)
	l.reports(set, "SyncError", "cannot set blockOwnerDeletion")
	me.apply(deploy.YAML(l.roles(cc, deploy.Grant{})))
	l.rolledOut(set)
}

// TestRolesInOneNamespace: a manager that looks at one namespace needs rights in that one only.
func TestRolesInOneNamespace(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	roles := l.roles(cc, deploy.Grant{Namespace: l.namespace})
	for _, o := range roles {
		if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "Role" && kind != "RoleBinding" && kind != "ServiceAccount" {
			t.Errorf("a %s", kind)
		}
	}
	me := identity{l}
	me.apply(shared(t, composite.Name), deploy.YAML(roles))
	a := me.run(manager.Options{Controllers: []string{composite.Name}, Namespace: l.namespace})
	set := l.set(setKind, "web", 2, "nginx:1.27")
	l.create(set)
	l.rolledOut(set)
	l.image(set, "nginx:1.28")
	l.rolledOut(set)
	l.images(set, 2, "nginx:1.28")
	for _, what := range a.refused() {
		t.Errorf("refused: %s", what)
	}
	for _, resource := range []string{"sets.test.cairn.dev", "pods", "controllerrevisions.metacontroller.k8s.io"} {
		if got := a.looked(resource); !slices.Equal(got, []string{l.namespace}) {
			t.Errorf("%s are looked at in %q", resource, got)
		}
	}
}

// TestRolesOfAControllerInTheCluster: the verb reads the controller under the name that kubectl prints.
func TestRolesOfAControllerInTheCluster(t *testing.T) {
	l := newLab(t)
	cc := l.install(l.controller())
	var out, problems bytes.Buffer
	code := cli.Main(t.Context(), []string{
		"roles", "compositecontroller.metacontroller.k8s.io/" + cc.Name, "--related=nodes", "--kubeconfig", l.sandbox.Kubeconfig(),
	}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems}, "test")
	if code != 0 {
		t.Fatalf("%d: %s", code, &problems)
	}
	want := deploy.YAML(l.roles(cc, deploy.Grant{Related: []schema.GroupResource{{Resource: "nodes"}}}))
	if _, got, _ := strings.Cut(out.String(), "\".\n"); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// TestDecoratorRolesAreExact goes through everything that a manager does for a decorator.
func TestDecoratorRolesAreExact(t *testing.T) {
	for name, fieldManager := range strategies {
		t.Run(name, func(t *testing.T) { decoratorRolesAreExact(t, fieldManager) })
	}
}

func decoratorRolesAreExact(t *testing.T, fieldManager string) {
	t.Helper()
	l := newLab(t)
	dc := &v1alpha1.DecoratorController{
		ObjectMeta: metav1.ObjectMeta{Name: l.name, Annotations: l.account(fieldManager)},
		Spec: v1alpha1.DecoratorControllerSpec{
			Resources: []v1alpha1.DecoratorResource{{
				ResourceRule:  v1alpha1.ResourceRule{APIVersion: "test.cairn.dev/v1", Resource: "sets"},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"lab": l.namespace}},
			}},
			Attachments: []v1alpha1.Attachment{{
				ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "configmaps"},
				UpdateStrategy: &v1alpha1.AttachmentUpdateStrategy{Method: v1alpha1.ChildUpdateInPlace},
			}},
			Hooks: &v1alpha1.DecoratorControllerHooks{
				Sync:     &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(l.url + "/sync")}},
				Finalize: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(l.url + "/finalize")}},
			},
		},
	}
	roles, err := deploy.DecoratorRoles(dc, deploy.Grant{Constrained: l.constrains()})
	if err != nil {
		t.Fatal(err)
	}
	own := deploy.YAML(roles)
	me := identity{l}
	me.apply(shared(t, decorator.Name), own)
	l.create(dc)
	t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(t.Context()), dc) })
	l.attach("one", "two")
	a := me.run(manager.Options{Controllers: []string{decorator.Name}, FieldManager: fieldManager})

	set := l.set(setKind, "web", 1, "nginx:1.27")
	l.create(set)
	l.attached("one", "1")
	l.attached("two", "1")
	l.scale(set, 2)
	l.attached("one", "2")
	l.attach("one")
	l.scale(set, 3)
	l.eventually("wait until an attachment is deleted", func() error {
		err := l.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "two"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there (%w)", err)
		}
		return nil
	})
	a.justBefore("create configmaps", func() {
		if err := l.Create(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "taken"}}); err != nil {
			l.Error(err)
		}
	})
	l.attach("one", "taken")
	l.scale(set, 4)
	for _, what := range []string{"get configmaps", "patch sets.test.cairn.dev/status"} {
		l.eventually("wait for "+what, func() error {
			if !a.did(what) {
				return errors.New("it was not asked")
			}
			return nil
		})
	}
	l.attach("one")
	must(t, l.Delete(t.Context(), set))
	l.eventually("wait until the object is gone", func() error {
		err := l.Get(t.Context(), client.ObjectKeyFromObject(set), set.DeepCopy())
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there (%w)", err)
		}
		return nil
	})
	a.exactly(t, shared(t, decorator.Name), own)
}

// attach makes the webhook want config maps of these names, which hold the number of replicas.
func (l *lab) attach(names ...string) {
	l.fail(func(w http.ResponseWriter, r *http.Request) {
		var in decoration
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		replicas, _, _ := unstructured.NestedInt64(in.Object.Object, "spec", "replicas")
		attachments := []any{}
		for _, name := range names {
			attachments = append(attachments, m{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": name}, "data": m{"replicas": fmt.Sprint(replicas)},
			})
		}
		_ = json.NewEncoder(w).Encode(m{
			"labels": m{"replicas": fmt.Sprint(replicas)}, "status": m{"replicas": replicas},
			"attachments": attachments, "finalized": in.Finalizing,
		})
	})
}

// attached waits for a config map that holds this number of replicas.
func (l *lab) attached(name, replicas string) {
	l.Helper()
	l.eventually("wait for "+name, func() error {
		var c corev1.ConfigMap
		if err := l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, &c); err != nil {
			return err
		}
		if c.Data["replicas"] != replicas {
			return fmt.Errorf("it holds %v", c.Data)
		}
		return nil
	})
}
