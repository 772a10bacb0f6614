package history

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the template generation of DaemonSets. The API server counts the edits of the template, and each pod has
// the count as a label. It identifies the template of a pod also if its revision was deleted, or if admission or a user
// has changed its hash label.

// TemplateGenerationLabel is the label of a pod for the template generation of its DaemonSet.
const TemplateGenerationLabel = "pod-template-generation"

// TemplateGeneration returns the template generation of a DaemonSet as a label value, empty if the DaemonSet has none.
func TemplateGeneration(ds client.Object) string {
	generation, err := strconv.ParseInt(ds.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(generation, 10)
}

// SameTemplateGeneration reports whether a pod has the label of the template generation that ds has now.
func SameTemplateGeneration(ds, pod client.Object) bool {
	generation := pod.GetLabels()[TemplateGenerationLabel]
	return generation != "" && generation == TemplateGeneration(ds)
}

// HasTemplateGeneration reports whether a pod has a template generation of ds. A pod that may be older than ds has the
// label of an earlier DaemonSet, which was deleted without its pods. The count began again. A pod with another
// generateName was created by another DaemonSet, and ds has adopted it.
func HasTemplateGeneration(ds, pod client.Object) bool {
	born, made := ds.GetCreationTimestamp(), pod.GetCreationTimestamp()
	return TemplateGeneration(ds) != "" && pod.GetLabels()[TemplateGenerationLabel] != "" && born.Before(&made) &&
		pod.GetGenerateName() == ds.GetName()+"-"
}

// IsOfTemplate reports whether a pod comes from the template that ds has now, by its template generation.
func IsOfTemplate(ds, pod client.Object) bool {
	return HasTemplateGeneration(ds, pod) && SameTemplateGeneration(ds, pod)
}
