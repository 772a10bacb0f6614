package parents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file holds what the kinds whose children are pods have in common.

// as returns an object as its type. A resource has objects of one type only, so that anything else is a wrong history.
func as[T any](o client.Object) *T {
	out, ok := any(o).(*T)
	if !ok {
		panic(fmt.Sprintf("check: %s/%s is a %T", o.GetNamespace(), o.GetName(), o))
	}
	return out
}

// TemplateIn returns the template that a revision holds.
func TemplateIn(r *appsv1.ControllerRevision) (corev1.PodTemplateSpec, error) {
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

// namesByHash reports whether a child and a revision have the same hash label. A revision without one is known by its
// name, which its children may have as their label already.
func namesByHash(child, revision client.Object) bool {
	label := appsv1.ControllerRevisionHashLabelKey
	hash := child.GetLabels()[label]
	return hash != "" && hash == cmp.Or(revision.GetLabels()[label], revision.GetName())
}

// numberOf and snapshotOf read the revisions of kinds whose history is that of a pod template.
func numberOf(o client.Object) int64 { return as[appsv1.ControllerRevision](o).Revision }

func snapshotOf(revision client.Object) (string, error) {
	template, err := TemplateIn(as[appsv1.ControllerRevision](revision))
	if err != nil {
		return "", err
	}
	return defaulted(template), nil
}

// defaulted is a template as the API server would store it in a DaemonSet.
func defaulted(template corev1.PodTemplateSpec) string {
	ds := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: *template.DeepCopy()}}
	appsdefaults.SetObjectDefaults_DaemonSet(ds)
	return content.Canonical(&ds.Spec.Template)
}

// strays says in what a pod differs from a template, given as its tree. Defaulting mirrors the deprecated name of the
// service account; the rest must be there as asked.
func strays(pod *corev1.Pod, want map[string]any) string {
	if spec, _ := want["spec"].(map[string]any); spec != nil {
		delete(spec, "serviceAccount")
	}
	have := content.Tree(pod)
	meta, _ := want["metadata"].(map[string]any)
	for _, part := range []string{"labels", "annotations"} {
		if s := content.Missing("metadata."+part, meta[part], content.At(have, []string{"metadata", part})); s != "" {
			return s
		}
	}
	return content.Missing("spec", want["spec"], have["spec"])
}

func podEnded(child client.Object) bool {
	phase := as[corev1.Pod](child).Status.Phase
	return phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// podServes reports whether a pod is available at that time; without a time, whether it is ready.
func podServes(child client.Object, minReadySeconds int32, at time.Time) bool {
	pod := as[corev1.Pod](child)
	if at.IsZero() {
		return podutil.IsPodReady(pod)
	}
	return podutil.IsPodAvailable(pod, minReadySeconds, metav1.NewTime(at))
}

// limitOr10 is a revision history limit, with the default of the API.
func limitOr10(limit *int32) int {
	if limit == nil {
		return 10
	}
	return int(*limit)
}
