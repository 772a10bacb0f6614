package decorator

// Defaults are no difference, whoever told us of them; drift is one.

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/controllers/composite/hook"
	"github.com/cairn-dev/cairn/ownership/fakeserver"
)

// defaulting is a client whose server drops empty strings from Services, and so says in its answers, dry runs included.
type defaulting struct {
	client.Client

	server  *fakeserver.Server
	refuses bool
}

func (d defaulting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	if len(options.DryRun) == 0 {
		if err := d.Client.Create(ctx, o, opts...); err != nil {
			return err
		}
		return d.server.Raw.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	return d.server.Serve(fakeserver.Call{Verb: "dry run", Kind: fakeserver.TypeOf(o), Name: o.GetGenerateName()}, func() error {
		if d.refuses {
			return apierrors.NewInvalid(services.Kind.GroupKind(), "", nil)
		}
		u := o.(*unstructured.Unstructured)
		var typed corev1.Service
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
			return err
		}
		var err error
		u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		return err
	})
}

// writeWith makes the controller write with c.
func (w *world) writeWith(c client.Client) {
	w.r.client = c
	for kind, writer := range w.r.writers {
		writer.Client = c
		w.r.writers[kind] = writer
	}
}

// wordy asks for a field that the API server drops.
const wordy = `{"attachments":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"externalName":"","ports":[{"port":80}]}}]}`

func TestDefaultsAreNoDifference(t *testing.T) {
	for _, c := range []struct {
		name, method string
		refuses      bool
		// restarted are the requests of a process that does not know what became of the attachment, drifted those after
		// somebody edited it.
		restarted, drifted string
	}{
		{"in place", "InPlace", false, "patch Service web", "patch Service web"},
		{"made again", "Recreate", false, "dry run Service dry-run-", "delete Service web, create Service web"},
		{"made again, and nobody can tell", "Recreate", true, "dry run Service dry-run-", "dry run Service dry-run-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := controller(t, "wordy", strings.Replace(perPod, "InPlace", c.method, 1))
			s.finalizes = false
			w := newWorld(t, s, says(wordy), web(t, 1))
			restart := func() {
				w = worldOn(t, w.Server, s, says(wordy))
				w.writeWith(defaulting{w.Server, w.Server, c.refuses})
				w.r.confirmed.Store(web(t, 1).GetUID(), struct{}{})
				w.Forget()
			}
			requests := func() string {
				w.Forget()
				w.mustReconcile(webRequest)
				if len(w.Calls("delete")) > 0 {
					w.mustReconcile(webRequest)
				}
				return w.calls()
			}
			restart()
			w.settle(webRequest)
			if got := w.calls(); got != "create Service web" {
				t.Fatalf("at first: %s", got)
			}
			restart()
			if got := requests(); got != c.restarted {
				t.Errorf("after a restart: %s, want %s", got, c.restarted)
			}
			again := ""
			if c.refuses {
				again = c.restarted // it asks each time that something has happened
			}
			if got := requests(); got != again {
				t.Errorf("after that: %s, want %q", got, again)
			}
			w.edit(services, "web", func(o *unstructured.Unstructured) {
				must(t, unstructured.SetNestedField(o.Object, "example.com", "spec", "externalName"))
			})
			if got := requests(); got != c.drifted {
				t.Errorf("after an edit: %s, want %s", got, c.drifted)
			}
		})
	}
}

// TestEchoedAttachments: a hook may answer the attachments that it was told of, as they are.
func TestEchoedAttachments(t *testing.T) {
	echo := map[string]any{}
	w := newWorld(t, controller(t, "service-per-pod", perPod), func(q *hook.Question) string {
		for _, o := range q.Children[0].Objects {
			echo = o.Object
		}
		if len(echo) == 0 {
			return servicePerPod(q)
		}
		return encode(map[string]any{"attachments": []any{echo}})
	}, web(t, 1))
	w.mustReconcile(webRequest)
	before := w.get(services, "web-0")
	w.settle(webRequest)
	after := w.get(services, "web-0")
	if diff := cmp.Diff(before.GetOwnerReferences(), after.GetOwnerReferences()); diff != "" {
		t.Errorf("owners (-before +after):\n%s", diff)
	}
	must(t, w.Raw.Delete(context.Background(), after))
	w.settle(webRequest)
	if got := w.get(services, "web-0"); len(got.GetOwnerReferences()) != 1 || got.GetUID() == after.GetUID() {
		t.Errorf("made again: %v", got.Object["metadata"])
	}
}
