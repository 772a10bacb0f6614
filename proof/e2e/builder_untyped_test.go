package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file runs a controller of parents that have no Go type, Yachts. Their pods are named by revision, so that a new
// one is there before the old one is deleted.

var yachtKind = schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Yacht"}

const yachtCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: yachts.sea.example.com
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Yacht, listKind: YachtList, plural: yachts, singular: yacht}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              crew: {type: integer}
              surge: {type: integer}
              image: {type: string}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// yachts is the cluster with the kind in it.
type yachts struct{ *env }

func newYachts(t *testing.T) yachts {
	t.Helper()
	y := yachts{newEnv(t)}
	// It stays for the other test: a kind that is being deleted cannot be made again at once.
	y.eventually("apply", func() error { return install.Apply(t.Context(), y.sandbox.Config(), yachtCRD) })
	y.eventually("Yachts are served", func() error {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(yachtKind.GroupVersion().WithKind("YachtList"))
		return y.List(t.Context(), all)
	})
	return y
}

// controller is what the author of Yachts says of them.
func (y yachts) controller() builder.Controller[*unstructured.Unstructured] {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(yachtKind)
	number := func(yacht *unstructured.Unstructured, field string) int {
		n, _, _ := unstructured.NestedInt64(yacht.Object, "spec", field)
		return int(n)
	}
	return builder.Controller[*unstructured.Unstructured]{
		Parent:   empty,
		Versions: []string{"spec.image"},
		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil).NamedByRevision()},
		Children: func(yacht *unstructured.Unstructured) ([]client.Object, error) {
			image, _, _ := unstructured.NestedString(yacht.Object, "spec", "image")
			var out []client.Object
			for i := range number(yacht, "crew") {
				pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
				pod.Name = fmt.Sprintf("%s-%d", yacht.GetName(), i)
				pod.Spec.Hostname = pod.Name
				out = append(out, pod)
			}
			return out, nil
		},
		Strategy: func(yacht *unstructured.Unstructured) builder.Strategy {
			return builder.Strategy{MaxSurge: number(yacht, "surge")}
		},
		Status: func(yacht *unstructured.Unstructured, s builder.Summary) {
			var conditions []metav1.Condition
			s.SetConditions(&conditions)
			var said []any
			for i := range conditions {
				c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
				if err != nil {
					y.Error(err)
				}
				delete(c, "lastTransitionTime") // the old ones are not read back, so it would change each time
				said = append(said, c)
			}
			yacht.Object["status"] = map[string]any{
				"observedGeneration": s.ObservedGeneration, "current": int64(s.Current), "available": int64(s.Available), "conditions": said,
			}
		},
	}
}

func (y yachts) manager() ctrl.Manager {
	y.Helper()
	mgr, err := ctrl.NewManager(y.sandbox.Config(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		y.Fatal(err)
	}
	return mgr
}

// are waits until the pods are just these: place=image, sorted, with a minus for one that is not ready, and returns
// their UIDs.
func (y yachts) are(want string) (uids []string) {
	y.Helper()
	y.eventually("the pods "+want, func() error {
		var pods corev1.PodList
		if err := y.List(y.Context(), &pods, client.InNamespace(y.namespace)); err != nil {
			return err
		}
		var got []string
		uids = nil
		for _, pod := range pods.Items {
			if pod.Name == pod.Spec.Hostname || !strings.HasPrefix(pod.Name, pod.Annotations[builder.PlaceAnnotation]+"-") {
				return fmt.Errorf("%s is at %s", pod.Name, pod.Annotations[builder.PlaceAnnotation])
			}
			text := pod.Annotations[builder.PlaceAnnotation] + "=" + pod.Spec.Containers[0].Image
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
					text += "-"
				}
			}
			if pod.DeletionTimestamp != nil {
				text += "x"
			}
			got, uids = append(got, text), append(uids, string(pod.UID))
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they are %s", text)
		}
		return nil
	})
	slices.Sort(uids)
	return uids
}

func (y yachts) edit(body string) {
	y.Helper()
	must(y, y.Patch(y.Context(), y.yacht(), client.RawPatch("application/merge-patch+json", []byte(body))))
}

func (y yachts) yacht() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(yachtKind)
	o.SetNamespace(y.namespace)
	o.SetName("web")
	return o
}

