package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// This file holds the DecoratorController: objects of any kind, and what a webhook attaches to them.

// DecoratorController adds labels, annotations and attached objects to objects that somebody else owns, as a webhook
// answers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=decoratorcontrollers,scope=Cluster,shortName=dec;decorators
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DecoratorController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DecoratorControllerSpec `json:"spec"`
	Status ControllerStatus        `json:"status,omitempty"`
}

// DecoratorControllerList is a list of DecoratorControllers.
//
// +kubebuilder:object:root=true
type DecoratorControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DecoratorController `json:"items"`
}

// DecoratorControllerSpec says which objects, which attachments and which hooks.
type DecoratorControllerSpec struct {
	// Resources are the objects to decorate.
	// +kubebuilder:validation:MaxItems=500
	Resources []DecoratorResource `json:"resources"`
	// Attachments are the resources that an object may have attachments of. No others are made, listed or sent to a hook.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	Attachments []Attachment `json:"attachments,omitempty"`
	// Hooks are the webhooks to ask. Without a sync hook nothing is done.
	// +optional
	Hooks *DecoratorControllerHooks `json:"hooks,omitempty"`
	// ResyncPeriodSeconds is after how many seconds each object is looked at again even if nothing has happened, 1 at
	// least. When it is absent only events wake an object.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
	// EndpointConfigs say how to reach the hosts of the webhooks. The first entry for a webhook's host counts, and only if
	// the webhook says nothing of the kind itself.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
}

// DecoratorResource selects objects to decorate. Both selectors must match; one that is absent matches everything.
type DecoratorResource struct {
	ResourceRule `json:",inline"`

	// LabelSelector narrows the objects by their labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// AnnotationSelector narrows the objects by their annotations.
	// +optional
	AnnotationSelector *AnnotationSelector `json:"annotationSelector,omitempty"`
	// IgnoreStatusChanges lets an object sleep through updates that change neither its generation nor its labels, its
	// annotations or its deletion timestamp.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// AnnotationSelector is a label selector over annotations.
type AnnotationSelector struct {
	// MatchAnnotations are annotations that an object must have, with these values.
	// +optional
	MatchAnnotations map[string]string `json:"matchAnnotations,omitempty"`
	// MatchExpressions are requirements that must all hold.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// Attachment is a resource that an object may have attachments of.
type Attachment struct {
	ResourceRule `json:",inline"`

	// UpdateStrategy says how an attachment becomes what the hook wants. When it is absent, attachments that exist are
	// left as they are (OnDelete).
	// +optional
	UpdateStrategy *AttachmentUpdateStrategy `json:"updateStrategy,omitempty"`
}

// AttachmentUpdateStrategy says how an attachment becomes what the hook wants. Attachments have no revisions and are
// not rolled.
type AttachmentUpdateStrategy struct {
	// Method says what is done to an attachment that differs from what the hook wants.
	// +optional
	// +kubebuilder:default=OnDelete
	Method ChildUpdateMethod `json:"method,omitempty"`
}

// DecoratorControllerHooks are the webhooks of a DecoratorController. A hook that is absent is not asked.
type DecoratorControllerHooks struct {
	// Customize is asked which other objects the sync hook needs to see.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
	// Sync is asked what labels, annotations and attachments an object is to have.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// Finalize is asked instead of sync once an object is being deleted, or is selected no longer. As long as it is set,
	// objects have a finalizer.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
}
