package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/cli"
	exit "github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file sets up an example as examples/README.md tells people to: manifests by kubectl, roles by cairn roles, and
// the hook as a server of its own. The manager then has the rights that it would have there.

// example is one of the examples with its hook.
type example struct {
	*env

	// calls counts what the hook was asked.
	calls *atomic.Int64
	// warns are the reasons of warnings that the test provokes.
	warns []string
}

// newExample installs the manifests of a folder of examples, with a hook that listens somewhere else.
func newExample(t *testing.T, folder string, hook http.Handler, related ...string) *example {
	t.Helper()
	x := &example{env: newEnv(t, &theHosted), calls: &atomic.Int64{}}
	must(t, install.CRDs(t.Context(), x.sandbox.Config()))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.calls.Add(1)
		hook.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	if _, err := os.Stat(manifest(folder, "crd.yaml")); err == nil {
		x.kinds()
	}
	b, err := os.ReadFile(manifest(folder, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	controller := filepath.Join(t.TempDir(), "controller.yaml")
	moved := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAll(b, []byte(server.URL))
	moved = bytes.ReplaceAll(moved, []byte("service-account: default/"), []byte("service-account: "+x.namespace+"/"))
	must(t, os.WriteFile(controller, moved, 0o600))
	roles := filepath.Join(t.TempDir(), "roles.yaml")
	printed := x.cli("roles", "-f", controller, "--related="+strings.Join(related, ","))
	must(t, os.WriteFile(roles, []byte(printed), 0o600))
	for _, file := range []string{roles, controller} {
		x.must(x.kubectl("apply", "-f", file))
	}
	t.Cleanup(func() {
		x.unwarned(controller)
		for _, o := range x.read(controller) { // the next test's manager has nothing to do with it
			if err := x.Delete(context.WithoutCancel(t.Context()), &o); err != nil {
				t.Errorf("delete %s: %v", o.GetName(), err)
			}
		}
	})
	return x
}

// kinds installs the kinds of all examples, and waits until the API server lets them be owners and the garbage
// collector knows them. Both look for new kinds every 30 s only: the plugin that guards blockOwnerDeletion refuses what
// it does not know, and an owner that is deleted without its dependents takes those along that the collector has not
// seen yet.
func (x *example) kinds() {
	x.Helper()
	files, err := filepath.Glob(manifest("*", "crd.yaml"))
	if err != nil || len(files) != 4 {
		x.Fatalf("CRDs %v, %v", files, err)
	}
	for _, file := range files {
		x.must(x.kubectl("apply", "-f", file))
		x.must(x.kubectl("wait", "--for=condition=Established", "-f", file))
	}
	for _, file := range files {
		kind, _, _ := unstructured.NestedString(x.read(file)[0].Object, "spec", "names", "kind")
		owned := &unstructured.Unstructured{Object: map[string]any{"parentPatch": map[string]any{}}}
		owned.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ControllerRevision"))
		owned.SetNamespace(x.namespace)
		owned.SetName("of-" + strings.ToLower(kind))
		owned.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "examples.cairn.dev/v1", Kind: kind, Name: "nobody", UID: "1", BlockOwnerDeletion: new(true)},
		})
		x.within(time.Minute, kind+" can be an owner", func() error { return x.Create(x.Context(), owned.DeepCopy()) })
		x.within(time.Minute, kind+" is known to the garbage collector", func() error {
			if err := x.Get(x.Context(), client.ObjectKeyFromObject(owned), owned.DeepCopy()); !apierrors.IsNotFound(err) {
				return errorf("what it does not own is still there: %w", err)
			}
			return nil
		})
	}
}

// unwarned fails the test if one of the controllers in a file has ever complained: about a right that its roles do not
// give, for instance.
func (x *example) unwarned(controllers string) {
	x.Helper()
	names := map[string]bool{}
	for _, o := range x.read(controllers) {
		names[o.GetName()] = true
	}
	var list eventsv1.EventList
	if err := x.List(context.WithoutCancel(x.Context()), &list); err != nil {
		x.Error(err)
	}
	started := false
	for _, is := range list.Items {
		about := is.Regarding
		ours := about.APIVersion == v1alpha1.SchemeGroupVersion.String() && names[about.Name]
		started = started || ours && is.Reason == "Started"
		if (ours || about.Namespace == x.namespace && is.ReportingController == "metacontroller") && is.Type == corev1.EventTypeWarning && !slices.Contains(x.warns, is.Reason) {
			x.Errorf("an event about %s %s says %s: %s", about.Kind, about.Name, is.Reason, is.Note)
		}
	}
	if !started {
		x.Error("no event says that the controller was started, so the lack of others says nothing")
	}
}

