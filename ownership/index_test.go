package ownership_test

// What a claim looks at, and how it reads past a cache.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

func TestTheIndexIsByController(t *testing.T) {
	us := parent("us")
	want(t, "an orphan", ownership.IndexController(child("c")), "none")
	want(t, "one with an owner that is no controller", ownership.IndexController(child("c", alsoOwnedBy("cm"))), "none")
	want(t, "one with a controller", ownership.IndexController(child("c", alsoOwnedBy("cm"), ownedBy(us))), "uid-us/DaemonSet.apps")
}

// populated is a namespace with everything that could be mistaken for ours, and its neighbour.
func populated(t *testing.T) *server {
	t.Helper()
	us, them := parent("us"), parent("them")
	return serve(t, us, them,
		child("mine", ownedBy(us)), child("mine-stray", ownedBy(us), labelled("y")), child("mine-deleting", ownedBy(us), deleting),
		child("theirs", ownedBy(them)), child("predecessors", ownedBy(parent("us", withUID("uid-old")))),
		child("forged", forged(us)), child("orphan"), child("orphan-owned", alsoOwnedBy("cm")), child("orphan-else", labelled("y")),
		child("far-mine", ownedBy(us), inNamespace("other")), child("far-orphan", inNamespace("other")))
}

func visit(t *testing.T, reader client.Reader, indexed bool) ([]string, error) {
	t.Helper()
	var names []string
	err := ownership.Candidates(t.Context(), reader, &corev1.PodList{}, "ns", ownerOf(parent("us")), appX, indexed, func(o client.Object) error {
		names = append(names, o.(*corev1.Pod).Name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

func TestCandidatesAreWhatIsOursAndTheOrphansThatMatch(t *testing.T) {
	for name, indexed := range map[string]bool{"with the index": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			got, err := visit(t, populated(t), indexed)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "candidates", got, "mine", "mine-deleting", "mine-stray", "orphan", "orphan-owned")
		})
	}
}

// With the index no list may return more than is visited: the cost of a pass is that of its own children.
func TestTheIndexNeverListsTheNamespace(t *testing.T) {
	s := populated(t)
	listed := 0
	counting := interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			listed += len(list.(*corev1.PodList).Items)
			return err
		},
	})
	got, err := visit(t, counting, true)
	if err != nil || listed != len(got) {
		t.Errorf("%d objects listed to visit %d, error %v", listed, len(got), err)
	}
}

func TestCandidatesEndsAtTheFirstError(t *testing.T) {
	s := populated(t)
	enough := errors.New("enough")
	visits := 0
	err := ownership.Candidates(t.Context(), s, &corev1.PodList{}, "ns", ownerOf(parent("us")), appX, true, func(client.Object) error {
		visits++
		return enough
	})
	if !errors.Is(err, enough) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
	refuses := interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(pods, "", errors.New("no rights"))
		},
	})
	if _, err := visit(t, refuses, true); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "list PodList in namespace ns") {
		t.Errorf("error %v", err)
	}
}

// overlay is a reader that decodes over whatever it is given, as JSON does. The fake client is more careful.
type overlay struct{ client.Reader }

func (r overlay) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	read := anyobject.Blank(o)
	if err := r.Reader.Get(ctx, key, read, opts...); err != nil {
		return err
	}
	body, err := json.Marshal(read)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, o)
}

func TestRereadReturnsWhatTheServerHas(t *testing.T) {
	s := serve(t, parent("us", labelled("new")))
	old := parent("us", labelled("old"), func(o metav1.Object) { o.SetAnnotations(map[string]string{"gone": "by now"}) })
	fresh, err := ownership.Reread(t.Context(), overlay{s}, old)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.GetLabels()["app"] != "new" || fresh.GetAnnotations() != nil || old.Labels["app"] != "old" {
		t.Errorf("fresh %v, old %v", fresh, old)
	}
}

func TestRereadSaysThatAnObjectIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		live []client.Object
		text string
	}{
		"deleted":       {nil, "DaemonSet ns/us: it was deleted"},
		"being deleted": {[]client.Object{parent("us", deleting)}, "DaemonSet ns/us: it was deleted: it is being deleted"},
		"replaced":      {[]client.Object{parent("us", withUID("uid-new"))}, "DaemonSet ns/us: it was deleted: its UID is uid-new now, not uid-us"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh, err := ownership.Reread(t.Context(), serve(t, c.live...), parent("us"))
			if !errors.Is(err, ownership.ErrGone) || err.Error() != c.text || fresh != nil {
				t.Errorf("got %v, %v; want %q", fresh, err, c.text)
			}
		})
	}
}

// That a server does not answer says nothing about the object.
func TestRereadTellsAFailureFromAnObjectThatIsGone(t *testing.T) {
	s := serve(t)
	s.readErr = apierrors.NewTooManyRequestsError("slow down")
	_, err := ownership.Reread(t.Context(), s, parent("us"))
	if errors.Is(err, ownership.ErrGone) || !apierrors.IsTooManyRequests(err) || !strings.HasPrefix(err.Error(), "read DaemonSet ns/us past the cache: ") {
		t.Errorf("error %v", err)
	}
}

func TestABlankHasANameAndAKindAndNothingElse(t *testing.T) {
	pod := child("c", ownedBy(parent("us")))
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	blank := anyobject.Blank(pod)
	if o, ok := blank.(*corev1.Pod); !ok || o.Name != "c" || o.Namespace != "ns" || o.Kind != "Pod" || o.APIVersion != "v1" {
		t.Errorf("%#v", blank)
	}
	if blank.GetUID() != types.UID("") || blank.GetLabels() != nil || blank.GetOwnerReferences() != nil || blank.GetResourceVersion() != "" {
		t.Errorf("it carries more: %v", blank)
	}
	var custom unstructured.Unstructured
	custom.SetAPIVersion("ctl.enisoc.com/v1")
	custom.SetKind("CatSet")
	custom.SetName("nginx")
	custom.SetLabels(map[string]string{"a": "b"})
	copied, ok := anyobject.Blank(&custom).(*unstructured.Unstructured)
	if !ok || copied.GetKind() != "CatSet" || copied.GetAPIVersion() != "ctl.enisoc.com/v1" || copied.GetName() != "nginx" || copied.GetLabels() != nil {
		t.Errorf("%v", copied)
	}
}
