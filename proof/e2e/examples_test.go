package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/examples/bluegreen"
	"github.com/cairn-dev/cairn/examples/configmappropagation"
	"github.com/cairn-dev/cairn/examples/indexedjob"
	"github.com/cairn-dev/cairn/examples/serviceperpod"
	"github.com/cairn-dev/cairn/examples/teamlabels"
)

// This file runs the examples, and sees that each does what examples/README.md says of it.

func TestExampleBlueGreen(t *testing.T) {
	x := newExample(t, "bluegreen", bluegreen.Hook())
	x.host("composite", "replicaset")
	x.must(x.kubectl("apply", "-f", manifest("bluegreen", "bluegreen.yaml")))
	x.serves("blue", "nginx:1.28")
	before := x.service("shop")

	x.template("shop", "broken:1")
	x.eventually("wait for the pods of a template that does not work", func() error {
		if pods := x.colour("green"); len(pods) != 3 {
			return errorf("%d pods", len(pods))
		}
		return nil
	})
	x.live("blue", "False", "waiting for 3 pods of green")

	x.template("shop", "nginx:1.29")
	x.serves("green", "nginx:1.29")
	if after := x.service("shop"); after.UID != before.UID || after.Spec.ClusterIP != before.Spec.ClusterIP {
		t.Errorf("the Service was replaced: %v, then %v", before.ObjectMeta, after.ObjectMeta)
	}
	if rows := x.history("bluegreen/shop"); len(rows) != 3 || !rows[2].Current || rows[2].Children != 1 {
		t.Errorf("history %+v", rows)
	}

	const children = "services,replicasets.apps"
	idle := x.content(children)
	x.looks("bluegreen", "shop")
	if after := x.content(children); after != idle {
		t.Errorf("children were written although nothing had changed:\n%safter\n%s", idle, after)
	}

	x.cli("undo", "bluegreen/shop", "--to-revision", "1")
	x.serves("blue", "nginx:1.28")
	if rows := x.history("bluegreen/shop"); len(rows) != 3 || rows[2].Number != 4 || !rows[2].Current {
		t.Errorf("history %+v", rows)
	}
}

// template gives a BlueGreen another image.
func (x *example) template(name, image string) {
	x.Helper()
	patch := `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "` + image + `"}]`
	x.must(x.kubectl("patch", "bluegreen", name, "--type=json", "-p", patch))
}

// live waits until the status of the BlueGreen says so, and looks where its Service points to.
func (x *example) live(color, status, message string) {
	x.Helper()
	x.eventually("wait for the status", func() error {
		var bg struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration int64
				Live               string
				Conditions         []struct{ Type, Status, Message string }
			}
		}
		if err := x.parent("BlueGreen", "shop", &bg); err != nil {
			return err
		}
		said := bg.Status
		for _, c := range said.Conditions {
			if c.Type == "Live" && said.ObservedGeneration == bg.Metadata.Generation && said.Live == color && c.Status == status && c.Message == message {
				return nil
			}
		}
		return errorf("status %+v, want %s, %s, %q", said, color, status, message)
	})
	if got := x.service("shop").Spec.Selector; got["color"] != color || got["app"] != "shop" {
		x.Errorf("the Service selects %v, want %s", got, color)
	}
}

