package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file has objects of every kind that something is wrong with.

// flaw is something that is wrong with an object.
type flaw struct {
	name   string                        // of the object
	change func(o client.Object)         // done before it is created
	edit   func(*corev1.PodTemplateSpec) // done once it runs
	event  string                        // its reason
	says   string                        // the beginning of the condition that says it, as Type=Status Reason
	words  string                        // some of its message
}

// makers are the kinds.
var makers = map[string]func(e *env, name string) client.Object{
	"DaemonSet":             func(e *env, name string) client.Object { return e.daemonSet(name, "app:1") },
	"StatefulSet":           func(e *env, name string) client.Object { return e.statefulSet(name) },
	"ReplicaSet":            func(e *env, name string) client.Object { return e.replicaSet(name, 2) },
	"ReplicationController": func(e *env, name string) client.Object { return e.replicationController(name, 2) },
}

// faultsOf are what can be wrong with an object of a kind that the API server takes.
func faultsOf(kind string) map[string]flaw {
	refused := "Updated=False RolloutFailing"
	flaws := map[string]flaw{
		"a revision that cannot be read": {
			name: "planted", event: "RevisionUnreadable", says: "HistoryHealthy=False RevisionUnreadable", words: "planted-",
		},
		"a revision over 1 MiB": {
			name: "large", event: "RecordFailed", says: "HistoryHealthy=False SnapshotTooLarge", words: "bytes",
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = []string{strings.Repeat("x", 1<<20)} },
		},
	}
	switch kind {
	case "StatefulSet":
		flaws["a negative history limit"] = flaw{
			name: "hoards", event: "NegativeHistoryLimit", says: "HistoryHealthy=False NegativeHistoryLimit", words: "set 0 or more",
			change: func(o client.Object) { o.(*appsv1.StatefulSet).Spec.RevisionHistoryLimit = new(int32(-1)) },
		}
	case "ReplicaSet", "ReplicationController":
		refused, flaws = "ReplicaFailure=True FailedCreate", map[string]flaw{} // they have none
	}
	maps.Copy(flaws, map[string]flaw{
		"pods that a quota refuses": {
			name: "greedy", event: "FailedCreate", says: refused, words: "exceeded quota: no-gpus",
			change: func(o client.Object) {
				gpu := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
				templateOf(o).Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: gpu, Limits: gpu}
			},
		},
		"pods that an admission policy refuses": {
			name: "banned", event: "FailedCreate", says: refused, words: "not from this registry",
			change: func(o client.Object) { templateOf(o).Spec.Containers[0].Image = "banned/app:1" },
		},
		"pods that cannot be": {
			name: "nobodys", event: "FailedCreate", says: refused, words: `serviceaccount "nobody" not found`,
			change: func(o client.Object) { templateOf(o).Spec.ServiceAccountName = "nobody" },
		},
	})
	return flaws
}

// TestMalformed: what is wrong with an object is said by an event and a condition, and the object of its kind beside it
// goes on.
func TestMalformed(t *testing.T) {
	for kind, newObject := range makers {
		t.Run(kind, func(t *testing.T) {
			e := newEnv(t)
			e.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: sandbox.Kinds(), AskServer: true})
			e.refuses()
			healthy := newObject(e, "healthy")
			e.create(healthy)
			e.up(healthy)
			for what, f := range faultsOf(kind) {
				t.Run(what, func(t *testing.T) {
					e := e.with(t)
					o := newObject(e, f.name)
					if f.change != nil {
						f.change(o)
					}
					e.create(o)
					if f.edit != nil {
						e.up(o)
						e.editTemplate(o, f.edit)
					}
					e.eventually("wait for the condition and the event", func() error { return e.told(o, f) })
					for _, pod := range e.appPods(f.name) {
						if len(pod.Spec.Containers[0].Args) > 0 {
							t.Errorf("pod %s was made from what could not be recorded", pod.Name)
						}
					}
				})
			}
			e.editTemplate(healthy, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:2" })
			switch o := healthy.(type) { // the template is for pods that are made later
			case *appsv1.ReplicaSet:
				e.rescale(o, 3)
				e.replicasReady(o, 3)
			case *corev1.ReplicationController:
				e.rescale(o, 3)
				e.replicasReady(o, 3)
			default:
				e.up(healthy)
			}
		})
	}
}

