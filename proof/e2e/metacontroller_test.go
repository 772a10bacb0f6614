package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file asks the real API server what it makes of Metacontroller's objects under the shipped CRDs: which it takes,
// what it fills in, what it refuses and with which sentence.

// metacontrollerEnv is an env whose API server serves the shipped CRDs, and whose client knows them.
func metacontrollerEnv(t *testing.T) *env {
	t.Helper()
	return knowingMetacontroller(newEnv(t, &theHosted))
}

func knowingMetacontroller(e *env) *env {
	e.Helper()
	must(e, install.CRDs(e.Context(), e.sandbox.Config()))
	scheme := runtime.NewScheme()
	must(e, v1alpha1.AddToScheme(scheme))
	c, err := client.NewWithWatch(e.sandbox.Config(), client.Options{Scheme: scheme})
	if err != nil {
		e.Fatal(err)
	}
	e.WithWatch = c
	return e
}

// make creates the object of a manifest under a name of its own. A field that the schema does not know is an error.
func (e *env) make(kind, manifest string) (*unstructured.Unstructured, error) {
	e.Helper()
	o := &unstructured.Unstructured{}
	must(e, yaml.Unmarshal([]byte(manifest), &o.Object))
	o.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
	o.SetGenerateName("test-")
	if kind == "ControllerRevision" {
		o.SetNamespace(e.namespace)
	}
	err := e.Create(e.Context(), o, client.FieldValidation(metav1.FieldValidationStrict))
	if err == nil {
		e.Cleanup(func() { _ = e.Delete(context.WithoutCancel(e.Context()), o) })
	}
	return o, err
}

// kubectl runs a real one, as a process: in this one, tests beside each other would share its handler of warnings.
func (e *env) kubectl(args ...string) (out string, ok bool) {
	e.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		e.Fatal(err)
	}
	binaries(e.T)
	args = append([]string{"--kubeconfig", e.sandbox.Kubeconfig(), "--namespace", e.namespace}, args...)
	printed, err := exec.CommandContext(e.Context(), filepath.Join(root, "bin", "kubectl"), args...).CombinedOutput()
	return string(printed), err == nil
}

// everyField sets every field that Metacontroller has.
const everyField = `
spec:
  parentResource:
    apiVersion: ctl.enisoc.com/v1
    resource: catsets
    labelSelector:
      matchLabels: {team: cats}
      matchExpressions: [{key: tier, operator: In, values: [gold]}]
    revisionHistory: {fieldPaths: [spec.template, spec.volumeClaimTemplates]}
    ignoreStatusChanges: true
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, statusChecks: {conditions: [{type: Ready, status: "True", reason: Fine}]}}}
  - {apiVersion: v1, resource: services, updateStrategy: {method: RollingInPlace}}
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: batch/v1, resource: jobs, updateStrategy: {method: Recreate}}
  - {apiVersion: v1, resource: secrets, updateStrategy: {method: OnDelete}}
  - {apiVersion: v1, resource: persistentvolumeclaims}
  resyncPeriodSeconds: 30
  generateSelector: false
  hooks:
    customize: {version: v2, webhook: {service: {name: catset, namespace: hooks}, path: /customize}}
    sync:
      version: v1
      webhook:
        url: https://catset.hooks:8443/sync
        path: /ignored
        service: {name: catset, namespace: hooks, port: 8443, protocol: https}
        timeout: 2m30s
        etag: {enabled: true, cacheTimeoutSeconds: 60, cacheCleanupSeconds: 120}
        responseUnMarshallMode: strict
        caBundle: {inline: PEM}
        clientTLS: {secretRef: {name: tls, namespace: hooks}, certKey: cert, privateKeyKey: key}
        authorization: {type: Token, secretRef: {name: token, namespace: hooks, key: token}}
    finalize: {webhook: {url: http://catset.hooks/finalize, basicAuth: {secretRef: {name: user, namespace: hooks}, usernameKey: u, passwordKey: p}}}
    preUpdateChild: {webhook: {url: http://catset.hooks/pre}}
    postUpdateChild: {webhook: {url: http://catset.hooks/post}}
  endpointConfigs:
  - {host: catset.hooks, caBundle: {secretRef: {name: ca, namespace: hooks, key: ca.pem}}, authorization: {secretRef: {name: token, namespace: hooks, key: token}}}
  - {host: other.hooks:8443, caBundle: {configMapRef: {name: ca, namespace: hooks}}, clientTLS: {secretRef: {name: tls, namespace: hooks}}}
`

