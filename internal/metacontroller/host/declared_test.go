package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
)

// finds is a [watch.Resources] that always finds the same.
type finds func() (watch.Resource, error)

func (f finds) Resource(_, _ string) (watch.Resource, error) { return f() }

// TestDeclared: our own revisions are nobody's parents, children or attachments.
func TestDeclared(t *testing.T) {
	unserved := errors.New("not served")
	if _, err := Declared(finds(func() (watch.Resource, error) { return watch.Resource{}, unserved }), "v1", "x"); !errors.Is(err, unserved) {
		t.Error(err)
	}
	if r, err := Declared(finds(func() (watch.Resource, error) { return pods, nil }), "v1", "pods"); err != nil || r != pods {
		t.Error(r, err)
	}
	_, err := Declared(finds(func() (watch.Resource, error) { return watch.Revisions, nil }), "metacontroller.k8s.io/v1alpha1", "controllerrevisions")
	if err == nil || !strings.HasPrefix(err.Error(), "controllerrevisions.metacontroller.k8s.io are what this manager records") {
		t.Error(err)
	}
}
