// Package v1 holds the types of Fleets.
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// AddToScheme adds the types to a scheme.
var AddToScheme = (&scheme.Builder{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}).
	Register(&Fleet{}, &FleetList{}).AddToScheme

// Fleet is a number of pods behind one Service.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FleetSpec   `json:"spec,omitempty"`
	Status            FleetStatus `json:"status,omitempty"`
}

// FleetSpec is what a Fleet asks for.
type FleetSpec struct {
	// Replicas is how many pods there are.
	// +kubebuilder:default=1
	Replicas int32 `json:"replicas"`
	// MaxUnavailable is how many may be unavailable during a rollout.
	// +kubebuilder:default=1
	MaxUnavailable int32 `json:"maxUnavailable"`
	// Port is that of the Service.
	// +kubebuilder:default=80
	Port int32 `json:"port"`
	// Template is that of the pods. It is what revisions hold.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template corev1.PodTemplateSpec `json:"template"`
}

// FleetStatus is what there is.
type FleetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	UpdatedReplicas    int32              `json:"updatedReplicas"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// FleetList is a list of Fleets.
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fleet `json:"items"`
}