// cairnFields sets every field that cairn adds.
const cairnFields = `
spec:
  parentResource: {apiVersion: example.com/v1, resource: cats, revisionHistory: {limit: 3, namespace: cats}}
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, maxUnavailable: 25%, partition: 2, minReadySeconds: 10, paused: true}}
  - {apiVersion: v1, resource: services, updateStrategy: {method: RollingInPlace, maxUnavailable: 3}}
`

// catSet has the shape of the example that Metacontroller comes with.
const catSet = `
spec:
  parentResource:
    apiVersion: ctl.enisoc.com/v1
    resource: catsets
    revisionHistory:
      fieldPaths:
      - spec.template
  childResources:
  - apiVersion: v1
    resource: pods
    updateStrategy:
      method: RollingRecreate
      statusChecks:
        conditions:
        - type: Ready
          status: "True"
  - apiVersion: v1
    resource: persistentvolumeclaims
  hooks:
    sync:
      webhook:
        url: http://catset-controller.metacontroller/sync
    finalize:
      webhook:
        url: http://catset-controller.metacontroller/sync
`

const decorator = `
spec:
  resources:
  - apiVersion: apps/v1
    resource: statefulsets
    labelSelector: {matchLabels: {team: cats}}
    annotationSelector:
      matchAnnotations: {service-per-pod-label: pod-name}
      matchExpressions: [{key: service-per-pod-ports, operator: Exists}]
    ignoreStatusChanges: true
  attachments:
  - {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: configmaps}
  resyncPeriodSeconds: 600
  hooks:
    sync: {webhook: {service: {name: service-per-pod, namespace: hooks}, path: /sync}}
    customize: {webhook: {url: http://service-per-pod.hooks/customize}}
    finalize: {version: v2, webhook: {url: http://service-per-pod.hooks/finalize}}
  endpointConfigs: [{host: service-per-pod.hooks}]
`

