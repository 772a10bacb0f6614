package composite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file runs Metacontroller's decorator example: a Service for each pod of a StatefulSet that asks for it by
// annotations, and the label by which the Services find the pods.

// decorators are the DecoratorControllers of the example, of the objects with this lab's label.
const decorators = `
- apiVersion: metacontroller.k8s.io/v1alpha1
  kind: DecoratorController
  metadata: {name: LAB-service-per-pod}
  spec:
    resources:
    - apiVersion: apps/v1
      resource: statefulsets
      labelSelector: {matchLabels: {lab: LAB}}
      annotationSelector:
        matchExpressions:
        - {key: service-per-pod-label, operator: Exists}
        - {key: service-per-pod-ports, operator: Exists}
    attachments:
    - apiVersion: v1
      resource: services
      updateStrategy: {method: InPlace}
    hooks:
      sync: {webhook: {url: URL/sync-service-per-pod}}
      finalize: {webhook: {url: URL/finalize-service-per-pod}}
- apiVersion: metacontroller.k8s.io/v1alpha1
  kind: DecoratorController
  metadata: {name: LAB-pod-name-label}
  spec:
    resources:
    - apiVersion: v1
      resource: pods
      labelSelector:
        matchLabels: {lab: LAB}
        matchExpressions: [{key: pod-name, operator: DoesNotExist}]
      annotationSelector: {matchExpressions: [{key: pod-name-label, operator: Exists}]}
    hooks:
      sync: {webhook: {url: URL/sync-pod-name-label}}
`

// decoration is what a decorator's hook is told.
type decoration struct {
	Object *unstructured.Unstructured
	// Parent is what a customize hook calls the object.
	Parent      *unstructured.Unstructured
	Attachments map[string]map[string]*unstructured.Unstructured
	Related     map[string]map[string]*unstructured.Unstructured
	Finalizing  bool
}

// decorating is a lab with DecoratorControllers in it.
type decorating struct {
	*lab

	// asked counts calls of hooks, requests those to the API server that are no watches and no leases.
	asked, requests atomic.Int64
	controllers     []*v1alpha1.DecoratorController
}

// newDecorating returns a lab with the controllers of a manifest, whose hooks are answered by path, and a manager that
// runs them, with the rights that each of them needs and no more. It runs StatefulSets as well. A field manager is the
// name by which it applies attachments, where it is to do so by server-side apply.
func newDecorating(t *testing.T, manifest string, hooks map[string]func(decoration) any, fieldManager string) *decorating {
	t.Helper()
	d := &decorating{lab: newLab(t)}
	mux := http.NewServeMux()
	for path, answer := range hooks {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			d.asked.Add(1)
			var in decoration
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(answer(in))
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	manifest = strings.NewReplacer("LAB", d.namespace, "URL", server.URL).Replace(manifest)
	must(t, yaml.UnmarshalStrict([]byte(manifest), &d.controllers))
	for _, dc := range d.controllers {
		dc.Annotations = accountOf(d.namespace)
		roles, err := deploy.DecoratorRoles(dc, deploy.Grant{})
		if err != nil {
			t.Fatal(err)
		}
		must(t, install.Apply(t.Context(), d.sandbox.Config(), deploy.YAML(roles)))
		d.create(dc)
		t.Cleanup(func() { _ = d.Delete(context.WithoutCancel(t.Context()), dc) })
	}
	d.manager(fieldManager)
	return d
}

// manager runs cairn until the test ends.
func (d *decorating) manager(fieldManager string) {
	d.Helper()
	controllers := []string{decorator.Name, "statefulset"}
	cfg := managerConfig(d.T, d.sandbox, controllers...)
	cfg.Wrap(d.count)
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.Context()))
	done := make(chan error, 1)
	go func() {
		done <- manager.Run(ctx, manager.Options{
			Config: cfg, Controllers: controllers, Logger: klog.Background(), NamedAccounts: true,
			HookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HookAllowAPIServers: true,
			MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off, FieldManager: fieldManager,
		})
	}()
	d.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.Errorf("the manager ended with: %v", err)
		}
	})
}

