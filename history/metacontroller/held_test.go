package metacontroller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file checks what the newest revision knows of children that are held at others.

func carries(annotation string) *v1alpha1.ControllerRevision {
	return &v1alpha1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{HeldAnnotation: annotation}}}
}

// TestHeld: what is written is what is read, in one order, and each kind can be told from the others.
func TestHeld(t *testing.T) {
	config := Child{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: "c"}
	h := Held{}
	h.Add("cats-2", pod("b"))
	h.Add("cats-2", pod("a"))
	h.Add("cats-2", config)
	h.Add("", pod("stray"))
	const want = `{"":[{"apiGroup":"","kind":"Pod","names":["stray"]}],` +
		`"cats-2":[{"apiGroup":"","kind":"ConfigMap","names":["c"]},{"apiGroup":"","kind":"Pod","names":["a","b"]}]}`
	if got := h.Annotation(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	read := ReadHeld(carries(want))
	if got := read.Annotation(); got != want {
		t.Errorf("read again it is %s", got)
	}
	isPod := func(kind schema.GroupKind) bool { return kind.Kind == "Pod" }
	pods, others := read.Only(isPod), read.Only(func(kind schema.GroupKind) bool { return !isPod(kind) })
	if got := others.Annotation(); got != `{"cats-2":[{"apiGroup":"","kind":"ConfigMap","names":["c"]}]}` {
		t.Error(got)
	}
	if got := pods.With(others).Annotation(); got != want {
		t.Errorf("together they are %s", got)
	}
}

// TestHeldIsOptional: what cannot be read says nothing, and so does what no object would take.
func TestHeldIsOptional(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"a":3}`} {
		if got := ReadHeld(carries(text)); len(got) != 0 {
			t.Errorf("%q holds %v", text, got)
		}
	}
	h := Held{}
	for i := range 20000 {
		h.Add("cats-1", pod(fmt.Sprintf("cat-%d", i)))
	}
	if got := h.Annotation(); got != "" || (Held{}).Annotation() != "" {
		t.Errorf("%d bytes", len(got))
	}
}
