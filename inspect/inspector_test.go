package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// These tests are about what is asked of the API server, so they need one, or something like it. What a real one says
// is tested in sandbox/.

var daemonSets = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}

func TestReadHistory(t *testing.T) {
	ds := inspecttest.Web("web:2")
	foreign := inspecttest.StoredOf(t, inspecttest.Web("web:9"), 9, "zzz")
	foreign.OwnerReferences[0].UID = "somebody-else"
	other := inspecttest.Pod(ds, "other", "aaa")
	other.OwnerReferences[0].UID = "somebody-else"
	c := inspecttest.Server(interceptor.Funcs{}, ds, foreign, other, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb"), inspecttest.Pod(ds, "p1", "aaa"), inspecttest.Pod(ds, "p2", "bbb"))
	i := New(c)
	typed, err := i.Get(t.Context(), daemonSets, "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	untyped := &unstructured.Unstructured{Object: raw}
	untyped.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	for name, parent := range map[string]client.Object{"typed": typed, "untyped": untyped} {
		t.Run(name, func(t *testing.T) {
			h, err := i.History(t.Context(), parent)
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Entries) != 2 || !h.Entries[1].Current || h.Entries[0].Current {
				t.Errorf("entries: %+v", h.Entries)
			}
			for _, e := range h.Entries {
				if e.Children != 1 || e.Created.IsZero() {
					t.Errorf("%s has %d children and was created at %s", e, e.Children, e.Created)
				}
			}
			inspecttest.ExpectWarnings(t, h.Warnings)
			content, err := h.Entries[0].Content()
			if err != nil || !strings.Contains(string(content), `"image":"web:1"`) || strings.Contains(string(content), "$patch") {
				t.Errorf("content %s, %v", content, err)
			}
		})
	}
}

// TestUnknownKind: who asks for a history that cairn does not read hears where it is, or why there is none.
func TestUnknownKind(t *testing.T) {
	controller := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}}
	}
	i := New(inspecttest.Server(interceptor.Funcs{}))
	for name, c := range map[string]struct {
		of   client.Object
		want string
	}{
		"a kind without a history": {&corev1.Service{}, "service has no history; to record later edits, create a HistoryPolicy"},
		"a Deployment": {
			&appsv1.Deployment{},
			"deployment.apps keeps its revisions as ReplicaSets, and has none yet",
		},
		"a ReplicaSet of a Deployment": {
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controller("Deployment", "api")}},
			"replicaset.apps keeps no revisions: an edit of its template concerns only pods that are made later; " +
				"ask for the history of deployment.apps/api, which controls this one",
		},
		"a ReplicaSet of nobody":  {&appsv1.ReplicaSet{}, "replicaset.apps keeps no revisions: an edit of its template concerns only pods that are made later"},
		"a ReplicationController": {&corev1.ReplicationController{}, "replicationcontroller keeps no revisions: "},
		"a pod of a DaemonSet": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controller("DaemonSet", "web")}},
			"pod keeps no revisions; ask for the history of daemonset.apps/web, which controls this one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var unknown *object.UnknownKindError
			if _, err := i.History(t.Context(), c.of); !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if _, err := i.PlanUndo(t.Context(), c.of, 0); !errors.As(err, &unknown) {
				t.Errorf("an undo: %v", err)
			}
		})
	}
	var unknown *object.UnknownKindError
	if _, err := i.Get(t.Context(), schema.GroupKind{Kind: "Service"}, "shop", "web"); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

// asked answers dry runs as the API server would: it says by generation whether the object would change.
func asked(t *testing.T, changes func(patch string) bool, log *[]string) interceptor.Funcs {
	t.Helper()
	return interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		var po client.PatchOptions
		po.ApplyOptions(opts)
		if len(po.DryRun) == 0 {
			return errors.New("this is no dry run")
		}
		b, err := p.Data(o)
		if err != nil {
			return err
		}
		*log = append(*log, string(b))
		o.SetUID("web-uid")
		o.SetGeneration(3)
		if changes(string(b)) {
			o.SetGeneration(4)
		}
		return nil
	}}
}

