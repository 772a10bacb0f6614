package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/inspecttest"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

var night = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// intact is a revision of web with an image, whose name goes with its content.
func intact(t *testing.T, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	web := inspecttest.Web(image)
	format := history.DaemonSet()
	snapshot, err := format.Snapshot(web)
	if err != nil {
		t.Fatal(err)
	}
	return inspecttest.StoredOf(t, web, number, strings.TrimPrefix(format.Name(web, snapshot, nil), web.Name+"-"))
}

func revisionOf(r *appsv1.ControllerRevision) rollback.Revision {
	return rollback.Revision{Name: r.Name, UID: r.UID}
}

// TestPlanRollback: back to the last good revision, and to no other.
func TestPlanRollback(t *testing.T) {
	good := intact(t, "web:1", 1)
	available := func(ds *appsv1.DaemonSet, name, hash string) *corev1.Pod {
		pod := inspecttest.Pod(ds, name, hash)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(night.Add(-time.Hour)),
		}}
		return pod
	}
	for name, c := range map[string]struct {
		asks    string // the annotation, "undo" if empty
		change  func(ds *appsv1.DaemonSet, second, third *appsv1.ControllerRevision)
		to      string // its name; the UID is that of the revision
		pods    int    // of the third revision, available
		failure rollback.Failure
		want    string // the revision, or a part of the error
		changed bool   // the error is a *ChangedError
	}{
		"the last good one": {to: good.Name, want: good.Name},
		"it is gone":        {to: "web-gone", want: "revision web-gone, the last good one, no longer exists"},
		"another object has its name": {
			to: good.Name, failure: rollback.Failure{To: rollback.Revision{Name: good.Name, UID: "another"}},
			want: "the last good one, no longer exists",
		},
		"as many are available as were": {
			to: good.Name, pods: 1, failure: rollback.Failure{Available: 1}, want: good.Name,
		},
		"it gets on": {to: good.Name, pods: 2, failure: rollback.Failure{Available: 1}, changed: true},
		"the spec is another one's": {
			to: good.Name, failure: rollback.Failure{Revision: good.Name}, changed: true,
		},
		"it is being deleted": {
			to: good.Name,
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.DeletionTimestamp, ds.Finalizers = &metav1.Time{Time: night}, []string{"example.com/slow"}
			},
			want: "is terminating",
		},
		"it cannot be read": {
			to: "web-bbb",
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.Data.Raw = "web-bbb", []byte(`{"spec":{"template":"x"}}`)
			},
			want: "the last good revision cannot be restored",
		},
		"it goes": {
			to: "web-bbb",
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.DeletionTimestamp, second.Finalizers = "web-bbb", &metav1.Time{Time: night}, []string{"example.com/slow"}
			},
			want: "revision 2 (web-bbb), the last good one, is being deleted",
		},
		"somebody may have planted it": {
			to: "web-planted",
			change: func(_ *appsv1.DaemonSet, second, _ *appsv1.ControllerRevision) {
				second.Name, second.Labels["controller-revision-hash"] = "web-planted", "planted"
			},
			want: "web-planted",
		},
		"Helm": {
			to: good.Name,
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations["meta.helm.sh/release-name"] = "shop"
			},
			want: `it belongs to Helm release "shop", which would revert a rollback (annotation cairn.dev/on-deadline=undo-anyway`,
		},
		"Helm, anyway": {
			asks: "undo-anyway", to: good.Name, failure: rollback.Failure{Anyway: true},
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations["meta.helm.sh/release-name"] = "shop"
			},
			want: good.Name,
		},
		"an operator": {
			to: good.Name,
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.OwnerReferences = []metav1.OwnerReference{{APIVersion: "shop.example.com/v1", Kind: "Shop", Name: "s", UID: "s", Controller: new(true)}}
			},
			want: "it is controlled by Shop s, which would revert a rollback",
		},
		"kubectl apply, which somebody runs by hand": {
			to: good.Name,
			change: func(ds *appsv1.DaemonSet, _, _ *appsv1.ControllerRevision) {
				ds.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
			},
			want: good.Name,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ds := inspecttest.Web("web:3")
			ds.Generation = 7
			ds.Annotations = map[string]string{rollback.OnDeadlineAnnotation: "undo"}
			if c.asks != "" {
				ds.Annotations[rollback.OnDeadlineAnnotation] = c.asks
			}
			first, second, third := intact(t, "web:1", 1), intact(t, "web:2", 2), intact(t, "web:3", 3)
			if c.change != nil {
				c.change(ds, second, third)
			}
			objects := []client.Object{ds, first, second, third}
			for n := range c.pods {
				objects = append(objects, available(ds, "pod-"+strings.Repeat("x", n), third.Labels["controller-revision-hash"]))
			}
			f := c.failure
			f.Reason, f.Now = "no progress for 10m: pod web-x: CrashLoopBackOff", night
			if f.To.IsZero() {
				f.To = rollback.Revision{Name: c.to, UID: "none"}
			}
			for _, r := range []*appsv1.ControllerRevision{first, second} {
				if r.Name == c.to && f.To.UID == "none" {
					f.To = revisionOf(r)
				}
			}
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
			case err == nil && !strings.Contains(string(u.Patch), `\"reason\":\"no progress for 10m`):
				t.Errorf("nothing is noted: %s", u.Patch)
			}
		})
	}
}

