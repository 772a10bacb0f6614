package check

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is about what is remembered across histories: it depends on content only, and does not grow for ever.

func TestAnswersAreBoundedAndRefusalsAreForgotten(t *testing.T) {
	var a answers
	asked := 0
	ask := func(i int) string {
		out, err := a.of(fmt.Append(nil, i), func() (string, error) { asked++; return fmt.Sprint("answer ", i), nil })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for i := range 10 * halfOfMemory {
		if got := ask(i); got != fmt.Sprint("answer ", i) || ask(i) != got {
			t.Fatalf("question %d: %q", i, got)
		}
	}
	if asked != 10*halfOfMemory {
		t.Errorf("%d questions were asked, want each once", asked)
	}
	if n := len(a.young) + len(a.old); n > 2*halfOfMemory {
		t.Errorf("%d answers are kept", n)
	}
	for range 2 {
		if _, err := a.of([]byte("x"), func() (string, error) { asked++; return "", errors.New("no") }); err == nil {
			t.Error("a refusal became an answer")
		}
	}
	if asked != 10*halfOfMemory+2 {
		t.Error("a refusal was remembered")
	}
}

func TestWhatIsRememberedDependsOnContentOnly(t *testing.T) {
	pod := func(change func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1", Labels: map[string]string{"a": "b", "c": "d"}}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
		change(p)
		return p
	}
	key := func(o client.Object) string {
		content, ok := appendContent(nil, o)
		if !ok {
			t.Fatalf("%T has no content", o)
		}
		return string(content)
	}
	same := key(pod(func(*corev1.Pod) {}))
	for name, change := range map[string]func(*corev1.Pod){
		"UID":     func(p *corev1.Pod) { p.UID = "2" },
		"version": func(p *corev1.Pod) { p.ResourceVersion = "2" },
		"status":  func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		if key(pod(change)) != same {
			t.Errorf("%s is no content", name)
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"name":       func(p *corev1.Pod) { p.Name = "b" },
		"label":      func(p *corev1.Pod) { p.Labels["a"] = "x" },
		"annotation": func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "x"} },
		"image":      func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" },
	} {
		if key(pod(change)) == same {
			t.Errorf("%s is content", name)
		}
	}
	data := func(raw string) client.Object {
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(raw)}}
	}
	if key(data("1")) == key(data("2")) {
		t.Error("data is content")
	}
	if _, ok := appendContent(nil, &unstructured.Unstructured{Object: map[string]any{"spec": 1}}); ok {
		t.Error("what has no fast encoding was taken for something that has")
	}
}
