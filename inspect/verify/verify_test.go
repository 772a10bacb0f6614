package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

var judged = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// verified returns "Reason object fixable" of everything that is wrong.
func verified(t *testing.T, c client.Client) (*Verified, string) {
	t.Helper()
	found, err := Namespace(t.Context(), inspect.New(c), "shop", inspecttest.Listed, judged)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range found.Problems {
		lines = append(lines, fmt.Sprintf("%s %s %t", p.Reason, p.Object, p.Fix != nil))
	}
	return found, strings.Join(lines, "\n")
}

func renamed(r *appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	r.Name = name
	return r
}

func TestVerify(t *testing.T) {
	ds := inspecttest.Web("server:2")
	other := inspecttest.Web("server:1")
	other.UID, other.ResourceVersion = "gone", ""
	orphan := func() *appsv1.ControllerRevision {
		r := inspecttest.StoredOf(t, ds, 1, "aaaa")
		r.OwnerReferences = nil
		return r
	}
	young := orphan()
	young.CreationTimestamp = metav1.NewTime(judged.Add(-time.Second))
	old := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old", Annotations: map[string]string{
			createdBy: fmt.Sprintf(`{"kind":"SerializedReference","reference":{"kind":"DaemonSet","apiVersion":"apps/v1","name":"web","uid":%q}}`, uid),
		}}}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"all is well":       {[]client.Object{inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.Pod(ds, "p", "aaaa")}, ""},
		"orphan":            {[]client.Object{orphan()}, "OrphanRevision controllerrevision.apps/web-aaaa false"},
		"made a second ago": {[]client.Object{young}, ""},
		"parent gone":       {[]client.Object{inspecttest.StoredOf(t, other, 1, "aaaa")}, "ParentGone controllerrevision.apps/web-aaaa true"},
		"same number":       {[]client.Object{inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.StoredOf(t, inspecttest.Web("server:1"), 1, "bbbb")}, "SameNumber controllerrevision.apps/web-bbbb false"},
		"repeated":          {[]client.Object{inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.StoredOf(t, ds, 2, "bbbb")}, "SameContent controllerrevision.apps/web-aaaa true"},
		"repeated, and used": {
			[]client.Object{inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.StoredOf(t, ds, 2, "bbbb"), inspecttest.Pod(ds, "p", "aaaa")},
			"SameContent controllerrevision.apps/web-aaaa false",
		},
		"planted":                   {[]client.Object{renamed(inspecttest.StoredOf(t, ds, 1, "aaaa"), "other")}, "NotIntact controllerrevision.apps/other false"},
		"unreadable":                {[]client.Object{inspecttest.Broken(t, ds, 1, "aaaa"), inspecttest.StoredOf(t, ds, 2, "bbbb")}, "Unreadable controllerrevision.apps/web-aaaa false"},
		"unowned":                   {[]client.Object{inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.Pod(ds, "p", "cccc")}, "NoRevision daemonset.apps/web false"},
		"created-by":                {[]client.Object{old("web-uid")}, "NoControllerRef pod/old true"},
		"created-by of another one": {[]client.Object{old("gone")}, "NoControllerRef pod/old false"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := verified(t, inspecttest.Server(interceptor.Funcs{}, append(tc.objects, ds)...)); got != tc.want {
				t.Errorf("found\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A fix writes what was judged, and only that.
func TestRepair(t *testing.T) {
	ds := inspecttest.Web("server:2")
	dup, gone := inspecttest.StoredOf(t, ds, 1, "aaaa"), inspecttest.Web("server:1")
	gone.UID = "gone"
	left := inspecttest.StoredOf(t, gone, 1, "cccc")
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old", Annotations: map[string]string{
		createdBy: `{"kind":"SerializedReference","reference":{"kind":"DaemonSet","apiVersion":"apps/v1","name":"web","uid":"web-uid"}}`,
	}}}
	var preconditions []string
	c := inspecttest.Server(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			var po client.PatchOptions
			if po.ApplyOptions(opts); len(po.DryRun) > 0 {
				return nil
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var do client.DeleteOptions
			do.ApplyOptions(opts)
			if len(do.DryRun) > 0 {
				return nil
			}
			preconditions = append(preconditions, fmt.Sprintf("%s %s %s", o.GetName(), *do.Preconditions.UID, *do.Preconditions.ResourceVersion))
			return c.Delete(ctx, o)
		},
	}, ds, dup, inspecttest.StoredOf(t, ds, 2, "bbbb"), left, bare)
	found, _ := verified(t, c)
	if len(found.Problems) != 3 {
		t.Fatalf("%+v", found.Problems)
	}
	for _, dryRun := range []bool{true, false} {
		for _, p := range found.Problems {
			if err := Repair(t.Context(), c, p, dryRun); err != nil {
				t.Fatal(err)
			}
		}
		if dryRun && len(preconditions) > 0 {
			t.Errorf("a dry run deleted %q", preconditions)
		}
	}
	slices.Sort(preconditions)
	if want := []string{"web-aaaa uid-aaaa 7", "web-cccc uid-cccc 7"}; !slices.Equal(preconditions, want) {
		t.Errorf("deleted %q, want %q", preconditions, want)
	}
	var adopted corev1.Pod
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(bare), &adopted); err != nil || !metav1.IsControlledBy(&adopted, ds) {
		t.Errorf("%+v, %v", adopted.OwnerReferences, err)
	}
	if _, left := verified(t, c); left != "" {
		t.Errorf("still wrong:\n%s", left)
	}
	// What has changed since is not what was judged.
	for _, p := range found.Problems {
		if p.Reason == NoControllerRef {
			if err := Repair(t.Context(), c, p, false); err == nil {
				t.Error("a pod that changed meanwhile was changed again")
			}
		}
	}
}

