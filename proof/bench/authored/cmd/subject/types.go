package main

// This file is a kind of parents as somebody would write it who wants what a StatefulSet has.

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +groupName=bench.cairn.dev
// +versionName=v1
// That is for controller-gen, of a package called main.

//go:generate controller-gen object crd paths=. output:crd:dir=../..

// addToScheme adds the types to a scheme.
func addToScheme(scheme *runtime.Scheme) {
	version := schema.GroupVersion{Group: "bench.cairn.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Fleet{}, &FleetList{})
	metav1.AddToGroupVersion(scheme, version)
}

// Fleet is a number of pods.
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Fleet struct {
	metav1.TypeMeta   `json:",inline"` //nolint:revive // encoding/json ignores it, controller-gen does not
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FleetSpec   `json:"spec,omitempty"`
	Status FleetStatus `json:"status,omitempty"`
}

// FleetSpec is what a Fleet asks for.
// +kubebuilder:object:generate=true
type FleetSpec struct {
	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas"`
	// Selector is a label selector as a StatefulSet has one.
	Selector metav1.LabelSelector `json:"selector"`
	// Template is that of the pods. It is what revisions hold.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`
}

// FleetStatus is what there is.
// +kubebuilder:object:generate=true
type FleetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	AvailableReplicas  int32              `json:"availableReplicas"`
	UpdatedReplicas    int32              `json:"updatedReplicas"`
	UpdateRevision     string             `json:"updateRevision,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// FleetList is a list of Fleets.
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"` //nolint:revive // the same
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Fleet `json:"items"`
}
