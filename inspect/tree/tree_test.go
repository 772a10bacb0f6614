package tree

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/inspecttest"
)

func controlledBy(o client.Object, uid types.UID, by client.Object, kind string, gv schema.GroupVersion) client.Object {
	o.SetNamespace("shop")
	o.SetUID(uid)
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by, gv.WithKind(kind))})
	return o
}

func drawn(n *Node, indent string) string {
	out := strings.TrimRight(fmt.Sprintf("%s%s %d %s %s", indent, n.Parent, n.Revision, n.State, n.Message), " ") + "\n"
	for _, child := range n.Children {
		out += drawn(child, indent+"  ")
	}
	return out
}

func TestTreeIsWhatIsControlled(t *testing.T) {
	ds := inspecttest.Web("server:1")
	p := controlledBy(inspecttest.Pod(ds, "web-a", "aaaa"), "pod-a", ds, "DaemonSet", appsv1.SchemeGroupVersion)
	deeper := controlledBy(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-pod"}}, "cm", p, "Pod", corev1.SchemeGroupVersion)
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned-only", Namespace: "shop", UID: "x"}}
	mine.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web", UID: ds.UID}} // no controller
	other := inspecttest.Web("server:1")
	other.UID = "another"
	theirs := controlledBy(inspecttest.Pod(ds, "theirs", "aaaa"), "pod-b", other, "DaemonSet", appsv1.SchemeGroupVersion)
	c := inspecttest.Server(interceptor.Funcs{}, ds, inspecttest.StoredOf(t, ds, 7, "aaaa"), p, deeper, mine, theirs)
	got, err := Below(t.Context(), c, ds, inspecttest.Listed, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := `  controllerrevision.apps/web-aaaa 7 Done
  pod/web-a 7 InProgress it is not scheduled yet
    configmap/of-pod 0 Done
`
	if _, below, _ := strings.Cut(drawn(got.Root, ""), "\n"); below != want {
		t.Errorf("below the parent is\n%swant\n%s", below, want)
	}
	if len(got.Warnings) > 0 {
		t.Errorf("warnings: %q", got.Warnings)
	}
}

// What may not be listed is named, and the rest is shown.
func TestTreeWithoutRights(t *testing.T) {
	ds := inspecttest.Web("server:1")
	c := inspecttest.Server(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.GetObjectKind().GroupVersionKind().Kind {
			case "ConfigMapList":
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
			case "PodList":
				return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "pods"}, "list")
			}
			return c.List(ctx, list, opts...)
		},
	}, ds, inspecttest.StoredOf(t, ds, 7, "aaaa"))
	got, err := Below(t.Context(), c, ds, inspecttest.Listed, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Root.Children) != 1 || got.Root.Children[0].Name != "web-aaaa" {
		t.Errorf("the tree is\n%s", drawn(got.Root, ""))
	}
	want := "Objects of configmap could not be listed: you may not list them."
	if len(got.Warnings) != 1 || got.Warnings[0] != want {
		t.Errorf("warnings %q, want %q", got.Warnings, want)
	}
}

// An owner of the same name with another UID is not the owner (ControllerRef proposal, "Behavior").
func TestAncestors(t *testing.T) {
	ds := inspecttest.Web("server:1")
	p := controlledBy(inspecttest.Pod(ds, "web-a", "aaaa"), "pod-a", ds, "DaemonSet", appsv1.SchemeGroupVersion)
	got, err := Ancestors(t.Context(), inspecttest.Server(interceptor.Funcs{}, ds, p), p, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got.Root.Name != "web" || len(got.Root.Children) != 1 || got.Root.Children[0].Name != "web-a" {
		t.Errorf("the tree is\n%s", drawn(got.Root, ""))
	}
	again := inspecttest.Web("server:1")
	again.UID = "made-again"
	for name, tc := range map[string]struct {
		there []client.Object
		want  string
	}{
		"deleted":    {[]client.Object{p}, "daemonset.apps/web 0 NotFound it does not exist; what it controls will be deleted by the garbage collector\n"},
		"made again": {[]client.Object{p, again}, "daemonset.apps/web 0 NotFound an object of this name exists, but it is another one: its UID is made-again, and not web-uid\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Ancestors(t.Context(), inspecttest.Server(interceptor.Funcs{}, tc.there...), p, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if first := strings.SplitAfter(drawn(got.Root, ""), "\n")[0]; first != tc.want {
				t.Errorf("%q, want %q", first, tc.want)
			}
		})
	}
}
