package verify

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// TestOneListForAll: what is sent does not grow with the number of parents, but for reading each, and what is found is
// the same.
func TestOneListForAll(t *testing.T) {
	lists := map[int]int{}
	for _, parents := range []int{1, 20} {
		var objects []client.Object
		for n := range parents {
			ds := inspecttest.Web("web:2")
			ds.Name, ds.UID = fmt.Sprint("web-", n), types.UID(fmt.Sprint("uid-", n))
			for number, image := range []string{"web:1", "web:1", "web:2"} {
				of := ds.DeepCopy()
				of.Spec.Template.Spec.Containers[0].Image = image
				r := inspecttest.StoredOf(t, of, int64(number+1), fmt.Sprint("h", number))
				r.Name, r.UID = fmt.Sprintf("%s-h%d", ds.Name, number), types.UID(fmt.Sprintf("%s-h%d", ds.UID, number))
				objects = append(objects, r)
			}
			objects = append(objects, ds)
		}
		c := inspecttest.Server(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				lists[parents]++
				return c.List(ctx, list, opts...)
			},
		}, objects...)
		found, err := Namespace(t.Context(), inspect.New(c), "shop", nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		same := 0
		for _, p := range found.Problems {
			if p.Reason == SameContent {
				same++
			}
		}
		if found.Parents != parents || same != parents {
			t.Errorf("%d parents, %d of %d with the same content twice: %+v %q", found.Parents, same, parents, found.Problems, found.Warnings)
		}
	}
	if lists[1] != lists[20] {
		t.Errorf("%d lists for one parent, %d for twenty", lists[1], lists[20])
	}
}

// TestOnce: a list out of what is kept is what the API server would answer.
func TestOnce(t *testing.T) {
	var objects []client.Object
	for n := range 4 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", n), Labels: map[string]string{"odd": fmt.Sprint(n % 2)}}}
		if n > 1 {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Thing", Name: "a", UID: "a", Controller: new(true)}}
		}
		objects = append(objects, pod)
	}
	c := inspect.New(inspecttest.Server(interceptor.Funcs{}, objects...)).Once().Client()
	for name, want := range map[string]struct {
		opts []client.ListOption
		want string
	}{
		"all":              {nil, "p0 p1 p2 p3 "},
		"by label":         {[]client.ListOption{client.MatchingLabels{"odd": "1"}}, "p1 p3 "},
		"by owner":         {[]client.ListOption{client.MatchingFields{"metadata.controller": "a/Thing"}}, "p2 p3 "},
		"by both":          {[]client.ListOption{client.MatchingFields{"metadata.controller": "a/Thing"}, client.MatchingLabels{"odd": "0"}}, "p2 "},
		"of another owner": {[]client.ListOption{client.MatchingFields{"metadata.controller": "b/Thing"}}, ""},
	} {
		var list corev1.PodList
		if err := c.List(t.Context(), &list, append(want.opts, client.InNamespace("shop"))...); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, pod := range list.Items {
			got += pod.Name + " "
		}
		if got != want.want {
			t.Errorf("%s: %q, want %q", name, got, want.want)
		}
	}
}
