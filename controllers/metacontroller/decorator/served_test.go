package decorator

// Defaults are no difference, whoever told us of them; drift is one.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// defaulting is a client whose server drops empty strings from Services, and so says in its answers, dry runs included.
type defaulting struct {
	client.Client

	server *fakeserver.Server
}

func (d defaulting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if err := d.Client.Create(ctx, o, opts...); err != nil {
		return err
	}
	return d.server.Raw.Get(ctx, client.ObjectKeyFromObject(o), o)
}

func (d defaulting) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := d.Client.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GetKind() != services.Kind.Kind {
		return nil
	}
	var typed corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
		return err
	}
	var err error
	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	u.SetGroupVersionKind(services.Kind)
	return err
}

// writeWith makes the controller write attachments with c, and takes the time from a clock.
func (w *world) writeWith(c client.Client, now clock.PassiveClock) {
	w.r.Client = c
	config := w.r.keeper.Config
	config.Client, config.Clock = c, now
	w.r.keeper = children.New(config)
}

// wordy asks for a field that the API server drops.
const wordy = `{"attachments":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"externalName":"","ports":[{"port":80}]}}]}`

func TestDefaultsAreNoDifference(t *testing.T) {
	for _, c := range []struct {
		name, method string
		// restarted are the requests of a process that does not know what became of the attachment, drifted those after
		// somebody edited it.
		restarted, drifted string
	}{
		{"in place", "InPlace", "patch Service web", "patch Service web"},
		{
			"made again", "Recreate", "try patch Service web",
			"try create Service web, delete Service web, create Service web",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := controller(t, "wordy", strings.Replace(perPod, "InPlace", c.method, 1))
			s.finalizes = false
			w := newWorld(t, s, says(wordy), web(t, 1))
			restart := func() {
				w = worldOn(t, w.Server, s, says(wordy))
				w.writeWith(defaulting{w.Server, w.Server}, clock.RealClock{})
				w.r.confirmed.Store(web(t, 1).GetUID(), struct{}{})
				w.Forget()
			}
			requests := func() string {
				w.Forget()
				w.mustReconcile(webRequest)
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
			if got := requests(); got != "" {
				t.Errorf("after that: %s, want nothing", got)
			}
			w.expose("example.com")
			if got := requests(); got != c.drifted {
				t.Errorf("after an edit: %s, want %s", got, c.drifted)
			}
		})
	}
}

// expose edits the Service as a person would.
func (w *world) expose(name string) {
	w.t.Helper()
	w.edit(services, "web", func(o *unstructured.Unstructured) {
		must(w.t, unstructured.SetNestedField(o.Object, name, "spec", "externalName"))
	})
}

// TestRefusedIsNotDifferent: an attachment stays as long as the API server does not tell whether it is what is wanted,
// or would not let it be made again. An event says so, and it is tried again.
func TestRefusedIsNotDifferent(t *testing.T) {
	denied := apierrors.NewForbidden(services.Resource.GroupResource(), "web", errors.New("a policy"))
	for verb, want := range map[string]string{
		fakeserver.TryPatch:  "Service default/web stays as it is, because the API server refuses to say",
		fakeserver.TryCreate: "Service default/web is not deleted, because the API server would refuse",
	} {
		t.Run(verb, func(t *testing.T) {
			s := controller(t, "wordy", strings.Replace(perPod, "InPlace", "Recreate", 1))
			now := clocktesting.NewFakePassiveClock(time.Now())
			w := newWorld(t, s, says(wordy), web(t, 1))
			w.writeWith(defaulting{w.Server, w.Server}, now)
			w.settle(webRequest)
			uid := w.get(services, "web").GetUID()
			w = worldOn(t, w.Server, s, says(wordy))
			w.writeWith(defaulting{w.Server, w.Server}, now)
			w.expose("example.com")
			w.Before = fakeserver.Refuse(verb, "Service", denied)
			for range 3 {
				w.Forget()
				now.SetTime(now.Now().Add(time.Minute))
				if _, err := w.reconcile(webRequest); !apierrors.IsForbidden(err) {
					t.Fatalf("error %v", err)
				}
				if !strings.Contains(w.calls(), verb) {
					t.Errorf("it was not asked again: %s", w.calls())
				}
			}
			if w.get(services, "web").GetUID() != uid {
				t.Fatal("it was deleted for that")
			}
			if got := w.events.Events("SyncError"); len(got) == 0 || !strings.Contains(got[0], want) || !strings.Contains(got[0], "a policy") {
				t.Errorf("events %v", got)
			}
			w.Before = nil
			now.SetTime(now.Now().Add(time.Minute))
			w.settle(webRequest)
			if w.get(services, "web").GetUID() == uid {
				t.Error("it was not made again once that was possible")
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