// manifest is the path of a file of the examples.
func manifest(folder, name string) string { return filepath.Join("..", "..", "examples", folder, name) }

// read reads the objects of a file.
func (e *env) read(file string) (out []unstructured.Unstructured) {
	e.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		e.Fatal(err)
	}
	for text := range strings.SplitSeq(string(b), "\n---\n") {
		out = append(out, unstructured.Unstructured{Object: map[string]any{}})
		must(e, yaml.Unmarshal([]byte(text), &out[len(out)-1].Object))
	}
	return out
}

// must fails the test if a command failed, and returns what it printed.
func (e *env) must(out string, ok bool) string {
	e.Helper()
	if !ok {
		e.Fatal(out)
	}
	return out
}

// cli runs the real cairn in this process and returns what it printed. Failure is a failure of the test.
func (e *env) cli(args ...string) string {
	e.Helper()
	var out, failed bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &failed}
	at := []string{"--kubeconfig", e.sandbox.Kubeconfig(), "--namespace", e.namespace}
	if slices.Contains(args, "roles") {
		at = at[:2] // a namespace would narrow them
	}
	// The status of a rollout that is not over is no error.
	if code := cli.Main(e.Context(), append(args, at...), streams, "test"); code != 0 && (code != exit.Unfinished || args[0] != "status") {
		e.Fatalf("cairn %s: exit code %d: %s", strings.Join(args, " "), code, failed.String())
	}
	return out.String()
}

// host runs a manager with the named controllers, under the shipped roles and those that were applied. end stops it as
// SIGTERM does; kill cuts its connection first, so that what was under way never arrives, as when the process dies.
func (x *example) host(controllers ...string) (end, kill func()) {
	x.Helper()
	var dead atomic.Bool
	end = x.cairnWith(func(cfg *rest.Config) {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if dead.Load() {
					return nil, errors.New("this process is dead")
				}
				return next.RoundTrip(r)
			})
		})
	}, manager.Options{Controllers: controllers, HookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return end, sync.OnceFunc(func() {
		dead.Store(true)
		end()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// looks makes the controller look twice at an object that it has nothing to do for, and waits until the first look is
// over.
func (x *example) looks(kind, name string) {
	x.Helper()
	for range 2 {
		asked := x.calls.Load()
		x.must(x.kubectl("annotate", kind, name, "looks=after-"+strconv.FormatInt(asked, 10), "--overwrite"))
		x.eventually("wait until the hook is asked", func() error {
			if x.calls.Load() == asked {
				return errorf("it was asked %d times", asked)
			}
			return nil
		})
	}
}

// content is all that a hosted controller could have written of objects of the test's namespace. Their status is
// others'.
func (x *example) content(resources string) string {
	x.Helper()
	return x.must(x.kubectl("get", resources, "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.labels} {.metadata.annotations} {.spec}{"\n"}{end}`))
}

// parent reads a parent, whose kind is one of the examples', into out: something that has the fields to be looked at.
func (x *example) parent(kind, name string, out any) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "examples.cairn.dev", Version: "v1", Kind: kind})
	key := client.ObjectKey{Name: name}
	if kind != "ConfigMapPropagation" {
		key.Namespace = x.namespace
	}
	if err := x.Get(x.Context(), key, o); err != nil {
		return err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// row is one line of cairn history.
type row struct {
	Number   int64  `json:"revision"`
	Name     string `json:"name"`
	Current  bool   `json:"current"`
	Children int    `json:"children"`
}

// history returns what cairn history says, oldest first.
func (x *example) history(object string) (out []row) {
	x.Helper()
	var said struct {
		Revisions []row
	}
	must(x, json.Unmarshal([]byte(x.cli("history", object, "-o", "json")), &said))
	return said.Revisions
}