// serves waits until a colour serves an image, with all pods, and the other one has no pods.
func (x *example) serves(color, image string) {
	x.Helper()
	other := map[string]string{"blue": "green", "green": "blue"}[color]
	x.eventually("wait until "+color+" serves "+image, func() error {
		pods := x.colour(color)
		for _, pod := range pods {
			if !serving(&pod) || pod.Spec.Containers[0].Image != image {
				return errorf("pod %s runs %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		to := x.service("shop").Spec.Selector["color"]
		if left := x.colour(other); len(pods) != 3 || len(left) > 0 || to != color {
			return errorf("%d pods of %s, %d of %s; the Service selects %s", len(pods), color, len(left), other, to)
		}
		return nil
	})
	x.live(color, "True", "every request goes to "+color)
}

func (x *example) colour(color string) map[string]corev1.Pod {
	x.Helper()
	return x.podsOf(x.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"color": color}})
}

// service reads a Service. One that is not there has no UID.
func (e *env) service(name string) *corev1.Service {
	e.Helper()
	var s corev1.Service
	err := e.Get(e.Context(), types.NamespacedName{Namespace: e.namespace, Name: name}, &s)
	if err != nil && !apierrors.IsNotFound(err) {
		e.Fatal(err)
	}
	return &s
}

func TestExampleIndexedJob(t *testing.T) {
	x := newExample(t, "indexedjob", indexedjob.Hook())
	x.host("composite")
	x.must(x.kubectl("apply", "-f", manifest("indexedjob", "indexedjob.yaml")))
	x.done("sum", "[0 1 2 3 4]", "True")

	x.must(x.kubectl("patch", "indexedjob", "sum", "--type=merge", "-p", `{"spec": {"completions": 0}}`))
	x.done("sum", "[]", "True")
	// The same again with pods that end when they are told to.
	x.must(x.kubectl("patch", "indexedjob", "sum", "--type=merge", "-p", `{"spec": {"completions": 4, "template": {"metadata": {"annotations": null}}}}`))
	first := x.indexes("sum-0 sum-1")
	if env := first["sum-1"].Spec.Containers[0].Env; len(env) != 1 || env[0].Value != "1" {
		t.Errorf("index 1 has the environment %v", env)
	}
	x.must(x.kubectl("delete", "pod", "sum-1"))
	x.eventually("wait until a lost index is made again", func() error {
		if again := x.indexes("sum-0 sum-1"); again["sum-1"].UID == first["sum-1"].UID {
			return errorf("it is the same pod")
		}
		return nil
	})
	x.must(x.kubectl("annotate", "pod", "sum-0", "sandbox.cairn.dev/phase=Succeeded"))
	x.done("sum", "[0]", "False")
	x.indexes("sum-0 sum-1 sum-2")
	x.must(x.kubectl("delete", "pod", "sum-0"))

	failed := x.indexes("sum-1 sum-2")["sum-2"]
	x.must(x.kubectl("annotate", "pod", "sum-2", "sandbox.cairn.dev/phase=Failed"))
	x.eventually("wait until a failed index is made again", func() error {
		if again := x.indexes("sum-1 sum-2"); again["sum-2"].UID == failed.UID {
			return errorf("it is the same pod")
		}
		return nil
	})
	x.must(x.kubectl("annotate", "pod", "sum-1", "sum-2", "sandbox.cairn.dev/phase=Succeeded"))
	x.done("sum", "[0 1 2]", "False")
	x.indexes("sum-1 sum-2 sum-3")
	x.must(x.kubectl("annotate", "pod", "sum-3", "sandbox.cairn.dev/phase=Succeeded"))
	x.done("sum", "[0 1 2 3]", "True")
	x.indexes("sum-1 sum-2 sum-3") // index 0 was done when its pod was deleted
}

// indexes waits until there are just these pods.
func (x *example) indexes(names string) (pods map[string]corev1.Pod) {
	x.Helper()
	x.eventually("wait for the pods", func() error {
		pods = x.podsOf(x.namespace, &metav1.LabelSelector{})
		if got := strings.Join(slices.Sorted(maps.Keys(pods)), " "); got != names {
			return errorf("pods %s, want %s", got, names)
		}
		return nil
	})
	return pods
}

// done waits until the job says that these indexes are done, whether that is all of them, and that it has seen its
// spec.
func (x *example) done(name, indexes, complete string) {
	x.Helper()
	x.eventually("wait until indexes "+indexes+" are done", func() error {
		var job struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration int64
				Done               []int
				Conditions         []struct{ Type, Status string }
			}
		}
		if err := x.parent("IndexedJob", name, &job); err != nil {
			return err
		}
		s := job.Status
		if fmt.Sprint(s.Done) != indexes || len(s.Conditions) != 1 || s.Conditions[0].Status != complete || s.ObservedGeneration != job.Metadata.Generation {
			return errorf("status %+v of generation %d", s, job.Metadata.Generation)
		}
		return nil
	})
}