// TestWhoMayReadRevisionsOnly: rights on revisions are not those on what they are made from, and that is said.
func TestWhoMayReadRevisionsOnly(t *testing.T) {
	ds := inspecttest.Web("server:2")
	c := inspecttest.Server(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == ds.Name {
				return apierrors.NewForbidden(appsv1.Resource("daemonsets"), key.Name, errors.New("no such right"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	}, inspecttest.StoredOf(t, ds, 1, "aaaa"))
	found, problems := verified(t, c)
	const want = "You may read controllerrevision.apps/web-aaaa, which holds what was recorded of DaemonSet web, and may not read that: "
	if problems != "" || !slices.ContainsFunc(found.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
		t.Errorf("%s; warnings %q", problems, found.Warnings)
	}
}

// stale is a client whose discovery cache has a version that is served no more, until it is reset.
type stale struct {
	client.Client

	cached *cached
}

func (s stale) RESTMapper() meta.RESTMapper { return s.cached }

func (s stale) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Version == "v1beta1" {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", appsv1.Resource("daemonsets"), key.Name, "page not found", 0, true)
	}
	return s.Client.Get(ctx, key, o, opts...)
}

type cached struct {
	meta.RESTMapper

	reset bool
}

func (c *cached) Reset() { c.reset = true }

func (c *cached) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	cachedOne := !c.reset && slices.Equal(versions, []string{"v1beta1"})
	if cachedOne || len(versions) == 0 {
		out, err := c.RESTMapper.RESTMapping(gk, "v1")
		if err == nil && cachedOne {
			out.GroupVersionKind.Version = "v1beta1"
		}
		return out, err
	}
	return c.RESTMapper.RESTMapping(gk, versions...)
}

// TestVersionThatIsServedNoMore: an owner exists whose version is served no more. Its revisions are not deleted, and
// the revisions that cannot be read are a problem.
func TestVersionThatIsServedNoMore(t *testing.T) {
	ds := inspecttest.Web("server:2")
	old := inspecttest.StoredOf(t, ds, 1, "aaaa")
	old.OwnerReferences[0].APIVersion = "apps/v1beta1"
	c := inspecttest.Server(interceptor.Funcs{}, old, inspecttest.StoredOf(t, ds, 2, "bbbb"), ds)
	for _, reset := range []bool{false, true} {
		found, got := verified(t, stale{c, &cached{c.RESTMapper(), reset}})
		if got != "Unreadable controllerrevision.apps/web-aaaa false" || found.Parents != 1 {
			t.Errorf("reset %t: found %s; warnings %q", reset, got, found.Warnings)
		}
	}
}
