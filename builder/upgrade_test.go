package builder

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
)

// release is the history of another release of the same controller, on the same API server.
func release(t *testing.T, s *fakeserver.Server, versions ...string) *History[*corev1.ConfigMap] {
	t.Helper()
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	v, err := describeParent(clientgoscheme.Scheme, m, &corev1.ConfigMap{}, versions, arguments{})
	if err != nil {
		t.Fatal(err)
	}
	return newHistory[*corev1.ConfigMap](v, ownership.NewConsistencyStore(nil), history.Options{Client: s, Indexed: true})
}

// The second release of an operator versions another field, and back again. Nothing that the first one recorded is
// lost, nothing counts as what it is not, and the first one finds its log as it left it.
func TestASecondRelease(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		upgrade  func(old *unstructured.Unstructured) (*corev1.ConfigMap, error)
		// number is that of the revision that the parent asks for, unreadable how many revisions cannot be read, and was the
		// color of the first one.
		number     int64
		unreadable int
		was        string
	}{
		"the same":            {[]string{"data"}, nil, 2, 0, "red"},
		"a path is added":     {[]string{"data", "binaryData"}, nil, 2, 0, "red"},
		"a path is narrower":  {[]string{"data.color"}, nil, 2, 0, "red"},
		"a path is renamed":   {[]string{"binaryData"}, nil, 3, 2, ""},
		"renamed, and mended": {[]string{"binaryData"}, toBinary, 2, 0, "red"},
		"renamed, and not": {[]string{"binaryData"}, func(*unstructured.Unstructured) (*corev1.ConfigMap, error) {
			return nil, errors.New("no idea")
		}, 3, 2, ""},
		"renamed, and a panic": {[]string{"binaryData"}, func(*unstructured.Unstructured) (*corev1.ConfigMap, error) {
			panic("no idea")
		}, 3, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttached(t, settings())
			a.record(a.color("red"))
			a.record(a.color("green"))
			before := a.stored()

			second := release(t, a.Server, c.versions...)
			second.Upgrade = c.upgrade
			now := a.color("green")
			now.BinaryData = map[string][]byte{"color": []byte("green")}
			if c.versions[0] != "binaryData" {
				now.BinaryData = nil
			}
			if err := a.Raw.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			r, err := second.Record(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			unreadable := 0
			for _, e := range r.Revisions {
				if e.Err != nil {
					unreadable++
				}
			}
			if r.Number != c.number || unreadable != c.unreadable || len(r.Warnings) != c.unreadable {
				t.Errorf("revision %d, %d cannot be read, warnings %v", r.Number, unreadable, r.Warnings)
			}
			if c.was != "" {
				was, err := r.At(r.Revisions[0])
				if got := colorOf(was, c.versions[0]); err != nil || got != c.was {
					t.Errorf("the first revision was %q, %v", got, err)
				}
			}
			if err := r.Truncate(t.Context(), 10); err != nil {
				t.Fatal(err)
			}

			stays := map[string]string{}
			for _, o := range a.stored() {
				stays[o.Name] = string(o.Data.Raw)
			}
			for _, o := range before {
				if stays[o.Name] != string(o.Data.Raw) {
					t.Errorf("%s was %s, and is %q", o.Name, o.Data.Raw, stays[o.Name])
				}
			}
			first := release(t, a.Server, "data")
			back, err := first.Record(t.Context(), now)
			if err != nil || back.Name != before[1].Name && back.Name != before[0].Name {
				t.Fatalf("the first release asks for %+v, %v", back, err)
			}
			was, err := back.At(back.Revisions[0])
			if err != nil || !maps.Equal(was.Data, map[string]string{"color": "red"}) {
				t.Errorf("the first revision was %v, %v", was.Data, err)
			}
		})
	}
}

func toBinary(old *unstructured.Unstructured) (*corev1.ConfigMap, error) {
	if old.GetAPIVersion() != "v1" || old.GetKind() != "ConfigMap" {
		return nil, errors.New("of which kind?")
	}
	color, _, err := unstructured.NestedString(old.Object, "data", "color")
	return &corev1.ConfigMap{BinaryData: map[string][]byte{"color": []byte(color)}}, err
}

func colorOf(o *corev1.ConfigMap, versioned string) string {
	if versioned == "binaryData" {
		return string(o.BinaryData["color"])
	}
	return o.Data["color"]
}