// count counts requests about this lab's namespace.
func (d *decorating) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/namespaces/"+d.namespace+"/") && r.URL.Query().Get("watch") == "" {
			d.requests.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// servicePerPod is the example's sync hook for StatefulSets.
func servicePerPod(in decoration) any {
	annotations := in.Object.GetAnnotations()
	replicas, _, _ := unstructured.NestedInt64(in.Object.Object, "spec", "replicas")
	attachments := []any{}
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", in.Object.GetName(), i)
		ports := []any{}
		for pair := range strings.SplitSeq(annotations["service-per-pod-ports"], ",") {
			from, to, _ := strings.Cut(pair, ":")
			port, _ := strconv.Atoi(from)
			target, _ := strconv.Atoi(to)
			ports = append(ports, m{"port": port, "targetPort": target})
		}
		attachments = append(attachments, m{
			"apiVersion": "v1", "kind": "Service", "metadata": m{"name": name},
			"spec": m{"selector": m{annotations["service-per-pod-label"]: name}, "ports": ports},
		})
	}
	return m{"attachments": attachments}
}

// finalizeServicePerPod is its finalize hook: there is to be nothing, and it is done once there is nothing.
func finalizeServicePerPod(in decoration) any {
	return m{"attachments": []any{}, "finalized": len(in.Attachments["Service.v1"]) == 0}
}

// podNameLabel is its sync hook for pods.
func podNameLabel(in decoration) any {
	return m{"labels": m{in.Object.GetAnnotations()["pod-name-label"]: in.Object.GetName()}, "attachments": []any{}}
}

var servicePerPodHooks = map[string]func(decoration) any{
	"/sync-service-per-pod":     servicePerPod,
	"/finalize-service-per-pod": finalizeServicePerPod,
	"/sync-pod-name-label":      podNameLabel,
}

// nginx is the example's StatefulSet. It asks for Services if annotations say so.
func (d *decorating) nginx(replicas int32, annotations map[string]string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "nginx", "lab": d.namespace}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "nginx", Labels: labels, Annotations: annotations},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "nginx", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"pod-name-label": "pod-name"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.27"}}},
			},
		},
	}
}

// services waits until the Services of the namespace are these, as "name:selected->port:target".
func (d *decorating) services(want ...string) map[string]types.UID {
	d.Helper()
	uids := map[string]types.UID{}
	d.eventually("wait for the services", func() error {
		var list corev1.ServiceList
		if err := d.List(d.Context(), &list, client.InNamespace(d.namespace)); err != nil {
			return err
		}
		clear(uids)
		var got []string
		for _, s := range list.Items {
			uids[s.Name] = s.UID
			got = append(got, fmt.Sprintf("%s:%s->%d:%s", s.Name, s.Spec.Selector["pod-name"], s.Spec.Ports[0].Port, s.Spec.Ports[0].TargetPort.String()))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("they are %q, not %q", got, want)
		}
		return nil
	})
	return uids
}

// uidsOf are the StatefulSet and its pods, by name.
func (d *decorating) uidsOf(set *appsv1.StatefulSet, pods int) map[string]types.UID {
	d.Helper()
	out := map[string]types.UID{}
	d.eventually("wait for the pods to be ready and labelled", func() error {
		d.reload(set)
		clear(out)
		out[set.Name] = set.UID
		var list corev1.PodList
		if err := d.List(d.Context(), &list, client.InNamespace(d.namespace), client.HasLabels{"pod-name"}); err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Labels["pod-name"] != p.Name {
				return fmt.Errorf("pod %s has label %s", p.Name, p.Labels["pod-name"])
			}
			out[p.Name] = p.UID
		}
		if len(list.Items) != pods || set.Status.ReadyReplicas != int32(pods) {
			return fmt.Errorf("%d pods are labelled and %d ready, of %d", len(list.Items), set.Status.ReadyReplicas, pods)
		}
		return nil
	})
	return out
}