func TestMetacontrollerManifestsAreTaken(t *testing.T) {
	e := metacontrollerEnv(t)
	for name, c := range map[string]struct{ kind, manifest string }{
		"the CatSet example":          {"CompositeController", catSet},
		"every field":                 {"CompositeController", everyField},
		"every field of cairn":        {"CompositeController", cairnFields},
		"the least":                   {"CompositeController", "spec: {parentResource: {apiVersion: example.com/v1, resource: cats}}"},
		"a decorator":                 {"DecoratorController", decorator},
		"the least of a decorator":    {"DecoratorController", "spec: {resources: []}"},
		"a timeout of nothing":        {"CompositeController", hook("{url: http://a.b/c, timeout: 0s}")},
		"a negative timeout":          {"CompositeController", hook("{url: http://a.b/c, timeout: -1s}")},
		"a path of nothing":           {"CompositeController", hook(`{service: {name: a, namespace: b}, path: ""}`)},
		"a service by its whole name": {"CompositeController", hook(`{service: {name: a, namespace: b.svc.cluster.local}, path: /}`)},
		"an etag without cleanup":     {"CompositeController", hook("{url: http://a.b/c, etag: {enabled: true, cacheTimeoutSeconds: 1}}")},
		"a revision":                  {"ControllerRevision", "parentPatch: {spec: {replicas: 3}}\nchildren: [{apiGroup: '', kind: Pod, names: [a, b]}]"},
		"a revision of nothing":       {"ControllerRevision", "parentPatch: {}"},
		"a revision with a number":    {"ControllerRevision", "parentPatch: {}\nrevision: 7\nchildren: []"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := e.make(c.kind, c.manifest); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// hook is a CompositeController with one webhook.
func hook(webhook string) string {
	return "spec: {parentResource: {apiVersion: example.com/v1, resource: cats}, hooks: {sync: {webhook: " + webhook + "}}}"
}

// child is a CompositeController with one child resource.
func child(fields string) string {
	return "spec: {parentResource: {apiVersion: example.com/v1, resource: cats}, childResources: [{apiVersion: v1, resource: pods, " + fields + "}]}"
}

func TestMetacontrollerDefaults(t *testing.T) {
	e := metacontrollerEnv(t)
	o, err := e.make("CompositeController", `
spec:
  parentResource: {apiVersion: example.com/v1, resource: cats, revisionHistory: {}}
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {}}
  - {apiVersion: v1, resource: services}
  hooks:
    sync:
      webhook:
        path: /sync
        service: {name: a, namespace: b}
        caBundle: {secretRef: {name: a, namespace: b}}
        clientTLS: {secretRef: {name: a, namespace: b}}
        authorization: {secretRef: {name: a, namespace: b, key: c}}
    finalize:
      webhook:
        url: http://a.b/finalize
        caBundle: {configMapRef: {name: a, namespace: b}}
        basicAuth: {secretRef: {name: a, namespace: b}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
parentResource: {apiVersion: example.com/v1, resource: cats, revisionHistory: {fieldPaths: [spec], limit: 10}}
childResources:
- {apiVersion: v1, resource: pods, updateStrategy: {method: OnDelete}}
- {apiVersion: v1, resource: services}
hooks:
  sync:
    version: v1
    webhook:
      path: /sync
      timeout: 10s
      service: {name: a, namespace: b, port: 80, protocol: http}
      caBundle: {secretRef: {name: a, namespace: b, key: ca.crt}}
      clientTLS: {secretRef: {name: a, namespace: b}, certKey: tls.crt, privateKeyKey: tls.key}
      authorization: {type: Bearer, secretRef: {name: a, namespace: b, key: c}}
  finalize:
    version: v1
    webhook:
      url: http://a.b/finalize
      timeout: 10s
      caBundle: {configMapRef: {name: a, namespace: b, key: ca.crt}}
      basicAuth: {secretRef: {name: a, namespace: b}, usernameKey: username, passwordKey: password}
`), &want); err != nil {
		t.Fatal(err)
	}
	// YAML of both sides, because one has integers where the other has floats.
	if diff := cmp.Diff(asYAML(t, want), asYAML(t, o.Object["spec"])); diff != "" {
		t.Error(diff)
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMetacontrollerObjectsAreRefused(t *testing.T) {
	e := metacontrollerEnv(t)
	for name, c := range map[string]struct{ kind, manifest, want string }{
		"a webhook without an address":   {"CompositeController", hook("{timeout: 3s}"), "a webhook needs an address"},
		"a service without a path":       {"CompositeController", hook("{service: {name: a, namespace: b}}"), "a webhook needs an address"},
		"a url of another scheme":        {"CompositeController", hook("{url: 'file:///etc/shadow'}"), "begins with http:// or https://"},
		"a path that names another host": {"CompositeController", hook("{service: {name: a, namespace: b}, path: '@example.com/'}"), "webhook.path"},
		"a service that names a host":    {"CompositeController", hook("{service: {name: '169.254.169.254/', namespace: b}, path: /}"), "service.name"},
		"a namespace that names a host":  {"CompositeController", hook("{service: {name: a, namespace: 'b@example.com'}, path: /}"), "service.namespace"},
		"a port that is none":            {"CompositeController", hook("{service: {name: a, namespace: b, port: 4294967296}, path: /}"), "port"},
		"a protocol that is none":        {"CompositeController", hook("{service: {name: a, namespace: b, protocol: gopher}, path: /}"), "protocol of a service is http or https"},
		"a timeout that is none":         {"CompositeController", hook("{url: http://a.b/c, timeout: soon}"), "duration"},
		"two ways to log in": {
			"CompositeController",
			hook("{url: http://a.b/c, authorization: {secretRef: {name: a, namespace: b, key: c}}, basicAuth: {secretRef: {name: a, namespace: b}}}"),
			"keep one of them",
		},
		"Basic by hand":            {"CompositeController", hook("{url: http://a.b/c, authorization: {type: BASIC, secretRef: {name: a, namespace: b, key: c}}}"), "use basicAuth"},
		"a caBundle of nothing":    {"CompositeController", hook("{url: http://a.b/c, caBundle: {}}"), "exactly one of inline, secretRef and configMapRef"},
		"a caBundle twice":         {"CompositeController", hook("{url: http://a.b/c, caBundle: {inline: PEM, secretRef: {name: a, namespace: b}}}"), "exactly one of"},
		"a mode that is none":      {"CompositeController", hook("{url: http://a.b/c, responseUnMarshallMode: Strict}"), `Unsupported value: "Strict"`},
		"a version that is none":   {"CompositeController", "spec: {parentResource: {apiVersion: v1, resource: pods}, hooks: {sync: {version: v3}}}", `Unsupported value: "v3"`},
		"a method that is none":    {"CompositeController", child("updateStrategy: {method: Rolling}"), `Unsupported value: "Rolling"`},
		"a subresource as a child": {"CompositeController", "spec: {parentResource: {apiVersion: v1, resource: pods}, childResources: [{apiVersion: v1, resource: pods/exec}]}", "is no object"},
		"a subresource as a parent": {
			"CompositeController", "spec: {parentResource: {apiVersion: v1, resource: pods/status}}", "is no object",
		},
		"a budget of nothing":          {"CompositeController", child("updateStrategy: {method: RollingInPlace, maxUnavailable: 0}"), "to stop a rollout set paused"},
		"a budget below nothing":       {"CompositeController", child("updateStrategy: {method: RollingInPlace, maxUnavailable: -1}"), "to stop a rollout set paused"},
		"a budget of no percent":       {"CompositeController", child("updateStrategy: {method: RollingInPlace, maxUnavailable: 0%}"), "maxUnavailable"},
		"a budget of too many percent": {"CompositeController", child("updateStrategy: {method: RollingInPlace, maxUnavailable: 101%}"), "maxUnavailable"},
		"a budget that is text":        {"CompositeController", child("updateStrategy: {method: RollingInPlace, maxUnavailable: some}"), "maxUnavailable"},
		"limits of no rollout":         {"CompositeController", child("updateStrategy: {method: InPlace, paused: true}"), "are limits of a rollout"},
		"limits of no method":          {"CompositeController", child("updateStrategy: {minReadySeconds: 3}"), "are limits of a rollout"},
		"a negative partition":         {"CompositeController", child("updateStrategy: {method: RollingInPlace, partition: -1}"), "partition"},
		"a negative history":           {"CompositeController", "spec: {parentResource: {apiVersion: v1, resource: pods, revisionHistory: {limit: -1}}}", "limit"},
		"a namespace that cannot be":   {"CompositeController", "spec: {parentResource: {apiVersion: v1, resource: pods, revisionHistory: {namespace: a/b}}}", "namespace"},
		"a decorator of a subresource": {"DecoratorController", "spec: {resources: [{apiVersion: v1, resource: pods/log}]}", "is no object"},
		"an attachment of a subresource": {
			"DecoratorController", "spec: {resources: [], attachments: [{apiVersion: v1, resource: pods/eviction}]}", "is no object",
		},
		"a decorator's webhook without an address": {"DecoratorController", "spec: {resources: [], hooks: {sync: {webhook: {}}}}", "a webhook needs an address"},
		"an endpoint with two ways to log in": {
			"DecoratorController",
			"spec: {resources: [], endpointConfigs: [{host: a, authorization: {secretRef: {name: a, namespace: b, key: c}}, basicAuth: {secretRef: {name: a, namespace: b}}}]}",
			"keep one of them",
		},
		"a revision without a patch":       {"ControllerRevision", "children: []", "parentPatch"},
		"a revision whose patch is text":   {"ControllerRevision", "parentPatch: text", "parentPatch"},
		"a revision with a number below 0": {"ControllerRevision", "parentPatch: {}\nrevision: -1", "revision"},
		"children of no kind":              {"ControllerRevision", "parentPatch: {}\nchildren: [{apiGroup: '', names: []}]", "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.make(c.kind, c.manifest)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("refused with %q, which does not say %q", err, c.want)
			}
		})
	}
}
