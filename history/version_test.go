package history_test

// What the garbage collector finds a parent by, when the version that it was recorded in is served no more.

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/history"
)

// An owner reference in an older version is moved to today's, once, and the revision says in which version it was
// recorded. One in a newer version stays: another release of the controller wrote it.
func TestOwnersFollowTheVersion(t *testing.T) {
	for version, moves := range map[string]bool{"apps/v1beta2": true, "apps/v1": false, "apps/v2": false, "extensions/v1beta1": false} {
		t.Run(version, func(t *testing.T) {
			s := twoRevisions(t)
			named := func() int {
				n := 0
				for _, o := range s.stored() {
					if o.OwnerReferences[0].APIVersion == version && history.RecordedIn(o) == version {
						n++
					}
				}
				return n
			}
			for _, o := range s.stored() {
				o.OwnerReferences[0].APIVersion = version
				if err := s.Raw.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			s.Forget()
			_, err := newLog(s).Claim(t.Context(), s.parent(), matching)
			if errors.Is(err, history.ErrStale) != moves || !moves && err != nil {
				t.Fatal(err)
			}
			if writes, left := len(s.Writes()), named(); moves && (writes != 2 || left != 0) || !moves && (writes != 0 || left != 2) {
				t.Errorf("%d writes, %d still name it", writes, left)
			}
			for _, o := range s.stored() {
				if history.RecordedIn(o) != version {
					t.Errorf("it says that it was recorded in %s", history.RecordedIn(o))
				}
			}
			s.Forget()
			if entries, err := newLog(s).Claim(t.Context(), s.parent(), matching); err != nil || len(entries) != 2 || len(s.Writes()) > 0 {
				t.Errorf("the next pass has %d entries, %v, and wrote %v", len(entries), err, s.Writes())
			}
		})
	}
}

// Where it may not be moved, the pass goes on.
func TestOwnersThatMayNotFollow(t *testing.T) {
	s := twoRevisions(t)
	for _, o := range s.stored() {
		o.OwnerReferences[0].APIVersion = "apps/v1beta2"
		if err := s.Raw.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.Before = fail("patch", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
	if entries, err := newLog(s).Claim(t.Context(), s.parent(), matching); err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	s.Before = fail("patch", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}})
	if _, err := newLog(s).Claim(t.Context(), s.parent(), matching); !apierrors.IsInternalError(err) {
		t.Error(err)
	}
}
