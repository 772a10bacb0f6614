package host

import (
	"errors"
	"strings"
	"testing"
)

// finds is a [Resources] that always finds the same.
type finds func() (Resource, error)

func (f finds) Resource(_, _ string) (Resource, error) { return f() }

// TestDeclared: our own revisions are nobody's parents, children or attachments.
func TestDeclared(t *testing.T) {
	unserved := errors.New("not served")
	if _, err := Declared(finds(func() (Resource, error) { return Resource{}, unserved }), "v1", "x"); !errors.Is(err, unserved) {
		t.Error(err)
	}
	if r, err := Declared(finds(func() (Resource, error) { return namespaces, nil }), "v1", "namespaces"); err != nil || r != namespaces {
		t.Error(r, err)
	}
	_, err := Declared(finds(func() (Resource, error) { return Revisions, nil }), "metacontroller.k8s.io/v1alpha1", "controllerrevisions")
	if err == nil || !strings.HasPrefix(err.Error(), "controllerrevisions.metacontroller.k8s.io are what this manager records") {
		t.Error(err)
	}
}
