package inspect_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/inspect"
)

// A person looks at a DaemonSet, goes back to the revision before, and tries once more.
func Example() {
	ctx := context.Background()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "5"}}
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "web:2"}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(ds, snapshotOf(ds, 1, "web:1"), snapshotOf(ds, 2, "web:2")).Build()

	i := inspect.New(c)
	who, err := i.Get(ctx, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "shop", "web")
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := i.History(ctx, who)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range log.Entries {
		fmt.Println(e, "current:", e.Current)
	}
	plan, err := i.PlanUndo(ctx, who, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("going back to", plan.To)
	done, err := i.Apply(ctx, plan, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = i.PlanUndo(ctx, done.Parent, 1)
	fmt.Println(errors.Is(err, inspect.ErrNothingToUndo), err)

	// Output:
	// revision 1 (web-r1) current: false
	// revision 2 (web-r2) current: true
	// going back to revision 1 (web-r1)
	// true daemonset.apps/web matches revision 1 (web-r1) already
}

// snapshotOf returns a revision as the DaemonSet controller stores it.
func snapshotOf(ds *appsv1.DaemonSet, number int64, image string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       ds.Namespace,
			Name:            fmt.Sprintf("%s-r%d", ds.Name, number),
			Labels:          map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
			UID:             types.UID(fmt.Sprintf("revision-%d", number)),
		},
		Revision: number,
		Data: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"server","image":%q}]}}}}`, image)},
	}
}
