package hook

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A watch that began can stand for a list: what was said of one before counts no longer. A list says nothing of a
// watch.
func TestWhatIsRefused(t *testing.T) {
	s := newSingle(nil, &corev1.Secret{}, "token", calls[*corev1.SecretList]{})
	refused := func(want bool) {
		t.Helper()
		if _, err, _ := s.state(); (err != nil) != want {
			t.Errorf("refused: %v", err)
		}
	}
	s.listed(errNo)
	refused(true)
	s.begun(nil)
	refused(false)
	s.begun(errNo)
	s.listed(nil)
	refused(true)
	s.begun(errors.New("connection refused"))
	refused(false)
}
