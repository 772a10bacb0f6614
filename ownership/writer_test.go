package ownership_test

// Creating and deleting children: what a lost response, another manager or a stranger of the same name may not do.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// behind is a store that has seen nothing yet.
type behind struct{ known []*corev1.Pod }

func (behind) LastStoreSyncResourceVersion() string { return "1" }

func (b behind) GetByKey(key string) (any, bool, error) {
	i := slices.IndexFunc(b.known, func(p *corev1.Pod) bool { return client.ObjectKeyFromObject(p).String() == key })
	if i < 0 {
		return nil, false, nil
	}
	return b.known[i], true, nil
}

func (s *server) writer(known ...*corev1.Pod) (ownership.Writer, *ownership.ConsistencyStore) {
	consistency := ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{pods: behind{known}})
	return ownership.Writer{Client: s, Live: s, Consistency: consistency, Resource: pods}, consistency
}

func anything(client.Object) bool { return true }

func TestCreate(t *testing.T) {
	web := parent("web")
	updated := func(o client.Object) bool { return o.GetLabels()["app"] == "x" }
	for name, c := range map[string]struct {
		there  *corev1.Pod
		want   ownership.Creation
		unseen bool
	}{
		"a free name":                          {nil, ownership.Created, true},
		"ours and as wanted":                   {child("web-0", ownedBy(web)), ownership.Existed, true},
		"ours and another":                     {child("web-0", ownedBy(web), labelled("y")), ownership.Taken, false},
		"ours and going":                       {child("web-0", ownedBy(web), deleting), ownership.Taken, false},
		"nobody's":                             {child("web-0"), ownership.Taken, false},
		"another parent's":                     {child("web-0", ownedBy(parent("other"))), ownership.Taken, false},
		"an earlier parent's of the same name": {child("web-0", ownedBy(parent("web", withUID("before")))), ownership.Taken, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			if c.there != nil {
				s = serve(t, c.there)
			}
			w, consistency := s.writer()
			how, err := w.Create(t.Context(), web, child("web-0", ownedBy(web), version(""), withUID("")), updated)
			if err != nil || how != c.want {
				t.Errorf("got %d, %v; want %d", how, err, c.want)
			}
			if why := consistency.Unseen(web.UID); (why != "") != c.unseen {
				t.Errorf("the consistency waits for %q", why)
			}
		})
	}
}

func TestCreateThatCannotBeReadBack(t *testing.T) {
	web := parent("web")
	s := serve(t, child("web-0", ownedBy(web)))
	s.readErr = apierrors.NewInternalError(errors.New("boom"))
	w, _ := s.writer()
	how, err := w.Create(t.Context(), web, child("web-0", ownedBy(web), version("")), anything)
	if how != 0 || !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "read back") {
		t.Errorf("got %d, %v", how, err)
	}
	s.readErr = apierrors.NewNotFound(pods, "web-0")
	if _, err = w.Create(t.Context(), web, child("web-0", ownedBy(web), version("")), anything); !strings.Contains(err.Error(), "was deleted meanwhile") {
		t.Errorf("got %v", err)
	}
}

// What is deleted is the version that was looked at: not one that changed, and not another one of its name.
func TestDelete(t *testing.T) {
	web := parent("web")
	for name, c := range map[string]struct {
		there       *corev1.Pod
		want, waits bool
	}{
		"as it was read": {child("web-0", ownedBy(web)), true, true},
		"changed since":  {child("web-0", ownedBy(web), version("8")), false, true},
		"another one":    {child("web-0", ownedBy(web), withUID("later")), false, true},
		"gone":           {child("web-1"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			read := child("web-0", ownedBy(web))
			s := serve(t, c.there)
			s.delete = func(o client.DeleteOptions) error {
				if o.Preconditions == nil || *o.Preconditions.UID != read.UID || *o.Preconditions.ResourceVersion != read.ResourceVersion {
					t.Errorf("P6: preconditions %v", o.Preconditions)
				}
				if o.PropagationPolicy == nil || *o.PropagationPolicy != metav1.DeletePropagationBackground {
					t.Errorf("what it owns stays, or holds it: %v", o.PropagationPolicy)
				}
				if c.there.UID != read.UID || c.there.ResourceVersion != read.ResourceVersion {
					return apierrors.NewConflict(pods, read.Name, errors.New("precondition"))
				}
				return nil
			}
			w, consistency := s.writer(read)
			deleted, err := w.Delete(t.Context(), web, read)
			if err != nil || deleted != c.want {
				t.Errorf("got %v, %v; want %v", deleted, err, c.want)
			}
			if unseen := consistency.Unseen(web.UID) != ""; unseen != c.waits {
				t.Errorf("the consistency waits: %v", unseen)
			}
		})
	}
}

// A conflict about a child that nobody has changed is a refusal, of an admission webhook say: no event would come.
func TestDeleteThatIsRefusedAsAConflict(t *testing.T) {
	read := child("web-0")
	s := serve(t, read)
	s.delete = func(client.DeleteOptions) error { return apierrors.NewConflict(pods, read.Name, errors.New("no")) }
	w, consistency := s.writer(read)
	if deleted, err := w.Delete(t.Context(), parent("web"), read); deleted || !apierrors.IsConflict(err) {
		t.Errorf("got %v, %v", deleted, err)
	}
	if why := consistency.Unseen("uid-web"); why != "" {
		t.Error(why)
	}
}

func TestDeleteThatFails(t *testing.T) {
	s := serve(t, child("web-0"))
	s.delete = func(client.DeleteOptions) error { return apierrors.NewInternalError(errors.New("boom")) }
	w, consistency := s.writer()
	if deleted, err := w.Delete(t.Context(), parent("web"), child("web-0")); deleted || !apierrors.IsInternalError(err) {
		t.Errorf("got %v, %v", deleted, err)
	}
	if why := consistency.Unseen("uid-web"); why != "" {
		t.Error(why)
	}
}
