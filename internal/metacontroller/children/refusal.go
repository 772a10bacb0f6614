package children

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file says what a refusal of the API server proves about a child: a field cannot be changed, a quota is
// exhausted, or all children of the kind would be refused. If it proves nothing, the state of the child is unknown to
// the caller, which must not delete a child that may be in use because of it. It is pure.

// lineSize is how much of a refusal users are shown. Some hold both objects.
const lineSize = 300

// status returns what the API server said, and whether err is its answer at all.
func status(err error) (metav1.Status, bool) {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		return answer.Status(), true
	}
	return metav1.Status{}, false
}

// refusedByKind reports whether err is a refusal by the rules of the kind itself: each of its causes names a field and
// what is wrong with it. A policy or a webhook that refuses with the same code names none. Where a creation of the same
// content is accepted, such a refusal of a change proves that a field differs which cannot be changed.
func refusedByKind(err error) bool {
	s, ok := status(err)
	if !ok || s.Code != http.StatusUnprocessableEntity || s.Details == nil || len(s.Details.Causes) == 0 {
		return false
	}
	for _, cause := range s.Details.Causes {
		if cause.Field == "" || !strings.HasPrefix(string(cause.Type), "FieldValue") {
			return false
		}
	}
	return true
}

// answered reports whether the API server has decided about the request itself. It has not if it failed, was too busy,
// or could not be reached: then the same request may succeed a moment later.
func answered(err error) bool {
	s, ok := status(err)
	return ok && s.Code < http.StatusInternalServerError && s.Code != http.StatusTooManyRequests
}

// refusesAll reports whether every other child of the kind in that namespace would most likely fail as well: no answer,
// no such resource, no right to it, an exhausted quota. A refusal because of the child's own content is no such error.
func refusesAll(err error) bool {
	s, ok := status(err)
	switch {
	case !ok, s.Code >= http.StatusInternalServerError, s.Code == http.StatusTooManyRequests:
		return true
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed, s.Code == http.StatusUnauthorized:
		return true
	case s.Code != http.StatusForbidden:
		return false
	}
	// Authorization does not name the object that is to be created. Admission does, also where it is about the parent's
	// kind, which it does not know yet or which we may not name as an owner.
	return strings.Contains(s.Message, "blockOwnerDeletion") || s.Details == nil || s.Details.Name == "" ||
		pass.OverQuota(err) || terminating(err)
}

// terminating reports whether err is nothing but the refusal to create anything in a namespace that is being deleted.
// Call it for each error before they are joined: it does not see the others.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// line returns the text of err in one readable line.
func line(err error) string {
	line, _, cut := strings.Cut(err.Error(), "\n")
	if len(line) > lineSize {
		line, cut = line[:lineSize], true
		for !utf8.ValidString(line) {
			line = line[:len(line)-1]
		}
	}
	if cut {
		line += " …"
	}
	return line
}