// change edits the StatefulSet, whatever happened to it meanwhile.
func (d *decorating) change(set *appsv1.StatefulSet, change func()) {
	d.Helper()
	d.eventually("edit the StatefulSet", func() error {
		d.reload(set)
		change()
		return d.Update(d.Context(), set)
	})
}

// quiet waits until hooks are not called and nothing of the namespace is asked of the API server any more.
func (d *decorating) quiet() {
	d.Helper()
	asked, requests, since := d.asked.Load(), d.requests.Load(), 0
	d.eventually("wait until nothing happens", func() error {
		if a, r := d.asked.Load(), d.requests.Load(); a != asked || r != requests {
			asked, requests, since = a, r, 0
		}
		if since++; since < 50 { // a second
			return fmt.Errorf("%d calls of hooks, %d requests so far", asked, requests)
		}
		return nil
	})
}

// TestServicePerPod opts a running StatefulSet in, changes and scales it, and opts it out again: its pods notice
// nothing.
func TestServicePerPod(t *testing.T) {
	for name, fieldManager := range map[string]string{"dynamic apply": "", "server-side apply": "metacontroller"} {
		t.Run(name, func(t *testing.T) { testServicePerPod(t, fieldManager) })
	}
}

func testServicePerPod(t *testing.T, fieldManager string) {
	t.Helper()
	d := newDecorating(t, decorators, servicePerPodHooks, fieldManager)
	set := d.nginx(3, nil)
	d.create(set)
	before := d.uidsOf(set, 3)
	d.services()
	d.quiet()
	asked, requests := d.asked.Load(), d.requests.Load()

	d.change(set, func() {
		set.Annotations = map[string]string{"service-per-pod-label": "pod-name", "service-per-pod-ports": "80:8080"}
	})
	made := d.services("nginx-0:nginx-0->80:8080", "nginx-1:nginx-1->80:8080", "nginx-2:nginx-2->80:8080")
	d.quiet()
	t.Logf("to attach 3 Services took %d calls of the hook and %d requests", d.asked.Load()-asked, d.requests.Load()-requests)
	if ready := meta.FindStatusCondition(d.status(0), hosting.Ready); ready == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("the controller says %+v", ready)
	}

	d.change(set, func() {
		set.Spec.Replicas = new(int32(4))
		set.Annotations["service-per-pod-ports"] = "80:9090"
	})
	changed := d.services("nginx-0:nginx-0->80:9090", "nginx-1:nginx-1->80:9090", "nginx-2:nginx-2->80:9090", "nginx-3:nginx-3->80:9090")
	for name, uid := range made {
		if changed[name] != uid {
			t.Errorf("service %s was made again", name)
		}
	}
	d.uidsOf(set, 4)

	// What somebody deletes comes back, and what somebody changes is put right.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "nginx-1"}}
	must(t, d.Delete(t.Context(), service))
	d.eventually("edit a service", func() error {
		service = &corev1.Service{}
		if err := d.Get(t.Context(), types.NamespacedName{Namespace: d.namespace, Name: "nginx-0"}, service); err != nil {
			return err
		}
		service.Spec.Selector = map[string]string{"pod-name": "somebody-else"}
		return d.Update(t.Context(), service)
	})
	d.services("nginx-0:nginx-0->80:9090", "nginx-1:nginx-1->80:9090", "nginx-2:nginx-2->80:9090", "nginx-3:nginx-3->80:9090")

	d.change(set, func() { set.Annotations = nil })
	d.services()
	d.eventually("wait for the finalizer to go", func() error {
		d.reload(set)
		if len(set.Finalizers) > 0 || set.DeletionTimestamp != nil {
			return fmt.Errorf("finalizers %v", set.Finalizers)
		}
		return nil
	})
	d.quiet()
	after := d.uidsOf(set, 4)
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("%s is another one now", name)
		}
	}
}

// status are the conditions of a DecoratorController.
func (d *decorating) status(i int) []metav1.Condition {
	d.Helper()
	d.reload(d.controllers[i])
	return d.controllers[i].Status.Conditions
}