func TestExampleServicePerPod(t *testing.T) {
	x := newExample(t, "serviceperpod", serviceperpod.Hook())
	x.host("decorator", "statefulset")
	x.must(x.kubectl("apply", "-f", manifest("serviceperpod", "statefulset.yaml")))
	x.services("store-0 store-1 store-2")
	x.eventually("wait until a Service reaches its pod, and no other", func() error {
		var routes discoveryv1.EndpointSliceList
		if err := x.List(t.Context(), &routes, client.InNamespace(x.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "store-1"}); err != nil {
			return err
		}
		if len(routes.Items) != 1 || len(routes.Items[0].Endpoints) != 1 || routes.Items[0].Endpoints[0].TargetRef.Name != "store-1" {
			return errorf("endpoints %+v", routes.Items)
		}
		return nil
	})
	port := x.service("store-0").Spec.Ports
	if len(port) != 1 || port[0].Port != 80 || port[0].TargetPort.IntValue() != 8080 {
		t.Errorf("ports %v", port)
	}
	x.must(x.kubectl("scale", "statefulset", "store", "--replicas=4"))
	kept := x.services("store-0 store-1 store-2 store-3")
	x.must(x.kubectl("scale", "statefulset", "store", "--replicas=2"))
	if left := x.services("store-0 store-1"); left["store-0"].UID != kept["store-0"].UID {
		t.Error("a Service that was not to change was replaced")
	}
	x.must(x.kubectl("annotate", "statefulset", "store", "service-per-pod-ports=81", "--overwrite"))
	x.eventually("wait for the other port", func() error {
		if ports := x.service("store-1").Spec.Ports; len(ports) != 1 || ports[0].Port != 81 || ports[0].TargetPort.IntValue() != 81 {
			return errorf("ports %v", ports)
		}
		return nil
	})

	// Out, without the StatefulSet noticing; in again; and out for good.
	x.eventually("wait until the pods that are not asked for are gone", func() error {
		if pods := x.podsOf(x.namespace, &metav1.LabelSelector{}); len(pods) != 2 {
			return errorf("pods %v", pods)
		}
		return nil
	})
	pods := x.podsOf(x.namespace, &metav1.LabelSelector{})
	x.must(x.kubectl("annotate", "statefulset", "store", "service-per-pod-ports-"))
	x.services("")
	x.eventually("wait until the finalizer is gone", func() error {
		if set := x.store(); set == nil || len(set.Finalizers) > 0 {
			return errorf("StatefulSet %+v", set)
		}
		return nil
	})
	x.sameVersions("opting out", pods, x.podsOf(x.namespace, &metav1.LabelSelector{}))
	x.must(x.kubectl("annotate", "statefulset", "store", "service-per-pod-ports=82"))
	x.services("store-0 store-1")
	// A Service that takes its time to go, which the StatefulSet has to wait for.
	x.must(x.kubectl("patch", "service", "store-1", "--type=merge", "-p", `{"metadata": {"finalizers": ["examples.cairn.dev/kept"]}}`))
	x.must(x.kubectl("delete", "statefulset", "store", "--wait=false"))
	x.services("store-1")
	if set := x.store(); set == nil || len(set.Finalizers) != 1 {
		t.Errorf("the StatefulSet did not wait: %+v", set)
	}
	x.must(x.kubectl("patch", "service", "store-1", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`))
	x.services("")
	x.eventually("wait until the StatefulSet is gone", func() error {
		if set := x.store(); set != nil {
			return errorf("it is still there: %+v", set.ObjectMeta)
		}
		return nil
	})
}

func (x *example) store() *appsv1.StatefulSet {
	x.Helper()
	var set appsv1.StatefulSet
	err := x.Get(x.Context(), types.NamespacedName{Namespace: x.namespace, Name: "store"}, &set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		x.Fatal(err)
	}
	return &set
}

// services waits until there are just these Services.
func (x *example) services(names string) map[string]corev1.Service {
	x.Helper()
	out := map[string]corev1.Service{}
	x.eventually("wait for the Services", func() error {
		var list corev1.ServiceList
		if err := x.List(x.Context(), &list, client.InNamespace(x.namespace)); err != nil {
			return err
		}
		clear(out)
		for _, s := range list.Items {
			out[s.Name] = s
		}
		if got := strings.Join(slices.Sorted(maps.Keys(out)), " "); got != names {
			return errorf("Services %q, want %q", got, names)
		}
		return nil
	})
	return out
}

func TestExampleConfigMapPropagation(t *testing.T) {
	x := newExample(t, "configmappropagation", configmappropagation.Hook(), "configmaps", "namespaces")
	x.host("composite")
	source := x.namespace
	other := func(labels ...string) string {
		e := newLonelyEnv(t) // one namespace more
		for _, label := range labels {
			x.must(x.kubectl("label", "namespace", e.namespace, label))
		}
		return e.namespace
	}
	label := "propagate=" + source
	first, second, third := other(label), other(label), other()
	x.must(x.kubectl("create", "configmap", "motd", "--from-literal=motd=Mind the gap."))
	x.must(x.kubectl("label", "namespace", source, label)) // its own copy would be itself
	object := x.read(manifest("configmappropagation", "configmappropagation.yaml"))[1]
	object.SetName(source)
	object.Object["spec"] = map[string]any{
		"source":            map[string]any{"namespace": source, "name": "motd"},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"propagate": source}},
	}
	x.create(&object)
	t.Cleanup(func() { _ = x.Delete(context.WithoutCancel(t.Context()), &object) })
	x.copies(map[string]string{first: "Mind the gap.", second: "Mind the gap.", third: ""})

	x.motd(source, "Keep left.")
	x.copies(map[string]string{first: "Keep left.", second: "Keep left."})
	x.must(x.kubectl("label", "namespace", third, label))
	fourth := other(label)
	x.copies(map[string]string{third: "Keep left.", fourth: "Keep left."})
	x.motd(first, "Keep right.") // somebody's edit of a copy
	x.copies(map[string]string{first: "Keep left."})
	x.must(x.kubectl("label", "namespace", second, "propagate-"))
	x.copies(map[string]string{first: "Keep left.", second: "", third: "Keep left.", fourth: "Keep left."})

	x.must(x.kubectl("delete", "configmap", "motd"))
	x.eventually("wait until the loss of the source is seen", func() error {
		var p struct {
			Status struct {
				Copies     int
				Conditions []struct{ Status string }
			}
		}
		if err := x.parent("ConfigMapPropagation", source, &p); err != nil {
			return err
		}
		if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Status != "False" || p.Status.Copies != 3 {
			return errorf("status %+v", p.Status)
		}
		return nil
	})
	x.copies(map[string]string{first: "Keep left.", third: "Keep left.", fourth: "Keep left."})
	x.must(x.kubectl("create", "configmap", "motd", "--from-literal=motd=Doors close."))
	x.copies(map[string]string{first: "Doors close.", third: "Doors close.", fourth: "Doors close."})
	x.must(x.kubectl("delete", "configmappropagation", source))
	x.copies(map[string]string{first: "", third: "", fourth: "", source: "Doors close."})
}

// motd changes a config map.
func (x *example) motd(namespace, text string) {
	x.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "motd"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data": {"motd": "`+text+`"}}`))
	must(x, x.Patch(x.Context(), o, patch))
}

