package ownership_test

// Examples for the documentation.

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/ownership"
)

// A parent finds what may be its own, claims it, and goes on with what it owns. A controller gives the manager's client
// as reader and writer, its API reader as Live, and true for indexed.
func ExampleClaim() {
	ctx := context.Background()
	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "u2"}}
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	pod := func(name string, owners ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}, OwnerReferences: owners,
		}}
	}
	server := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithObjects(web, other, pod("orphan"), pod("ours", *metav1.NewControllerRef(web, kind)), pod("theirs", *metav1.NewControllerRef(other, kind))).
		Build()

	var candidates []*corev1.Pod
	err := ownership.Candidates(ctx, server, &corev1.PodList{}, web.Namespace, ownership.OwnerOf(web, kind.GroupKind()), selector, false, func(o client.Object) error {
		candidates = append(candidates, o.(*corev1.Pod))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	owned, err := ownership.Claim(ctx, &ownership.Claimer{
		Parent: web, Kind: kind, Selector: selector, Writer: server, Live: server,
	}, candidates)
	if err != nil {
		fmt.Println(err) // and come back: the list may be incomplete
	}
	for _, p := range owned {
		fmt.Println(p.Name, "belongs to", p.OwnerReferences[0].Name)
	}
	// Output:
	// orphan belongs to web
	// ours belongs to web
}

// Events of pods, turned into requests for the ReplicaSets that they concern. A controller gives router.Handler() to
// its builder: Watches(&corev1.Pod{}, router.Handler()).
func ExampleRouter() {
	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	router := ownership.Router{
		Parent: kind.GroupKind(),
		// A controller asks its cache.
		UID: func(_ context.Context, key types.NamespacedName) (types.UID, bool) {
			return web.UID, key == client.ObjectKeyFromObject(web)
		},
		Matching: func(_ context.Context, orphan client.Object) []types.NamespacedName {
			if orphan.GetLabels()["app"] != "web" {
				return nil
			}
			return []types.NamespacedName{client.ObjectKeyFromObject(web)}
		},
	}
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}}
	owned := orphan.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(web, kind)}

	ctx := context.Background()
	fmt.Println("an orphan appears:", router.Requests(ctx, nil, orphan))
	fmt.Println("an orphan vanishes:", router.Requests(ctx, orphan, nil))
	fmt.Println("a child vanishes:", router.Requests(ctx, owned, nil))
	web.UID = "u2" // deleted, and made again
	fmt.Println("a child of the old one vanishes:", router.Requests(ctx, owned, nil))
	// Output:
	// an orphan appears: [shop/web]
	// an orphan vanishes: []
	// a child vanishes: [shop/web]
	// a child of the old one vanishes: []
}