// TestMalformedIsNotTaken: what the API server refuses never reaches a controller.
func TestMalformedIsNotTaken(t *testing.T) {
	e := newEnv(t)
	set, ds, rs := e.statefulSet("set"), e.daemonSet("ds", "app:1"), e.replicaSet("rs", 1)
	set.Spec.Selector, ds.Spec.Selector, rs.Spec.Selector = &metav1.LabelSelector{}, &metav1.LabelSelector{}, &metav1.LabelSelector{}
	negative := e.daemonSet("negative", "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = new(int32(-1)) })
	for what, o := range map[string]client.Object{
		"an empty selector of a StatefulSet": set, "of a DaemonSet": ds, "of a ReplicaSet": rs, "a negative history limit of a DaemonSet": negative,
	} {
		if err := e.Create(t.Context(), o); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	rc := e.replicationController("rc", 0)
	rc.Spec.Selector = nil
	if e.create(rc); len(rc.Spec.Selector) == 0 {
		t.Error("a ReplicationController without a selector did not get that of its template")
	}
}

// refuses makes the namespace one where some pods are refused: for their image by a policy, for what they ask for by a
// quota. A revision that cannot be read waits there for its parent.
func (e *env) refuses() {
	e.Helper()
	data := []byte(`{"spec":{"template":"no"}}`)
	name, hash := history.StatefulSet().Named(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "planted"}}, data, nil) // or it would not be adopted
	e.create(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name, Labels: map[string]string{
			"app": "planted", "controller.kubernetes.io/hash": hash, appsv1.DefaultDaemonSetUniqueLabelKey: hash,
		}},
		Data: runtime.RawExtension{Raw: data},
	})
	e.create(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "no-gpus"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.example.com/gpu": resource.MustParse("0")}},
	})
	name = "registry-" + e.namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: "object.spec.containers.all(c, !c.image.startsWith('banned/'))", Message: "not from this registry",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	for _, o := range []client.Object{policy, binding} {
		e.create(o)
		e.Cleanup(func() { _ = e.Delete(context.WithoutCancel(e.Context()), o) })
	}
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "probe"}, Spec: appTemplate("", "banned/app:1").Spec}
	e.eventually("wait until the policy holds", func() error {
		if err := e.Create(e.Context(), probe.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "not from this registry") {
			return errorf("a pod is answered with %v", err)
		}
		return nil
	})
}

// told returns an error unless the flaw is said by its condition and by its event.
func (e *env) told(o client.Object, f flaw) error {
	if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	var of struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	for _, c := range of.Status.Conditions {
		if fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason) == f.says && strings.Contains(c.Message, f.words) {
			return e.hasEvent(o, f.event)
		}
	}
	return errorf("conditions %+v", of.Status.Conditions)
}

// hasEvent returns an error unless there is an event of that reason about o.
func (e *env) hasEvent(o client.Object, reason string) error {
	e.Helper()
	var list eventsv1.EventList
	if err := e.List(e.Context(), &list, client.InNamespace(o.GetNamespace())); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Regarding.UID == o.GetUID() && event.Reason == reason {
			return nil
		}
	}
	return errorf("no event %s among %d", reason, len(list.Items))
}

// up waits until an object of any kind has all its pods, of the template that it has now.
func (e *env) up(o client.Object) {
	e.Helper()
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		e.rolledOut(o)
	case *appsv1.StatefulSet:
		e.setRolledOut(o)
	case *appsv1.ReplicaSet:
		e.replicasReady(o, int(*o.Spec.Replicas))
	case *corev1.ReplicationController:
		e.replicasReady(o, int(*o.Spec.Replicas))
	}
}

// editTemplate changes the template of an object of any kind, whatever happened to it meanwhile.
func (e *env) editTemplate(o client.Object, change func(*corev1.PodTemplateSpec)) {
	e.Helper()
	e.eventually("edit "+o.GetName(), func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(templateOf(o))
		return e.Update(e.Context(), o)
	})
}

func templateOf(o client.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	}
	return nil
}