// says waits until the condition Updated has a reason and a message like these.
func (y yachts) says(reason, message string) {
	y.Helper()
	y.eventually("Updated is "+reason, func() error {
		o := y.yacht()
		if err := y.Get(y.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		if text := fmt.Sprint(conditions); !strings.Contains(text, "reason:"+reason) || !strings.Contains(text, message) {
			return fmt.Errorf("the conditions are %s", text)
		}
		return nil
	})
}

// A path that the served schema does not know is refused by Setup.
func TestYachtsWithAWrongPath(t *testing.T) {
	y := newYachts(t)
	c := y.controller()
	c.Versions = []string{"spec.images"}
	// The document is made a moment after the kind is served, and until then it says nothing.
	y.eventually("the path is refused", func() error {
		err := c.Setup(t.Context(), y.manager())
		want := `field Versions: "spec.images": in the schema that the API server serves for Yacht, spec has no field images`
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("%w, want %s", errors.Join(err), want)
		}
		return nil
	})
}

// Parents without a Go type roll by surge, keep all that serves beside a revision that does not start, and go back.
func TestYachts(t *testing.T) {
	y := newYachts(t)
	mgr := y.manager()
	must(t, y.controller().Setup(t.Context(), mgr))
	y.run(mgr.Start)
	o := y.yacht()
	o.Object["spec"] = map[string]any{"crew": int64(2), "surge": int64(1), "image": "app:1"}
	y.create(o)
	first := y.are("web-0=app:1 web-1=app:1")
	y.says("OnLatestRevision", "web-")

	// Nothing is taken away for a revision that does not start, and what is lost comes back as it was.
	y.edit(`{"spec":{"image":"app:broken"}}`)
	y.are("web-0=app:1 web-0=app:broken- web-1=app:1")
	y.says("RolloutWaiting", "0 of 2 children updated; waiting for web-0-")
	lost := &corev1.PodList{}
	must(t, y.List(t.Context(), lost, client.InNamespace(y.namespace)))
	for i := range lost.Items {
		if pod := &lost.Items[i]; pod.Spec.Hostname == "web-1" {
			must(t, y.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		}
	}
	y.eventually("another pod is at web-1", func() error {
		pods := &corev1.PodList{}
		err := y.List(t.Context(), pods, client.InNamespace(y.namespace))
		if err != nil || len(pods.Items) != 3 {
			return errors.Join(err, fmt.Errorf("there are %d", len(pods.Items)))
		}
		for _, pod := range pods.Items {
			if slices.ContainsFunc(lost.Items, func(was corev1.Pod) bool { return was.Spec.Hostname == "web-1" && was.UID == pod.UID }) {
				return errors.New("it is there still")
			}
		}
		return nil
	})
	y.are("web-0=app:1 web-0=app:broken- web-1=app:1")

	// Another edit takes the place of the half-way child.
	y.edit(`{"spec":{"image":"app:2"}}`)
	y.are("web-0=app:2 web-1=app:2")
	y.edit(`{"spec":{"image":"app:broken"}}`)
	y.are("web-0=app:2 web-0=app:broken- web-1=app:2")
	before := y.are("web-0=app:2 web-0=app:broken- web-1=app:2")

	// An undo in the middle of a surge restarts nothing.
	if out := y.cli("undo", "yacht/web", "--to-revision", "3"); out == "" {
		t.Error("cairn undo says nothing")
	}
	after := y.are("web-0=app:2 web-1=app:2")
	for _, uid := range after {
		if !slices.Contains(before, uid) {
			t.Errorf("of %v, %s was restarted", after, uid)
		}
	}
	y.cli("undo", "yacht/web", "--to-revision", "1")
	if again := y.are("web-0=app:1 web-1=app:1"); slices.Equal(first, again) {
		t.Error("the first pods are there still")
	}
	if out := y.cli("status", "yacht/web"); !strings.Contains(out, "2/2 pods updated") {
		t.Errorf("cairn status:\n%s", out)
	}

	// Nonsense is refused, and says so; what is there stays.
	y.edit(`{"spec":{"surge":-1}}`)
	y.says("InvalidStrategy", "MaxSurge -1, which is less than 0")
	y.are("web-0=app:1 web-1=app:1")
	must(t, y.Delete(t.Context(), y.yacht()))
	y.are("")
	y.eventually("the Yacht is deleted", func() error {
		if err := y.Get(t.Context(), client.ObjectKeyFromObject(y.yacht()), y.yacht()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
