package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	hooks "github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/metacontroller/related"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file holds what hooks are told besides parents and children against the real API server, its watches and its
// roles: related objects, and the Secrets that hooks refer to.

// limited returns the identity of somebody who may do what rules say in the test's namespace, and nothing else.
func (e *env) limited(rules ...rbacv1.PolicyRule) (cfg *rest.Config, role *rbacv1.Role) {
	e.Helper()
	cfg = e.sandbox.Config()
	cfg.QPS = -1
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "limited-" + e.namespace}
	role = &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "limited"}, Rules: rules}
	e.create(role)
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "limited"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: cfg.Impersonate.UserName}},
	})
	return cfg, role
}

func (e *env) secret(name string, labels map[string]string, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name, Labels: labels},
		Data:       map[string][]byte{"token": []byte(value)},
	}
}

// A role that names two Secrets is enough for a hook that refers to those, and a hook that refers to another one hears
// so.
func TestSecretsOfHooks(t *testing.T) {
	e := newEnv(t)
	read := []string{"get", "list", "watch"}
	cfg, role := e.limited(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"token", "later"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"ca"}, Verbs: read},
	)
	secrets, err := hooks.NewWatchedSecrets(t.Context(), cfg, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: e.namespace, Name: name}
	}
	says := func(name, value string) {
		t.Helper()
		e.eventually("read secret "+name, func() error {
			s, err := secrets.Secret(t.Context(), key(name))
			if err == nil && string(s.Data["token"]) != value {
				return fmt.Errorf("it is %q, not %q", s.Data["token"], value)
			}
			return err
		})
	}
	token := e.secret("token", nil, "one")
	e.create(token)
	e.create(e.secret("other", nil, "nobody's business"))
	says("token", "one")
	token.Data["token"] = []byte("two")
	must(t, e.Update(t.Context(), token))
	says("token", "two")
	if _, err := secrets.Secret(t.Context(), key("later")); !apierrors.IsNotFound(err) {
		t.Error("a secret that is not there:", err)
	}
	e.create(e.secret("later", nil, "at last"))
	says("later", "at last")
	e.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "ca"}, Data: map[string]string{"ca.crt": "PEM"}})
	e.eventually("read a config map", func() error {
		m, err := secrets.ConfigMap(t.Context(), key("ca"))
		if err == nil && m.Data["ca.crt"] != "PEM" {
			return fmt.Errorf("it is %v", m.Data)
		}
		return err
	})

	before := time.Now()
	_, err = secrets.Secret(t.Context(), key("other"))
	if took := time.Since(before); !apierrors.IsForbidden(err) || took > 20*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	role.Rules[0].ResourceNames = append(role.Rules[0].ResourceNames, "other")
	must(t, e.Update(t.Context(), role))
	says("other", "nobody's business")
}

// relating runs a controller whose parents are ConfigMaps: data.related holds what their customize hook answers.
type relating struct {
	*env

	mu sync.Mutex
	// told is the latest outcome of each parent.
	told map[string]string
}

func newRelating(t *testing.T, cfg *rest.Config, e *env) *relating {
	t.Helper()
	r := &relating{env: e, told: map[string]string{}}
	customize := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var q struct{ Parent corev1.ConfigMap }
		if err := json.NewDecoder(req.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"relatedResources":`+q.Parent.Data["related"]+`}`)
	}))
	t.Cleanup(customize.Close)
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: klog.Background(), Metrics: server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(20 * time.Second), Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	hosted, err := host.NewEnvironment(mgr, host.Options{AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hosted.Hook(hooks.Controller{Type: hooks.Composite, Name: e.namespace}, hooks.Customize, &v1alpha1.Hook{
		Version: new(v1alpha1.HookVersionV2), Webhook: &v1alpha1.Webhook{URL: &customize.URL},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	parent := watching.Resource{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespaced: true}
	objects := related.New(hosted.Server, h, v1alpha1.HookVersionV2, parent)
	c, err := controller.New("related", mgr, controller.Options{Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return r.pass(ctx, hosted, objects, parent, req)
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []source.Source{
		&watching.Events{Cache: hosted.Cache, Object: parent.New(), Handler: &handler.EnqueueRequestForObject{}}, objects.Source(),
	} {
		must(t, c.Watch(s))
	}
	e.run(mgr.Start)
	return r
}

func (r *relating) pass(
	ctx context.Context, hosted *host.Environment, objects *related.Objects, kind watching.Resource, req reconcile.Request,
) (reconcile.Result, error) {
	o, _ := kind.New().(*unstructured.Unstructured)
	if err := hosted.Cache.Get(ctx, req.NamespacedName, o); err != nil || req.Namespace != r.namespace {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, ours, _ := unstructured.NestedString(o.Object, "data", "related"); !ours {
		return reconcile.Result{}, nil
	}
	groups, err := objects.Gather(ctx, o)
	if errors.Is(err, watching.ErrNotSynced) {
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	var told []string
	for _, g := range groups {
		for _, o := range g.Objects {
			told = append(told, o.GetKind()+" "+o.GetName())
		}
	}
	if err != nil {
		told = []string{err.Error()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[o.GetName()] = strings.Join(told, ", ")
	return reconcile.Result{}, err
}

// parent creates a parent with rules.
func (r *relating) parent(name, rules string) {
	r.Helper()
	r.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}, Data: map[string]string{"related": rules}})
}

// hears waits until a parent was told something that has part in it; an empty part stands for nothing at all.
func (r *relating) hears(parent, part string) {
	r.Helper()
	r.eventually(parent+" is told", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		told, known := r.told[parent]
		if !known || !strings.Contains(told, part) || part == "" && told != "" {
			return fmt.Errorf("%q (%t), not %q", told, known, part)
		}
		return nil
	})
}

// A kind that the manager may not list is an error of the parents that ask for it, until the role gives it.
func TestRelatedObjectsThatMayNotBeListed(t *testing.T) {
	e := newEnv(t)
	read := []string{"get", "list", "watch"}
	cfg, _ := e.limited()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: cfg.Impersonate.UserName},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: read},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{"kubernetes"}, Verbs: read},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: cfg.Impersonate.UserName}},
	}
	e.create(role)
	e.create(binding)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(e.Delete(ctx, binding), e.Delete(ctx, role)); err != nil {
			t.Error(err)
		}
	})
	r := newRelating(t, cfg, e)
	in := `"namespace":"` + e.namespace + `"}]`
	r.parent("refused", `[{"apiVersion":"v1","resource":"secrets",`+in)
	r.hears("refused", "cannot list resource")
	r.hears("refused", "the role needs get, list and watch")
	r.parent("served", `[{"apiVersion":"v1","resource":"services",`+in)
	r.hears("served", "")
	e.create(e.secret("a", nil, "1"))
	role.Rules[0].Resources = append(role.Rules[0].Resources, "secrets")
	must(t, e.Update(t.Context(), role))
	r.hears("refused", "Secret a")
}
