package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/revision"
)

var night = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// intact is a revision of web with an image, whose name goes with its content.
func intact(t *testing.T, image string, number int64, completed ...string) *appsv1.ControllerRevision {
	t.Helper()
	web := inspecttest.Web(image)
	format := history.DaemonSet()
	snapshot, err := format.Snapshot(web)
	if err != nil {
		t.Fatal(err)
	}
	r := inspecttest.StoredOf(t, web, number, strings.TrimPrefix(format.Name(web, snapshot, nil), web.Name+"-"))
	if len(completed) > 0 {
		r.Annotations = map[string]string{history.CompletedRevisionsAnnotation: strings.Join(completed, ",")}
	}
	return r
}

// TestPlanRollback: back to the last revision that was complete, and to no other.
func TestPlanRollback(t *testing.T) {
	good, bad := intact(t, "web:1", 1), intact(t, "web:3", 3)
	available := func(ds *appsv1.DaemonSet, name, hash string) *corev1.Pod {
		pod := inspecttest.Pod(ds, name, hash)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(night.Add(-time.Hour)),
		}}
		return pod
	}
	for name, c := range map[string]struct {
		asks      string // the annotation, "undo" if empty
		change    func(ds *appsv1.DaemonSet, second, third *appsv1.ControllerRevision)
		completed []string
		pods      int // of the third revision, available
		failure   Failure
		want      string // the revision, or a part of the error
		changed   bool   // the error is a *ChangedError
	}{
		"the last that was complete":             {completed: []string{good.Name}, want: good.Name},
		"none was":                               {want: "no rollout before it is known to have been complete"},
		"the current one":                        {completed: []string{bad.Name}, want: "no rollout before it is known to have been complete"},
		"the status says which, and no revision": {failure: Failure{Complete: good.Name}, want: good.Name},
		"as many are available as were": {
			completed: []string{good.Name}, pods: 1, failure: Failure{Available: 1}, want: good.Name,
		},
		"it gets on": {completed: []string{good.Name}, pods: 2, failure: Failure{Available: 1}, changed: true},
		"the spec is another one's": {
			completed: []string{good.Name}, failure: Failure{Revision: good.Name}, changed: true,
		},
		"it is being deleted": {
			completed: []string{good.Name},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.DeletionTimestamp, ds.Finalizers = &metav1.Time{Time: night}, []string{"example.com/slow"}
			},
			want: "is terminating",
		},
		"the last that was complete cannot be read": {
			completed: []string{"web-bbb"},
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.Data.Raw = "web-bbb", []byte(`{"spec":{"template":"x"}}`)
			},
			want: "the last revision that was complete cannot be restored",
		},
		"the last that was complete goes": {
			completed: []string{"web-bbb"},
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.DeletionTimestamp, second.Finalizers = "web-bbb", &metav1.Time{Time: night}, []string{"example.com/slow"}
			},
			want: "revision 2 (web-bbb), the last that was complete, is being deleted",
		},
		"somebody may have planted it": {
			completed: []string{"web-planted"},
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.Labels["controller-revision-hash"] = "web-planted", "planted"
			},
			want: "web-planted",
		},
		"Helm": {
			completed: []string{good.Name},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations["meta.helm.sh/release-name"] = "shop"
			},
			want: `it belongs to Helm release "shop", which would take that back (annotation cairn.dev/on-deadline: undo-anyway`,
		},
		"Helm, anyway": {
			asks: "undo-anyway", completed: []string{good.Name}, failure: Failure{Anyway: true},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations["meta.helm.sh/release-name"] = "shop"
			},
			want: good.Name,
		},
		"an operator": {
			completed: []string{good.Name},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.OwnerReferences = []metav1.OwnerReference{{APIVersion: "shop.example.com/v1", Kind: "Shop", Name: "s", UID: "s", Controller: new(true)}}
			},
			want: "it is controlled by Shop s, which would take that back",
		},
		"kubectl apply, which somebody runs by hand": {
			completed: []string{good.Name},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
			},
			want: good.Name,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ds := inspecttest.Web("web:3")
			ds.Generation = 7
			ds.Annotations = map[string]string{history.OnDeadlineAnnotation: "undo"}
			if c.asks != "" {
				ds.Annotations[history.OnDeadlineAnnotation] = c.asks
			}
			second, third := intact(t, "web:2", 2), intact(t, "web:3", 3, c.completed...)
			if c.change != nil {
				c.change(ds, second, third)
			}
			objects := []client.Object{ds, intact(t, "web:1", 1), second, third}
			for n := range c.pods {
				objects = append(objects, available(ds, "pod-"+strings.Repeat("x", n), third.Labels["controller-revision-hash"]))
			}
			f := c.failure
			f.Reason, f.Now = "no progress for 10m: pod web-x: CrashLoopBackOff", night
			if f.Revision == "" {
				f.Revision = third.Name
			}
			u, err := New(inspecttest.Server(interceptor.Funcs{}, objects...)).PlanRollback(t.Context(), ds, f)
			_, changed := errors.AsType[*ChangedError](err)
			switch {
			case changed != c.changed:
				t.Errorf("%v, %v", u, err)
			case err != nil && !changed && !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			case err == nil && u.To.Name != c.want:
				t.Errorf("back to %s, want %s", u.To, c.want)
			case err == nil && !strings.Contains(string(u.Patch), `\"generation\":8`):
				t.Errorf("nothing is noted: %s", u.Patch)
			}
		})
	}
}

