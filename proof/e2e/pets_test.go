package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/cli"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file holds parents of CompositeControllers that nobody runs: their revisions are written by hand, in the format
// of package metacontroller, so nothing changes between two looks.

// petsCRD is a custom resource whose template has a default, as after an upgrade of its schema.
func petsCRD(kind, plural, scope string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.inspect.example.com}
spec:
  group: inspect.example.com
  names: {kind: %[1]s, plural: %[2]s, singular: %[3]s}
  scope: %[4]s
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template:
                type: object
                properties:
                  text: {type: string}
                  milk: {type: boolean}
                  color: {type: string, default: black}
`, kind, plural, strings.ToLower(kind), scope)
}

const pets = "inspect.example.com"

// pet is a parent of a CompositeController.
type pet struct {
	*env

	controller *v1alpha1.CompositeController
	format     *metacontroller.Format
	parent     *unstructured.Unstructured
	// cache is where discovery is kept between two commands, as on a person's machine.
	cache string
}

// newPet makes the kind, the controller and the parent, of which the last two arguments are parts in YAML.
func newPet(t *testing.T, kind, plural, scope, revisionHistory, spec string) *pet {
	t.Helper()
	p := &pet{env: metacontrollerEnv(t), controller: &v1alpha1.CompositeController{}, cache: t.TempDir()}
	p.apply(petsCRD(kind, plural, scope), fmt.Sprintf(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: %[1]s-of-%[2]s}
spec:
  parentResource: {apiVersion: inspect.example.com/v1, resource: %[1]s, revisionHistory: %[3]s}
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate, statusChecks: {conditions: [{type: Ready, status: "True"}]}}}
`, plural, p.namespace, strings.ReplaceAll(revisionHistory, "NAMESPACE", p.namespace)))
	name := types.NamespacedName{Name: plural + "-of-" + p.namespace}
	must(t, p.Get(t.Context(), name, p.controller))
	t.Cleanup(func() { _ = p.Delete(context.WithoutCancel(t.Context()), p.controller) })
	var err error
	if p.format, err = metacontroller.NewFormat(&p.controller.Spec); err != nil {
		t.Fatal(err)
	}
	p.parent = &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(spec), &p.parent.Object))
	p.parent.SetAPIVersion(pets + "/v1")
	p.parent.SetKind(kind)
	p.parent.SetName("nap")
	if scope == "Namespaced" {
		p.parent.SetNamespace(p.namespace)
	}
	p.eventually("create the parent as soon as its kind is served", func() error { return p.Create(t.Context(), p.parent) })
	t.Cleanup(func() { _ = p.Delete(context.WithoutCancel(t.Context()), p.parent) })
	return p
}

func (p *pet) apply(manifests ...string) {
	p.Helper()
	p.eventually("apply", func() error { return install.Apply(p.Context(), p.sandbox.Config(), manifests...) })
}

// taken returns the revision that a controller makes of parent.
func (p *pet) taken(parent *unstructured.Unstructured, number int64) *v1alpha1.ControllerRevision {
	p.Helper()
	s, err := p.format.Snapshot(parent)
	if err != nil {
		p.Fatal(err)
	}
	stamp := revision.Stamp{ParentUID: parent.GetUID(), Generation: parent.GetGeneration()}
	r, err := p.format.Object(parent, s, nil, number, stamp)
	if err != nil {
		p.Fatal(err)
	}
	return r.(*v1alpha1.ControllerRevision)
}

// record stores the parent as it is, under that number.
func (p *pet) record(number int64, children ...string) *v1alpha1.ControllerRevision {
	p.Helper()
	r := p.taken(p.parent, number)
	if len(children) > 0 {
		r.Children = []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: children}}
	}
	p.create(r)
	return r
}

// patch changes the parent as somebody with kubectl would.
func (p *pet) patch(merge string) {
	p.Helper()
	must(p, p.Patch(p.Context(), p.parent, client.RawPatch(types.MergePatchType, []byte(merge))))
}

// pod creates a child of the parent. Without a node it never becomes ready.
func (p *pet) pod(name, node string) {
	p.Helper()
	selector, err := p.format.ChildSelector(p.parent)
	if err != nil {
		p.Fatal(err)
	}
	labels := map[string]string{}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		labels[r.Key()] = r.Values().UnsortedList()[0]
	}
	c, err := client.New(p.sandbox.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		p.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.parent, p.parent.GroupVersionKind())},
		},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "cat", Image: "cat:1"}},
			NodeSelector: map[string]string{"kubernetes.io/os": node},
		},
	}
	must(p, c.Create(p.Context(), pod))
}

// cairn runs the command line, as a process would, and returns what it printed.
func (p *pet) cairn(args ...string) (stdout, stderr string, code int) {
	p.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
	args = append(args, "--kubeconfig", p.sandbox.Kubeconfig(), "--namespace", p.namespace, "--cache-dir", p.cache)
	code = cli.Main(p.Context(), args, streams, "test")
	return out.String(), errOut.String(), code
}

// says fails the test unless a command ends with that code and prints each of the texts.
func (p *pet) says(code int, command string, texts ...string) {
	p.Helper()
	stdout, stderr, got := p.cairn(strings.Fields(command)...)
	if got != code {
		p.Fatalf("cairn %s ended with %d, want %d\n%s%s", command, got, code, stderr, stdout)
	}
	for _, text := range texts {
		if !strings.Contains(squeezed(stderr+stdout), squeezed(text)) {
			p.Errorf("cairn %s does not say %q:\n%s%s", command, text, stderr, stdout)
		}
	}
}

// squeezed makes columns of any width equal.
func squeezed(s string) string { return blanks.ReplaceAllString(s, "  ") }

// field returns a field of the parent as it is now.
func (p *pet) field(path ...string) any {
	p.Helper()
	must(p, p.Get(p.Context(), client.ObjectKeyFromObject(p.parent), p.parent))
	v, _, _ := unstructured.NestedFieldNoCopy(p.parent.Object, path...)
	return v
}
