package host

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/watching"
)

// finds is a [watching.Resources] that always finds the same.
type finds func() (watching.Resource, error)

func (f finds) Resource(_, _ string) (watching.Resource, error) { return f() }

var catSets = watching.Resource{
	Kind:       schema.GroupVersionKind{Group: "ctl.example", Version: "v1", Kind: "CatSet"},
	Resource:   schema.GroupVersionResource{Group: "ctl.example", Version: "v1", Resource: "catsets"},
	Namespaced: true,
}

// TestDeclared: our own revisions are nobody's parents, children or attachments.
func TestDeclared(t *testing.T) {
	unserved := errors.New("not served")
	if _, err := Declared(finds(func() (watching.Resource, error) { return watching.Resource{}, unserved }), "v1", "x"); !errors.Is(err, unserved) {
		t.Error(err)
	}
	if r, err := Declared(finds(func() (watching.Resource, error) { return catSets, nil }), "ctl.example/v1", "catsets"); err != nil || r != catSets {
		t.Error(r, err)
	}
	_, err := Declared(finds(func() (watching.Resource, error) { return watching.Revisions, nil }), "metacontroller.k8s.io/v1alpha1", "controllerrevisions")
	if err == nil || !strings.HasPrefix(err.Error(), "controllerrevisions.metacontroller.k8s.io are what this manager records") {
		t.Error(err)
	}
}

// servesCatSets serves CatSets, with a status or without.
type servesCatSets struct {
	watching.Authority

	status  bool
	failing error
}

func (a *servesCatSets) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "catsets"}}}
	if a.status {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "catsets/status"})
	}
	return list, a.failing
}

// resources finds one resource, and knows about its status.
type resources struct {
	*watching.Server

	found watching.Resource
}

func (r resources) Resource(_, _ string) (watching.Resource, error) { return r.found, nil }

func TestParentsWithoutStatus(t *testing.T) {
	a := &servesCatSets{status: true}
	r := resources{&watching.Server{Authority: a}, catSets}
	if got, err := DeclaredParent(r, "ctl.example/v1", "catsets"); err != nil || got != catSets {
		t.Error(got, err)
	}
	a.status = false
	_, err := DeclaredParent(r, "ctl.example/v1", "catsets")
	no, ok := errors.AsType[*hosting.Error](err)
	if !ok || no.Reason != NoStatus || no.Event != SyncError || !strings.Contains(no.Error(), "does not have subresource 'Status' enabled") {
		t.Error(err)
	}
	a.failing = errors.New("connection refused")
	if _, err := DeclaredParent(r, "ctl.example/v1", "catsets"); err == nil || errors.As(err, &no) {
		t.Error(err)
	}
	r.Server = &watching.Server{}
	if _, err := DeclaredParent(r, "ctl.example/v1", "catsets"); err != nil {
		t.Error(err)
	}
}