// TestUndoAsks: a revision that only lacks today's default is equivalent to the spec, and only the API server can tell.
// Going "back" to it would change nothing (the built-in undo does just that).
func TestUndoAsks(t *testing.T) {
	ds := inspecttest.Web("web:2")
	ds.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	var log []string
	funcs := asked(t, func(patch string) bool { return strings.Contains(patch, "web:1") }, &log)
	c := inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb"), inspecttest.StoredOf(t, ds, 3, "ccc"))
	u, err := New(c).PlanUndo(t.Context(), ds, 0)
	if err != nil {
		t.Fatal(err)
	}
	if u.To.Name != "web-aaa" || u.From == nil || u.From.Name != "web-ccc" {
		t.Errorf("from %v to %v", u.From, u.To)
	}
	_, err = New(c).PlanUndo(t.Context(), ds, 2)
	var nothing *NothingToUndoError
	if !errors.As(err, &nothing) || nothing.To.Name != "web-bbb" {
		t.Errorf("undo to an equivalent revision: %v", err)
	}
	if len(log) == 0 {
		t.Error("the API server was never asked")
	}
}

// TestUndoWithoutTheRightToAsk: a refusal is no failure and no difference. Somebody is told, and nobody guesses which
// revision is the previous one.
func TestUndoWithoutTheRightToAsk(t *testing.T) {
	ds := inspecttest.Web("web:2")
	ds.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "daemonsets"}, "web", errors.New("no patch")),
		"webhook":   apierrors.NewInternalError(errors.New("webhook is down")),
	} {
		t.Run(name, func(t *testing.T) {
			funcs := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return refusal
			}}
			c := inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("web:2"), 2, "bbb"))
			h, err := New(c).History(t.Context(), ds)
			if err != nil {
				t.Fatal(err)
			}
			if h.Current() != nil || len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], refusal.Error()) {
				t.Errorf("current %v, warnings %q", h.Current(), h.Warnings)
			}
			var unknown *UnknownSpecError
			if _, err := New(c).PlanUndo(t.Context(), ds, 0); !errors.As(err, &unknown) || !strings.Contains(err.Error(), refusal.Error()) {
				t.Errorf("an undo: %v", err)
			}
		})
	}
}

func TestApply(t *testing.T) {
	ds := inspecttest.Web("web:2")
	ds.Spec.MinReadySeconds = 7
	var patches []*client.PatchOptions
	funcs := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		po := &client.PatchOptions{}
		po.ApplyOptions(opts)
		patches = append(patches, po)
		return inspecttest.Patch(ctx, c, o, p, opts...)
	}}
	c := inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("evil.example/web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb"))
	i := New(c)
	live, err := i.Get(t.Context(), daemonSets, "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	u, err := i.PlanUndo(t.Context(), live, 1)
	if err != nil {
		t.Fatal(err)
	}
	const diff = `--- daemonset.apps/web now
+++ revision 1 (web-aaa)
@@ -5,6 +5,6 @@
         app: web
     spec:
       containers:
-      - image: web:2
+      - image: evil.example/web:1
         name: server
         resources: {}
`
	if u.Diff != diff {
		t.Errorf("diff:\n%s", u.Diff)
	}
	inspecttest.ExpectWarnings(t, u.Privileges, "from registry evil.example")
	var ops []struct{ Op, Path string }
	if err := json.Unmarshal(u.Patch, &ops); err != nil || len(ops) != 3 || ops[0].Path != "/metadata/uid" || ops[1].Path != "/metadata/resourceVersion" {
		t.Errorf("patch %s, %v", u.Patch, err)
	}

	dry, err := i.Apply(t.Context(), u, true)
	wantDry := strings.Replace(diff, "(web-aaa)", "(web-aaa), as the API server would store it", 1)
	if err != nil || !dry.DryRun || dry.Diff != wantDry {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	inspecttest.ExpectWarnings(t, dry.Privileges, "from registry evil.example")
	after := &appsv1.DaemonSet{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), after); err != nil || after.Spec.Template.Spec.Containers[0].Image != "web:2" {
		t.Errorf("after the dry run: %v, %v", after.Spec.Template.Spec.Containers, err)
	}

	// Its name does not tell whose it is, and its pods would come from elsewhere.
	if _, err := i.Apply(t.Context(), u, false); !errors.As(err, new(*PlantedError)) || !strings.Contains(err.Error(), "does not show whether it comes from a controller") {
		t.Errorf("unforced: %v", err)
	}
	u.Force = true
	done, err := i.Apply(t.Context(), u, false)
	if err != nil || done.DryRun || done.Diff == "" {
		t.Fatalf("undo: %+v, %v", done, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), after); err != nil || after.Spec.Template.Spec.Containers[0].Image != "evil.example/web:1" {
		t.Errorf("after the undo: %v, %v", after.Spec.Template.Spec.Containers, err)
	}
	if after.Spec.MinReadySeconds != 7 {
		t.Error("the undo changed what no revision records")
	}
	if len(patches) != 2 || len(patches[0].DryRun) != 1 || len(patches[1].DryRun) != 0 || patches[0].FieldManager != FieldOwner || patches[1].FieldManager != FieldOwner {
		t.Errorf("patches: %+v", patches)
	}
	if _, err := i.PlanUndo(t.Context(), after, 1); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("undo once more: %v", err)
	}
}

