package parents

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a DaemonSet is. Where pods belong, what is available and what a template means with
// its defaults is asked of upstream's code, never of cairn's.

// DaemonSet describes apps/v1 DaemonSets.
func DaemonSet() check.Kind {
	return check.Kind{
		Kind:  kinds.DaemonSet,
		Names: namesByHash,
		Labelled: func(child client.Object) bool {
			return child.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] != ""
		},
		Number: numberOf, Snapshot: snapshotOf, Named: daemonRevisionName,
		Target: func(parent client.Object) string { return defaulted(as[appsv1.DaemonSet](parent).Spec.Template) },
		Strays: func(child, revision client.Object) string {
			template, err := TemplateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "" // nobody knows what it asks for
			}
			return podStrays(as[corev1.Pod](child), template)
		},
		StraysNow: func(child, parent client.Object) string {
			return podStrays(as[corev1.Pod](child), as[appsv1.DaemonSet](parent).Spec.Template)
		},
		Units: daemonUnits,
		Place: func(child client.Object) string {
			node, _ := daemonutil.GetTargetNodeName(as[corev1.Pod](child)) // none is a place as well
			return node
		},
		Ended: podEnded,
		Available: func(child, parent client.Object, at time.Time) bool {
			return podServes(child, as[appsv1.DaemonSet](parent).Spec.MinReadySeconds, at)
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
		Served:          daemonServed,
		StatusRevisions: func(client.Object) []string { return nil },
		Limit: func(parent client.Object) int {
			return limitOr10(as[appsv1.DaemonSet](parent).Spec.RevisionHistoryLimit)
		},
	}
}

func daemonRevisionName(parent, revision client.Object, collisionCount *int32) string {
	template, err := TemplateIn(as[appsv1.ControllerRevision](revision))
	if err != nil {
		return "" // nobody gave it that name
	}
	return parent.GetName() + "-" + controller.ComputeHash(&template, collisionCount)
}

// podStrays compares a pod with a template. The controller replaces the required node affinity.
func podStrays(pod *corev1.Pod, template corev1.PodTemplateSpec) string {
	want := content.Tree(template.DeepCopy())
	if node, _ := content.At(want, []string{"spec", "affinity", "nodeAffinity"}).(map[string]any); node != nil {
		delete(node, "requiredDuringSchedulingIgnoredDuringExecution")
	}
	return strays(pod, want)
}

func daemonUnits(s *check.State, parent client.Object) []check.Unit {
	ds := as[appsv1.DaemonSet](parent)
	there := map[string][]client.Object{}
	// A pod that matches no longer is let go of. Whoever relabelled it wants another one in its place.
	selector := s.Selector(ds, ds.Spec.Selector)
	for _, o := range s.Owned(kinds.Pod.GVR, ds.UID) {
		if !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		if name, err := daemonutil.GetTargetNodeName(as[corev1.Pod](o)); err == nil {
			there[name] = append(there[name], o)
		}
	}
	var out []check.Unit
	for _, o := range s.List(kinds.Node.GVR, "") {
		wanted, mayStay := s.Placed(ds, o, func() (bool, bool) {
			return daemon.NodeShouldRunDaemonPod(klog.Logger{}, as[corev1.Node](o), ds)
		})
		out = append(out, check.Unit{Name: o.GetName(), Wanted: wanted, MayStay: mayStay, Children: there[o.GetName()]})
	}
	return out
}

func daemonBudget(parent client.Object, wanted int) check.Budget {
	ds := as[appsv1.DaemonSet](parent)
	update := ds.Spec.UpdateStrategy.RollingUpdate
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || update == nil {
		return check.Budget{}
	}
	b := check.Budget{MaxUnavailable: share(update.MaxUnavailable, wanted), MaxSurge: share(update.MaxSurge, wanted), Beside: true}
	if b.MaxUnavailable == 0 && b.MaxSurge == 0 {
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
