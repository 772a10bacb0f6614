package children

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	podKind = schema.GroupKind{Kind: "Pod"}
	full    = "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=3,requests.cpu=2, limited: pods=3,requests.cpu=2"
)

// policy is what a ValidatingAdmissionPolicy answers, taken from an API server of 1.36: the code of an invalid object,
// and a cause without a field.
func policy() error {
	err := apierrors.NewForbidden(pods, "a", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"))
	err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no"}}
	return err
}

func immutable() error {
	return apierrors.NewInvalid(podKind, "a", field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change it\n@@ -1 @@")})
}

func errTerminating() error {
	err := apierrors.NewForbidden(pods, "a", errors.New("it is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// TestWhatRefusalsProve: what each of them is taken for decides whether anything is deleted, and who is tried after it.
func TestWhatRefusalsProve(t *testing.T) {
	for name, c := range map[string]struct {
		err                      error
		byKind, answered, others bool
	}{
		"a field that cannot be changed":  {immutable(), true, true, false},
		"wrapped":                         {fmt.Errorf("update: %w", immutable()), true, true, false},
		"a policy":                        {policy(), false, true, false},
		"a webhook":                       {apierrors.NewForbidden(pods, "a", errors.New(`admission webhook "w" denied the request`)), false, true, false},
		"a webhook without dry runs":      {apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), false, true, false},
		"invalid, without causes":         {apierrors.NewInvalid(podKind, "a", nil), false, true, false},
		"a quota":                         {apierrors.NewForbidden(pods, "a", errors.New(full)), false, true, true},
		"an owner that is not known":      {apierrors.NewForbidden(pods, "a", errors.New("cannot set blockOwnerDeletion in this case")), false, true, true},
		"no right":                        {apierrors.NewForbidden(pods, "", errors.New("cannot create")), false, true, true},
		"a namespace that is deleted":     {errTerminating(), false, true, true},
		"no such kind":                    {apierrors.NewNotFound(pods, ""), false, true, true},
		"too busy":                        {apierrors.NewTooManyRequests("later", 1), false, false, true},
		"a webhook that cannot be called": {apierrors.NewInternalError(errors.New("failed calling webhook")), false, false, true},
		"no answer":                       {errors.New("connection refused"), false, false, true},
		"a conflict":                      {apierrors.NewConflict(pods, "a", errors.New("changed")), false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusedByKind(c.err); got != c.byKind {
				t.Errorf("by the rules of the kind: %v", got)
			}
			if got := answered(c.err); got != c.answered {
				t.Errorf("an answer: %v", got)
			}
			if got := refusesAll(c.err); got != c.others {
				t.Errorf("concerns all of the kind: %v", got)
			}
		})
	}
}

// TestQuota: amounts are read, and what is not understood is no excess.
func TestQuota(t *testing.T) {
	forbidden := func(text string) error { return apierrors.NewForbidden(pods, "a", errors.New(text)) }
	room := map[string]string{}
	for _, e := range quota(forbidden(full)) {
		for _, freed := range []string{"0", "500m", "1"} {
			if e.leaves(resource.MustParse(freed)) {
				room[e.Resource] += freed + " "
			}
		}
	}
	if got := fmt.Sprint(room); got != "map[pods:1  requests.cpu:500m 1 ]" {
		t.Errorf("there is room after that much is free: %s", got)
	}
	for name, err := range map[string]error{
		"another refusal":   policy(),
		"other words":       forbidden("exceeded quota: q"),
		"no limit":          forbidden("exceeded quota: q, requested: pods=1, used: pods=1, limited: secrets=1"),
		"not an amount":     forbidden("exceeded quota: q, requested: pods=1,secrets=x, used: pods=1, limited: pods=1"),
		"no request":        forbidden("exceeded quota: q, requested: , used: pods=1, limited: pods=1"),
		"limits must be in": forbidden("failed quota: q: must specify limits.cpu"),
	} {
		if got := quota(err); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLine: people get one line of what may hold two objects.
func TestLine(t *testing.T) {
	if got := line(immutable()); strings.Contains(got, "\n") || !strings.HasSuffix(got, "may not change it …") {
		t.Errorf("%q", got)
	}
	if got := line(errors.New(strings.Repeat("ä", 400))); got != strings.Repeat("ä", 150)+" …" {
		t.Errorf("%q", got)
	}
	if got := line(errors.New("no")); got != "no" {
		t.Errorf("%q", got)
	}
}