// TestApplyRace: between look and undo somebody else writes. A status is no obstacle, a spec is, and nothing is
// changed.
func TestApplyRace(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*appsv1.DaemonSet)
		gone      bool
		want      string
	}{
		"status": {meanwhile: func(ds *appsv1.DaemonSet) { ds.Status.NumberReady++ }, want: "web:1"},
		"spec": {meanwhile: func(ds *appsv1.DaemonSet) {
			ds.Generation++
			ds.Spec.Template.Spec.Containers[0].Image = "web:3"
		}, want: "web:3"},
		"gone": {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			ds := inspecttest.Web("web:2")
			conflicts := 0
			funcs := interceptor.Funcs{Patch: func(ctx context.Context, cl client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				err := cl.Patch(ctx, o, p, opts...)
				if apierrors.IsConflict(err) {
					conflicts++
				}
				return err
			}}
			cl := inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb"))
			i := New(cl)
			live, err := i.Get(t.Context(), daemonSets, "shop", "web")
			if err != nil {
				t.Fatal(err)
			}
			u, err := i.PlanUndo(t.Context(), live, 0)
			if err != nil {
				t.Fatal(err)
			}
			if c.gone {
				err = cl.Delete(t.Context(), live)
			} else {
				now := live.DeepCopyObject().(*appsv1.DaemonSet)
				c.meanwhile(now)
				err = cl.Update(t.Context(), now)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = i.Apply(t.Context(), u, false)
			var changed *ChangedError
			if name != "status" && (!errors.As(err, &changed) || changed.Gone != c.gone) {
				t.Errorf("got %v", err)
			}
			if name == "status" && (err != nil || conflicts != 1) {
				t.Errorf("got %v after %d conflicts", err, conflicts)
			}
			if c.gone {
				return
			}
			after := &appsv1.DaemonSet{}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(ds), after); err != nil || after.Spec.Template.Spec.Containers[0].Image != c.want {
				t.Errorf("the image is %s, %v", after.Spec.Template.Spec.Containers[0].Image, err)
			}
		})
	}
}

// TestApplyNothing: if the API server finds nothing to change after all, nobody is told that something was undone.
func TestApplyNothing(t *testing.T) {
	ds := inspecttest.Web("web:2")
	funcs := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		return c.Get(ctx, client.ObjectKeyFromObject(o), o)
	}}
	i := New(inspecttest.Server(funcs, ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.StoredOf(t, ds, 2, "bbb")))
	u, err := i.PlanUndo(t.Context(), ds, 1)
	if err != nil {
		t.Fatal(err)
	}
	var nothing *NothingToUndoError
	if _, err := i.Apply(t.Context(), u, false); !errors.As(err, &nothing) || nothing.To.Name != "web-aaa" {
		t.Errorf("got %v", err)
	}
}

// TestUnreadable: a revision that cannot be read is never restored, and never mistaken for the previous one.
func TestUnreadable(t *testing.T) {
	ds := inspecttest.Web("web:2")
	c := inspecttest.Server(interceptor.Funcs{}, ds, inspecttest.StoredOf(t, inspecttest.Web("web:1"), 1, "aaa"), inspecttest.Broken(t, ds, 2, "bbb"), inspecttest.StoredOf(t, ds, 3, "ccc"))
	i := New(c)
	live, err := i.Get(t.Context(), daemonSets, "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	var unreadable *UnreadableError
	if _, err := i.PlanUndo(t.Context(), live, 2); !errors.As(err, &unreadable) {
		t.Errorf("got %v", err)
	}
	u, err := i.PlanUndo(t.Context(), live, 0)
	if err != nil || u.To.Number != 1 {
		t.Fatalf("got %+v, %v", u, err)
	}
	inspecttest.ExpectWarnings(t, u.Warnings, "Revision 2 (web-bbb) was passed over")
	if u, err := i.PlanUndoTo(t.Context(), live, "web-aaa"); err != nil || u.To.Number != 1 {
		t.Errorf("by name: %+v, %v", u, err)
	}
}