// TestRollbackOfAnotherObject: what is no longer as it was read is left alone.
func TestRollbackOfAnotherObject(t *testing.T) {
	good, bad := intact(t, "web:1", 1), intact(t, "web:3", 3)
	for name, change := range map[string]func(*appsv1.DaemonSet){
		"edited":          func(ds *appsv1.DaemonSet) { ds.Generation++ },
		"asks no more":    func(ds *appsv1.DaemonSet) { delete(ds.Annotations, rollback.OnDeadlineAnnotation) },
		"another object":  func(ds *appsv1.DaemonSet) { ds.UID = "other" },
		"asked otherwise": func(ds *appsv1.DaemonSet) { ds.Annotations[rollback.OnDeadlineAnnotation] = "undo-anyway" },
	} {
		t.Run(name, func(t *testing.T) {
			read := inspecttest.Web("web:3")
			read.Annotations = map[string]string{rollback.OnDeadlineAnnotation: "undo"}
			now := read.DeepCopy()
			change(now)
			i := New(inspecttest.Server(interceptor.Funcs{}, now, good.DeepCopy(), bad.DeepCopy()))
			u, err := i.PlanRollback(t.Context(), read, rollback.Failure{Revision: bad.Name, To: revisionOf(good), Now: night})
			if _, changed := errors.AsType[*ChangedError](err); !changed {
				t.Errorf("%v, %v", u, err)
			}
		})
	}
	t.Run("asks no more when it is carried out", func(t *testing.T) {
		ds := inspecttest.Web("web:3")
		ds.Annotations = map[string]string{rollback.OnDeadlineAnnotation: "undo", "team": "shop"}
		c := inspecttest.Server(interceptor.Funcs{}, ds, good.DeepCopy(), bad.DeepCopy())
		i := New(c)
		u, err := i.PlanRollback(t.Context(), ds, rollback.Failure{Revision: bad.Name, To: revisionOf(good), Now: night})
		if err != nil {
			t.Fatal(err)
		}
		fresh := &appsv1.DaemonSet{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), fresh); err != nil {
			t.Fatal(err)
		}
		delete(fresh.Annotations, rollback.OnDeadlineAnnotation)
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
	ds.Annotations = map[string]string{rollback.OnDeadlineAnnotation: "undo"}
	good, bad := intact(t, "web:1", 1), intact(t, "web:3", 3)
	c := inspecttest.Server(interceptor.Funcs{}, ds, good, bad)
	i := New(c)
	u, err := i.PlanRollback(t.Context(), ds, rollback.Failure{Revision: bad.Name, To: revisionOf(good), Reason: "no progress for 10m", Now: night})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = i.Apply(t.Context(), u, false); err != nil {
		t.Fatal(err)
	}
	store := func(is *rollback.Progress) { // as its controller would
		t.Helper()
		fresh := &appsv1.DaemonSet{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(ds), fresh); err != nil {
			t.Fatal(err)
		}
		stalled := is.Condition(rollback.NoteOf(fresh), metav1.Time{})
		fresh.Status.Conditions = []appsv1.DaemonSetCondition{{
			Type: appsv1.DaemonSetConditionType(stalled.Type), Status: corev1.ConditionTrue, Reason: stalled.Reason, Message: stalled.Message,
		}}
		if err := c.Status().Update(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
	}
	before := rollback.Seen{Revision: bad.Name, Now: night}.Next(nil)
	after := rollback.Seen{Revision: good.Name, Now: night, Note: u.note()}.Next(before)
	store(after)
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
	if back := rollback.NoteOf(fresh); back == nil || fresh.Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Fatalf("%+v, %s", back, fresh.Spec.Template.Spec.Containers[0].Image)
	}
	fresh.Spec.Template.Spec.Containers[0].Image = "web:4"
	fresh.Generation += 2
	if err := c.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	store(rollback.Seen{Revision: "web-another", Now: night, Note: u.note()}.Next(after))
	if got := failed(); strings.Contains(got, "rolled back at") || !strings.HasPrefix(got, bad.Name+": no progress for 10m") {
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
	for name, c := range map[string]struct{ live, want map[string]any }{
		"scaled":    {map[string]any{"replicas": int64(9), "image": "web:2"}, map[string]any{"replicas": int64(9), "image": "web:1"}},
		"as it was": {map[string]any{"replicas": int64(2), "image": "web:2"}, map[string]any{"replicas": int64(2), "image": "web:1"}},
		"unset":     {map[string]any{"image": "web:2"}, map[string]any{"image": "web:1"}},
		"elsewhere": {map[string]any{"count": int64(9), "image": "web:2"}, map[string]any{"count": int64(9), "image": "web:1", "replicas": int64(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &Undo{log: &Log{}}
			u.To.stored.Target = target
			if c.live["count"] != nil {
				u.log.scale = revision.Path{"spec", "count"}
			}
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

// TestScalePath: the CustomResourceDefinition names the field, in the version of the parent. It is not read for kinds
// of Kubernetes, nor for a revision that cannot hold the scale.
func TestScalePath(t *testing.T) {
	all, template := mustTarget(t, "spec"), mustTarget(t, "spec", "template")
	gadget := schema.GroupVersionKind{Group: "rev.example.com", Version: "v1", Kind: "Gadget"}
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{
		map[string]any{"name": "v0"},
		map[string]any{"name": "v1", "subresources": map[string]any{"scale": map[string]any{"specReplicasPath": ".spec.count"}}},
	}}}}
	crd.SetGroupVersionKind(definitions)
	crd.SetName("gadgets.rev.example.com")
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, crd.GetName(), errors.New("no"))
	for name, c := range map[string]struct {
		kind   schema.GroupVersionKind
		target *revision.Target
		err    error
		want   string
	}{
		"the one that is named":      {gadget, all, nil, "spec.count"},
		"another version":            {gadget.GroupKind().WithVersion("v0"), all, nil, "spec.replicas"},
		"only the template":          {gadget, template, forbidden, "spec.replicas"},
		"a kind of Kubernetes":       {appsv1.SchemeGroupVersion.WithKind("DaemonSet"), all, forbidden, "spec.replicas"},
		"a kind that is not known":   {schema.GroupVersionKind{Group: "x.example.com", Version: "v1", Kind: "X"}, all, forbidden, "spec.replicas"},
		"no definition":              {gadget, all, apierrors.NewNotFound(schema.GroupResource{}, "x"), "spec.replicas"},
		"no permission to read that": {gadget, all, forbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(gadget, meta.RESTScopeNamespace)
			mapper.Add(gadget.GroupKind().WithVersion("v0"), meta.RESTScopeNamespace)
			get := func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if c.err != nil {
					return c.err
				}
				return inner.Get(ctx, key, o, opts...)
			}
			server := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(crd).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()
			got, err := New(server).scalePath(t.Context(), c.kind, c.target)
			if (err != nil) != (c.want == "") || c.want != "" && got.String() != c.want || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func mustTarget(t *testing.T, path ...string) *revision.Target {
	t.Helper()
	target, err := revision.FieldPaths(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestWhoTakesItBack: some tools leave no mark, but their name in managedFields.
func TestWhoTakesItBack(t *testing.T) {
	for manager, want := range map[string]string{
		"kubectl-client-side-apply": "", "kube-controller-manager": "",
		"kustomize-controller": `Flux applies it, as "kustomize-controller", and would revert a rollback`,
		"argocd-controller":    `Argo CD applies it, as "argocd-controller", and would revert a rollback`,
	} {
		ds := inspecttest.Web("web:1")
		ds.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: manager}, {Manager: "helm", Subresource: "status"}}
		if got := takenBack(&Undo{live: ds}); got != want {
			t.Errorf("%s: %q, want %q", manager, got, want)
		}
	}
}

// failedRollout is a DaemonSet whose rollout to its second revision has failed, and what RollBack is given of it.
func failedRollout(t *testing.T, funcs interceptor.Funcs) (client.Client, *appsv1.DaemonSet, rollback.Failure) {
	t.Helper()
	web := inspecttest.Web("web:2")
	web.Annotations = map[string]string{rollback.OnDeadlineAnnotation: "undo"}
	good, bad := intact(t, "web:1", 1), intact(t, "web:2", 2)
	return inspecttest.Server(funcs, web, good, bad), web, rollback.Failure{
		Revision: bad.Name, Reason: "no progress for 10m: pod web-x: CrashLoopBackOff", To: revisionOf(good), Now: night,
	}
}

func TestRollBack(t *testing.T) {
	strip := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		err := c.Patch(ctx, o, p, opts...)
		delete(o.GetAnnotations(), rollback.NoteAnnotation)
		return err
	}}
	for name, funcs := range map[string]interceptor.Funcs{"noted": {}, "admission removes the note": strip} {
		t.Run(name, func(t *testing.T) {
			c, web, f := failedRollout(t, funcs)
			did, err := RollBack(t.Context(), c, c, web, f)
			want := fmt.Sprintf("revision 2 (%s) failed: %s; back to revision 1 (%s)", f.Revision, f.Reason, f.To.Name)
			if err != nil || !strings.HasPrefix(did, want) || strings.Contains(did, "admission has removed") != (name != "noted") {
				t.Errorf("%q, %v", did, err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil || web.Spec.Template.Spec.Containers[0].Image != "web:1" {
				t.Errorf("%v, %s", err, web.Spec.Template.Spec.Containers[0].Image)
			}
		})
	}
}

// TestWhatFollowsARollback: a refusal for good, a stale read, or what is tried again.
func TestWhatFollowsARollback(t *testing.T) {
	refusing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		}}
	}
	resource := appsv1.Resource("daemonsets")
	for name, c := range map[string]struct {
		funcs        interceptor.Funcs
		change       func(*appsv1.DaemonSet, *rollback.Failure)
		refused, old bool
	}{
		"no right": {funcs: refusing(apierrors.NewForbidden(resource, "web", errors.New("no patch")))},
		"denied":   {funcs: refusing(apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind(), "web", nil))},
		"busy":     {funcs: refusing(apierrors.NewInternalError(errors.New("busy")))},
		"conflict": {funcs: refusing(apierrors.NewConflict(resource, "web", errors.New("changed"))), old: true},
		"edited":   {change: func(web *appsv1.DaemonSet, _ *rollback.Failure) { web.Generation = 99 }, old: true},
		"gone":     {change: func(_ *appsv1.DaemonSet, f *rollback.Failure) { f.To.UID = "another" }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			api, web, failure := failedRollout(t, c.funcs)
			if c.change != nil {
				c.change(web, &failure)
			}
			did, err := RollBack(t.Context(), api, api, web, failure)
			_, refused := errors.AsType[*rollback.RefusedError](err)
			if err == nil || refused != c.refused || errors.Is(err, ownership.ErrStale) != c.old {
				t.Errorf("%q, %v", did, err)
			}
		})
	}
}
