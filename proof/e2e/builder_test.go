package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file runs examples/fleet, a controller that somebody else has made with package builder: a program of a module
// of its own, under the role that stands beside it.

const fleetDir = "../../examples/fleet"

var fleetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}

// fleet is the program and where it runs.
type fleet struct{ *program }

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{newProgram(t, fleetDir, "example.com_fleets.yaml")}
	f.eventually("Fleets are served", func() error {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(fleetKind.GroupVersion().WithKind("FleetList"))
		return f.List(t.Context(), all)
	})
	return f
}

func (f *fleet) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(fleetKind)
	o.SetNamespace(f.namespace)
	o.SetName("web")
	return o
}

// running is a Fleet that is to be created.
func (f *fleet) running(image string, replicas int64) *unstructured.Unstructured {
	o := f.object()
	o.Object["spec"] = map[string]any{"replicas": replicas, "template": map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
	}}
	return o
}

func (f *fleet) patch(body string) {
	f.Helper()
	must(f, f.Patch(f.Context(), f.object(), client.RawPatch("application/merge-patch+json", []byte(body))))
}

func (f *fleet) image(image string) {
	f.Helper()
	f.patch(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"` + image + `"}]}}}}`)
}

// are waits until the pods are just these: name=image, in order, all of them ready but those with a minus.
func (f *fleet) are(want string) {
	f.Helper()
	f.eventually("the pods "+want, func() error {
		var pods corev1.PodList
		if err := f.List(f.Context(), &pods, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var got []string
		for _, pod := range pods.Items {
			text := pod.Name + "=" + pod.Spec.Containers[0].Image
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
					text += "-"
				}
			}
			if pod.DeletionTimestamp != nil {
				text += "x"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they are %s", text)
		}
		return nil
	})
}

// says waits until the condition Updated has a reason, and a message that contains a text.
func (f *fleet) says(reason, message string) {
	f.Helper()
	f.eventually("Updated is "+reason, func() error {
		o := f.object()
		if err := f.Get(f.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		text := fmt.Sprint(conditions)
		if !strings.Contains(text, "reason:"+reason) || !strings.Contains(text, message) {
			return fmt.Errorf("the conditions are %s", text)
		}
		return nil
	})
}

// Somebody's controller of sixty lines rolls, holds a broken rollout, brings back what is lost as it was, and goes
// back.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	kill := f.start()

	// One that never worked has a status, too, although its counters are required and most of them are zero.
	f.create(f.running("app:broken", 1))
	f.says("OnLatestRevision", "web-")
	must(t, f.Delete(t.Context(), f.object()))
	f.are("")

	f.create(f.running("app:1", 3))
	f.are("web-0=app:1 web-1=app:1 web-2=app:1")
	f.says("OnLatestRevision", "web-")

	f.image("app:2")
	f.are("web-0=app:2 web-1=app:2 web-2=app:2")

	// A revision that does not start stops at its budget, and a child that is lost comes back as it was: also while nobody
	// runs.
	f.image("app:broken")
	f.are("web-0=app:broken- web-1=app:2 web-2=app:2")
	f.says("RolloutWaiting", "1 of 3 children updated; waiting for web-0: ")
	kill()
	lost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web-1"}}
	must(t, f.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
	f.are("web-0=app:broken- web-2=app:2")
	f.start()
	f.are("web-0=app:broken- web-1=app:2 web-2=app:2")

	// The Service belongs to no revision: it follows at once.
	f.patch(`{"spec":{"port":8080}}`)
	f.eventually("the Service has the port", func() error {
		service := &corev1.Service{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "web"}, service); err != nil {
			return err
		}
		if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 8080 || service.Spec.ClusterIP == "" {
			return fmt.Errorf("it has %v", service.Spec.Ports)
		}
		return nil
	})

	// The command line reads and undoes a kind that it has not been told of.
	if out := f.cli("history", "fleet/web"); !strings.Contains(out, "\n3          *         1 ") || strings.Count(out, "web-") != 3 {
		t.Errorf("cairn history:\n%s", out)
	}
	if out := f.cli("diff", "fleet/web", "--revision", "1"); !strings.Contains(out, "app:1") || strings.Contains(out, "resources") {
		t.Errorf("cairn diff:\n%s", out)
	}
	f.cli("undo", "fleet/web", "--to-revision", "1")
	f.are("web-0=app:1 web-1=app:1 web-2=app:1")
	f.eventually("cairn status", func() error {
		if out := f.cli("status", "fleet/web"); !strings.Contains(out, "3/3 pods updated") || !strings.Contains(out, "OnLatestRevision") {
			return errors.New(out)
		}
		return nil
	})
	revisions := f.revisionsOf(f.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/fleet": "web"}})
	var numbers []int64
	for _, r := range revisions {
		numbers = append(numbers, r.Revision)
	}
	if len(revisions) != 3 {
		t.Errorf("the revisions are %v, want three of which one was renumbered", numbers)
	}
	f.patch(`{"spec":{"replicas":1}}`)
	f.are("web-0=app:1")

	// An orphan of a name that is not asked for is nobody's, whatever its labels are.
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "hers", Labels: map[string]string{"example.com/fleet": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "app:1"}}},
	}
	f.create(orphan)
	f.patch(`{"spec":{"replicas":2}}`)
	f.are("hers=app:1 web-0=app:1 web-1=app:1")

	must(t, f.Delete(t.Context(), f.object()))
	f.are("hers=app:1")
	f.eventually("the revisions go with their parent", func() error {
		all := f.revisionsOf(f.namespace, &metav1.LabelSelector{})
		err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "web"}, &corev1.Service{})
		if len(all) > 0 || !apierrors.IsNotFound(err) {
			return fmt.Errorf("there are %d revisions; the Service: %w", len(all), err)
		}
		return nil
	})

	must(t, f.Delete(t.Context(), orphan, client.GracePeriodSeconds(0)))
	f.are("")
	f.broughtBack()
}

// The author's own Go is sixty lines at most, main included; imports, comments, the types and generated code apart.
func TestFleetIsSixtyLines(t *testing.T) {
	file, err := os.Open(filepath.Join(fleetDir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, importing := 0, false
	for s := bufio.NewScanner(file); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		importing = importing || line == "import ("
		if line != "" && !importing && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "package ") {
			lines++
		}
		importing = importing && line != ")"
	}
	t.Logf("%d lines", lines)
	if lines == 0 || lines > 60 {
		t.Errorf("%d lines, want 60 at most", lines)
	}
}