// TestRollbackOfAnotherObject: what is no longer as it was read is left alone.
func TestRollbackOfAnotherObject(t *testing.T) {
	good, bad := intact(t, "web:1", 1), intact(t, "web:3", 3, intact(t, "web:1", 1).Name)
	for name, change := range map[string]func(*appsv1.DaemonSet){
		"edited":          func(ds *appsv1.DaemonSet) { ds.Generation++ },
		"asks no more":    func(ds *appsv1.DaemonSet) { delete(ds.Annotations, history.OnDeadlineAnnotation) },
		"another object":  func(ds *appsv1.DaemonSet) { ds.UID = "other" },
		"asked otherwise": func(ds *appsv1.DaemonSet) { ds.Annotations[history.OnDeadlineAnnotation] = "undo-anyway" },
	} {
		t.Run(name, func(t *testing.T) {
			read := inspecttest.Web("web:3")
			read.Annotations = map[string]string{history.OnDeadlineAnnotation: "undo"}
			now := read.DeepCopy()
			change(now)
			i := New(inspecttest.Server(interceptor.Funcs{}, now, good.DeepCopy(), bad.DeepCopy()))
			u, err := i.PlanRollback(t.Context(), read, Failure{Revision: bad.Name, Now: night})
			if _, changed := errors.AsType[*ChangedError](err); !changed {
				t.Errorf("%v, %v", u, err)
			}
		})
	}
	t.Run("asks no more when it is carried out", func(t *testing.T) {
		ds := inspecttest.Web("web:3")
		ds.Annotations = map[string]string{history.OnDeadlineAnnotation: "undo", "team": "shop"}
		c := inspecttest.Server(interceptor.Funcs{}, ds, good.DeepCopy(), bad.DeepCopy())
		i := New(c)
		u, err := i.PlanRollback(t.Context(), ds, Failure{Revision: bad.Name, Now: night})
		if err != nil {
			t.Fatal(err)
		}
		fresh := &appsv1.DaemonSet{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), fresh); err != nil {
			t.Fatal(err)
		}
		delete(fresh.Annotations, history.OnDeadlineAnnotation)
		if err := c.Update(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		_, err = i.Apply(t.Context(), u, false)
		if _, changed := errors.AsType[*ChangedError](err); !changed {
			t.Errorf("%v", err)
		}
	})
}

// TestRollbackIsNoted: history and status say what happened until the next edit, and the scale that an autoscaler has
// set is kept where it is part of the revision.
func TestRollbackIsNoted(t *testing.T) {
	ds := inspecttest.Web("web:3")
	ds.Annotations = map[string]string{history.OnDeadlineAnnotation: "undo"}
	good, bad := intact(t, "web:1", 1), intact(t, "web:3", 3, intact(t, "web:1", 1).Name)
	c := inspecttest.Server(interceptor.Funcs{}, ds, good, bad)
	i := New(c)
	u, err := i.PlanRollback(t.Context(), ds, Failure{Revision: bad.Name, Reason: "no progress for 10m", Now: night})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = i.Apply(t.Context(), u, false); err != nil {
		t.Fatal(err)
	}
	failed := func() (out string) {
		t.Helper()
		fresh, err := i.Refresh(t.Context(), ds)
		if err != nil {
			t.Fatal(err)
		}
		h, err := i.History(t.Context(), fresh)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Entries {
			if e.Failed != "" {
				out += e.Name + ": " + e.Failed + "\n"
			}
		}
		return out + strings.Join(h.Warnings, "\n")
	}
	if got, want := failed(), bad.Name+": no progress for 10m\nIt was rolled back at 2026-11-21T03:00:00Z: "+
		"revision 3 ("+bad.Name+") failed: no progress for 10m; back to revision 1 ("+good.Name+")."; !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	fresh := &appsv1.DaemonSet{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), fresh); err != nil {
		t.Fatal(err)
	}
	if back := history.RolledBackOf(fresh); back == nil || fresh.Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Fatalf("%+v, %s", back, fresh.Spec.Template.Spec.Containers[0].Image)
	}
	fresh.Spec.Template.Spec.Containers[0].Image = "web:4"
	fresh.Generation += 2
	if err := c.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	if got := failed(); strings.Contains(got, "rolled back") {
		t.Errorf("after another edit: %s", got)
	}
}

func TestTheScaleIsKept(t *testing.T) {
	target, err := revision.FieldPaths(nil, revision.Path{"spec"})
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]any{"spec": map[string]any{"replicas": int64(2), "image": "web:1"}}
	snapshot, err := target.Snapshot(was)
	if err != nil {
		t.Fatal(err)
	}
	u := &Undo{}
	u.To.stored.Target = target
	for name, c := range map[string]struct{ live, want map[string]any }{
		"scaled":    {map[string]any{"replicas": int64(9), "image": "web:2"}, map[string]any{"replicas": int64(9), "image": "web:1"}},
		"as it was": {map[string]any{"replicas": int64(2), "image": "web:2"}, map[string]any{"replicas": int64(2), "image": "web:1"}},
		"unset":     {map[string]any{"image": "web:2"}, map[string]any{"image": "web:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"spec": c.live}}
			kept, err := u.scaleKept(snapshot, live)
			if err != nil {
				t.Fatal(err)
			}
			restored, err := kept.Restore(live)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(restored["spec"]), fmt.Sprint(c.want); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestWhoTakesItBack: some tools leave no mark, but their name in managedFields.
func TestWhoTakesItBack(t *testing.T) {
	for manager, want := range map[string]string{
		"kubectl-client-side-apply": "", "kube-controller-manager": "",
		"kustomize-controller": `Flux applies it, as "kustomize-controller", and would take that back`,
		"argocd-controller":    `Argo CD applies it, as "argocd-controller", and would take that back`,
	} {
		ds := inspecttest.Web("web:1")
		ds.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: manager}, {Manager: "helm", Subresource: "status"}}
		if got := takenBack(&Undo{live: ds}); got != want {
			t.Errorf("%s: %q, want %q", manager, got, want)
		}
	}
}