// copies waits until the config maps of all these namespaces say this; nothing means that there is none.
func (x *example) copies(want map[string]string) {
	x.Helper()
	x.eventually("wait for the copies", func() error {
		for namespace, text := range want {
			var o corev1.ConfigMap
			err := x.Get(x.Context(), types.NamespacedName{Namespace: namespace, Name: "motd"}, &o)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if o.Data["motd"] != text || apierrors.IsNotFound(err) != (text == "") {
				return errorf("namespace %s has %q (%w), want %q", namespace, o.Data["motd"], err, text)
			}
		}
		return nil
	})
}

func TestExampleTeamLabels(t *testing.T) {
	x := newExample(t, "teamlabels", teamlabels.Hook(), "namespaces")
	x.host("decorator")
	x.must(x.kubectl("label", "namespace", x.namespace, "team=cats", "cost-centre=7"))
	x.must(x.kubectl("apply", "-f", "../../examples/deployment.yaml"))
	x.labels("cats", "7")
	before := x.deployment().Generation
	x.must(x.kubectl("label", "namespace", x.namespace, "team=dogs", "--overwrite"))
	x.labels("dogs", "7")
	x.must(x.kubectl("label", "namespace", x.namespace, "cost-centre-"))
	x.labels("dogs", "")
	x.must(x.kubectl("label", "deployment", "api", "team=mice", "--overwrite"))
	x.labels("dogs", "")
	if after := x.deployment().Generation; after != before {
		t.Errorf("the spec was written: generation %d, then %d", before, after)
	}
}

func (x *example) deployment() *appsv1.Deployment {
	x.Helper()
	var d appsv1.Deployment
	must(x, x.Get(x.Context(), types.NamespacedName{Namespace: x.namespace, Name: "api"}, &d))
	return &d
}

// labels waits until the Deployment has these; nothing means that the label is not there.
func (x *example) labels(team, centre string) {
	x.Helper()
	x.eventually("wait for the labels", func() error {
		got := x.deployment().Labels
		if _, has := got["cost-centre"]; got["team"] != team || got["cost-centre"] != centre || has != (centre != "") {
			return errorf("labels %v, want %q and %q", got, team, centre)
		}
		return nil
	})
}
