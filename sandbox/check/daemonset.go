package check

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file tells the rules what a DaemonSet is. Where pods belong, what is available and what a template means with its
// defaults is asked of upstream's code, never of cairn's.

var (
	daemonSets = appsv1.SchemeGroupVersion.WithResource("daemonsets")
	revisions  = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	nodes      = corev1.SchemeGroupVersion.WithResource("nodes")
)

// DaemonSetResources are the resources that the rules for DaemonSets read.
func DaemonSetResources() []Scope {
	return []Scope{{Resource: daemonSets}, {Resource: pods}, {Resource: revisions}, {Resource: nodes, Cluster: true}}
}

// DaemonSet describes apps/v1 DaemonSets.
func DaemonSet() Kind {
	return Kind{
		Parent:  appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Parents: daemonSets, Children: pods, Revisions: revisions,
		Names: func(child, revision client.Object) bool {
			hash := child.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey]
			return hash != "" && hash == revision.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey]
		},
		Labelled: func(child client.Object) bool {
			return child.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] != ""
		},
		Number: func(o client.Object) int64 { return as[appsv1.ControllerRevision](o).Revision },
		Snapshot: func(revision client.Object) (string, error) {
			template, err := templateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "", err
			}
			return defaulted(template), nil
		},
		Target: func(parent client.Object) string { return defaulted(as[appsv1.DaemonSet](parent).Spec.Template) },
		Strays: func(child, revision client.Object) string {
			template, err := templateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "" // nobody knows what it asks for
			}
			return podStrays(as[corev1.Pod](child), template)
		},
		StraysNow: func(child, parent client.Object) string {
			return podStrays(as[corev1.Pod](child), as[appsv1.DaemonSet](parent).Spec.Template)
		},
		Units: daemonUnits,
		Ended: func(child client.Object) bool {
			phase := as[corev1.Pod](child).Status.Phase
			return phase == corev1.PodFailed || phase == corev1.PodSucceeded
		},
		Available: func(child, parent client.Object, at time.Time) bool {
			pod := as[corev1.Pod](child)
			if at.IsZero() {
				return podutil.IsPodReady(pod)
			}
			return podutil.IsPodAvailable(pod, as[appsv1.DaemonSet](parent).Spec.MinReadySeconds, metav1.NewTime(at))
		},
		Budget:             daemonBudget,
		ObservedGeneration: func(o client.Object) int64 { return as[appsv1.DaemonSet](o).Status.ObservedGeneration },
		Complete: func(parent client.Object) bool {
			ds := as[appsv1.DaemonSet](parent)
			s := ds.Status
			return s.ObservedGeneration == ds.Generation && s.UpdatedNumberScheduled == s.DesiredNumberScheduled &&
				s.NumberAvailable == s.DesiredNumberScheduled
		},
		Implausible:     daemonImplausible,
		Miscounted:      daemonMiscounted,
		StatusRevisions: func(client.Object) []string { return nil },
		Limit: func(parent client.Object) int {
			if limit := as[appsv1.DaemonSet](parent).Spec.RevisionHistoryLimit; limit != nil {
				return int(*limit)
			}
			return 10
		},
	}
}

// as returns an object as its type. A resource has objects of one type only, so that anything else is a wrong history.
func as[T any](o client.Object) *T {
	out, ok := any(o).(*T)
	if !ok {
		panic(fmt.Sprintf("check: %s/%s is a %T", o.GetNamespace(), o.GetName(), o))
	}
	return out
}

// templateIn returns the template that a revision holds.
func templateIn(r *appsv1.ControllerRevision) (corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return corev1.PodTemplateSpec{}, fmt.Errorf("revision %s: %w", r.Name, err)
	}
	return data.Spec.Template, nil
}

// defaulted is a template as the API server would store it in a DaemonSet.
func defaulted(template corev1.PodTemplateSpec) string {
	ds := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: *template.DeepCopy()}}
	appsdefaults.SetObjectDefaults_DaemonSet(ds)
	return canonical(&ds.Spec.Template)
}

// podStrays compares a pod with a template. The controller replaces the required node affinity, and defaulting mirrors
// the deprecated name of the service account; the rest must be there as asked.
func podStrays(pod *corev1.Pod, template corev1.PodTemplateSpec) string {
	want := tree(template.DeepCopy())
	spec, _ := want["spec"].(map[string]any)
	if affinity, _ := spec["affinity"].(map[string]any); affinity != nil {
		if node, _ := affinity["nodeAffinity"].(map[string]any); node != nil {
			delete(node, "requiredDuringSchedulingIgnoredDuringExecution")
		}
	}
	delete(spec, "serviceAccount")
	have := tree(pod)
	meta, _ := want["metadata"].(map[string]any)
	for _, part := range []string{"labels", "annotations"} {
		if s := missing("metadata."+part, meta[part], at(have, []string{"metadata", part})); s != "" {
			return s
		}
	}
	return missing("spec", want["spec"], have["spec"])
}

func daemonUnits(s *State, parent client.Object) []Unit {
	ds := as[appsv1.DaemonSet](parent)
	there := map[string][]client.Object{}
	for _, o := range s.Owned(pods, ds.UID) {
		if name, err := daemonutil.GetTargetNodeName(as[corev1.Pod](o)); err == nil {
			there[name] = append(there[name], o)
		}
	}
	var out []Unit
	for _, o := range s.List(nodes, "") {
		wanted, mayStay := daemon.NodeShouldRunDaemonPod(klog.Logger{}, as[corev1.Node](o), ds)
		out = append(out, Unit{Name: o.GetName(), Wanted: wanted, MayStay: mayStay, Children: there[o.GetName()]})
	}
	return out
}

func daemonBudget(parent client.Object, wanted int) Budget {
	ds := as[appsv1.DaemonSet](parent)
	update := ds.Spec.UpdateStrategy.RollingUpdate
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || update == nil {
		return Budget{}
	}
	b := Budget{MaxUnavailable: share(update.MaxUnavailable, wanted), MaxSurge: share(update.MaxSurge, wanted)}
	if b == (Budget{}) {
		b.MaxUnavailable = 1
	}
	return b
}

func share(value *intstr.IntOrString, of int) int {
	if value == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, of, true)
	if err != nil {
		return 0
	}
	return n
}
