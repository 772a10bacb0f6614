package history_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// A pass over a parent, with its log: claim, resolve, record, and, once the children are looked after, truncate. Each call needs what the
// one before it returned. A controller does this in package pass, which adds what a cache and several managers ask for.
func Example() {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID("1a2b")},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
			},
		},
	}
	// The fake client gives no UIDs, which a log goes by.
	withUID := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetUID(types.UID(o.GetName()))
		return c.Create(ctx, o, opts...)
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(ds).WithInterceptorFuncs(interceptor.Funcs{Create: withUID}).Build()
	log := history.New(history.DaemonSet(), history.Options{Client: c})
	ctx := context.Background()
	pass := func(image string) (*history.Recorded, error) {
		ds.Spec.Template.Spec.Containers[0].Image = image
		ds.Generation++ // the API server does that
		if err := c.Update(ctx, ds); err != nil {
			return nil, err
		}
		selector, err := log.Selector(ds)
		if err != nil {
			return nil, err
		}
		entries, err := log.Claim(ctx, ds, selector)
		if err != nil {
			return nil, err
		}
		verdict, err := log.Resolve(ctx, ds, entries)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s: %s\n", image, verdict.Reason)
		children := func(context.Context, revision.Revision, revision.Revision) error { return nil } // of a duplicate: there are none
		recorded, err := log.Record(ctx, ds, verdict, nil, children)
		if err != nil {
			return nil, err
		}
		// Now children may be made. Those that are there say which revisions are live.
		live := revision.NewLive(recorded.Update.Hash)
		return recorded, log.Truncate(ctx, ds, entries, recorded.Update, live, 1)
	}
	for _, image := range []string{"nginx:1.28", "nginx:1.29", "nginx:1.29", "nginx:1.28", "nginx:1.30"} {
		if _, err := pass(image); err != nil {
			fmt.Println(err)
			return
		}
	}
	stored, err := log.List(ctx, ds)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range stored {
		was, err := r.Snapshot.Restore(ds)
		if err != nil {
			fmt.Println(err)
			return
		}
		spec := was["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		fmt.Printf("revision %d: %v\n", r.Number, spec["containers"].([]any)[0].(map[string]any)["image"])
	}
	// Output:
	// nginx:1.28: no stored revision is what the parent asks for; recording revision 1
	// nginx:1.29: no stored revision is what the parent asks for; recording revision 2
	// nginx:1.29: revision 2 (web-5f99f86bf6) is what the parent asks for
	// nginx:1.28: the parent asks for revision 1 (web-7dd58dbd5c) again; renumbering it to 3
	// nginx:1.30: no stored revision is what the parent asks for; recording revision 4
	// revision 3: nginx:1.28
	// revision 4: nginx:1.30
}
