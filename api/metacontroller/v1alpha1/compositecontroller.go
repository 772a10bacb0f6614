package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file holds the CompositeController: a parent, and the children that a webhook describes for it.

// CompositeController runs every parent of one resource: a webhook answers which children a parent wants, and the
// controller makes them so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=compositecontrollers,scope=Cluster,shortName=cc;cctl
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parentResource.resource`
// +kubebuilder:printcolumn:name="API version",type=string,JSONPath=`.spec.parentResource.apiVersion`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CompositeController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CompositeControllerSpec `json:"spec"`
	Status ControllerStatus        `json:"status,omitempty"`
}

// CompositeControllerList is a list of CompositeControllers.
//
// +kubebuilder:object:root=true
type CompositeControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CompositeController `json:"items"`
}

// CompositeControllerSpec says which parents, which children and which hooks.
type CompositeControllerSpec struct {
	// ParentResource is the resource whose objects are the parents.
	ParentResource ParentResource `json:"parentResource"`
	// ChildResources are the resources that a parent may have children of. No others are made, listed or sent to a hook.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	ChildResources []ChildResource `json:"childResources,omitempty"`
	// Hooks are the webhooks to ask. Without a sync hook nothing is made.
	// +optional
	Hooks *CompositeControllerHooks `json:"hooks,omitempty"`
	// ResyncPeriodSeconds is after how many seconds each parent is looked at again even if nothing has happened, 1 at
	// least. When it is absent only events wake a parent.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
	// ProgressDeadlineSeconds is after how many seconds without progress the rollout of a parent has failed: see the
	// annotation cairn.dev/progress-deadline of a parent, which comes first. When it is absent, the manager's default
	// counts. Cairn only.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// GenerateSelector makes a parent claim its children by a label with its UID (controller-uid), set on every child, and
	// not by its spec.selector.
	// +optional
	GenerateSelector *bool `json:"generateSelector,omitempty"`
	// EndpointConfigs say how to reach the hosts of the webhooks. The first entry for a webhook's host counts, and only if
	// the webhook says nothing of the kind itself.
	// +optional
	// +kubebuilder:validation:MaxItems=500
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
}

// ResourceRule names a resource as the API server serves it.
type ResourceRule struct {
	// APIVersion is group and version, v1 or apps/v1.
	APIVersion string `json:"apiVersion"`
	// Resource is the plural name in lower case, such as pods.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.contains('/')",message="a subresource, such as pods/exec, is no object that can be a parent, a child or an attachment; name the resource itself"
	Resource string `json:"resource"`
}

// ParentResource says which objects are parents and which part of them is versioned.
type ParentResource struct {
	ResourceRule `json:",inline"`

	// LabelSelector narrows the parents. A parent that stops matching and still has the controller's finalizer is sent to
	// the finalize hook.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// RevisionHistory says what a revision of a parent holds and how many are kept.
	// +optional
	RevisionHistory *RevisionHistory `json:"revisionHistory,omitempty"`
	// IgnoreStatusChanges lets a parent sleep through updates that change neither its generation nor its labels, its
	// annotations or its deletion timestamp.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// RevisionHistory says what a revision of a parent holds and how many are kept.
type RevisionHistory struct {
	// FieldPaths are the fields of a parent that decide what its children look like, as names joined by dots, for instance
	// spec.template. There is no escaping and there are no list indices. A change of anything else is no new revision.
	// +optional
	// +kubebuilder:default={"spec"}
	FieldPaths []string `json:"fieldPaths,omitempty"`
	// Limit is how many revisions that no child belongs to are kept for each parent, so that one can go back to them. 0
	// keeps none, as Metacontroller does. Cairn only.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	Limit *int32 `json:"limit,omitempty"`
	// Namespace is where the revisions of parents live that are in no namespace. Such parents need one as soon as a child
	// resource is rolled; for parents that are in a namespace it means nothing. Cairn only.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// ChildResource is a resource that a parent may have children of.
type ChildResource struct {
	ResourceRule `json:",inline"`

	// UpdateStrategy says how a child becomes what the hook wants. When it is absent, children that exist are left as they
	// are (OnDelete).
	// +optional
	UpdateStrategy *ChildUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ChildUpdateMethod says how children of a resource become what the hook wants.
//
// +kubebuilder:validation:Enum=OnDelete;Recreate;InPlace;RollingRecreate;RollingInPlace
type ChildUpdateMethod string

// The update methods.
const (
	// ChildUpdateOnDelete leaves a child as it is until somebody deletes it.
	ChildUpdateOnDelete ChildUpdateMethod = "OnDelete"
	// ChildUpdateRecreate deletes every child that differs, and makes it anew.
	ChildUpdateRecreate ChildUpdateMethod = "Recreate"
	// ChildUpdateInPlace changes every child that differs.
	ChildUpdateInPlace ChildUpdateMethod = "InPlace"
	// ChildUpdateRollingRecreate is Recreate within a budget, with a revision of its own for each child.
	ChildUpdateRollingRecreate ChildUpdateMethod = "RollingRecreate"
	// ChildUpdateRollingInPlace is InPlace within a budget, with a revision of its own for each child.
	ChildUpdateRollingInPlace ChildUpdateMethod = "RollingInPlace"
)

// ChildUpdateStrategy says how a child becomes what the hook wants, and within which limits. With none of the limits,
// all rolling resources of a parent are rolled as one sequence, one child at a time, in the order of the hook's answer,
// as Metacontroller does. With any of them the children of this resource have a budget of their own.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxUnavailable) || has(self.partition) || has(self.minReadySeconds) || has(self.paused)) || (has(self.method) && self.method.startsWith('Rolling'))",message="maxUnavailable, partition, minReadySeconds and paused are limits of a rollout; set method to RollingRecreate or RollingInPlace, or leave them out"
type ChildUpdateStrategy struct {
	// Method says what is done to a child that differs from what the hook wants.
	// +optional
	// +kubebuilder:default=OnDelete
	Method ChildUpdateMethod `json:"method,omitempty"`
	// StatusChecks say when a child counts as healthy. A rollout waits for it.
	// +optional
	StatusChecks ChildUpdateStatusChecks `json:"statusChecks,omitempty"`
	// MaxUnavailable is how many children of this resource may be unavailable at once while they are rolled, as a number
	// or as a percentage of those that the hook wants, rounded down to 1 at least. When it is absent it is 1. Cairn only.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="self > 0 || self.endsWith('%')",message="maxUnavailable is a number from 1 up, or a percentage from 1% to 100%; to stop a rollout set paused"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Partition is how many children of this resource, the last ones in the order of the hook's answer, keep their
	// revision. Cairn only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`
	// MinReadySeconds is for how many seconds a child must have passed its checks before it counts as available. A child
	// that was changed in place starts anew, whether its conditions turned or not. Cairn only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// Paused keeps every child of this resource at its revision. One that is lost comes back as it was. Cairn only.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// ChildUpdateStatusChecks say when a child counts as healthy.
type ChildUpdateStatusChecks struct {
	// Conditions must all hold. Without any, a child is healthy as soon as it exists.
	// +optional
	Conditions []StatusConditionCheck `json:"conditions,omitempty"`
}

// StatusConditionCheck asks for one condition in a child's status.
type StatusConditionCheck struct {
	// Type is the type of the condition, which must be there.
	Type string `json:"type"`
	// Status is what the condition's status must be. When it is absent any will do.
	// +optional
	Status *string `json:"status,omitempty"`
	// Reason is what the condition's reason must be. When it is absent any will do.
	// +optional
	Reason *string `json:"reason,omitempty"`
}

// CompositeControllerHooks are the webhooks of a CompositeController. A hook that is absent is not asked.
type CompositeControllerHooks struct {
	// Customize is asked which other objects the sync hook needs to see.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
	// Sync is asked what the children and the status of a parent are to be.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// Finalize is asked instead of sync once a parent is being deleted. As long as it is set, parents have a finalizer.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
	// PreUpdateChild is kept and not asked, as in Metacontroller.
	// +optional
	PreUpdateChild *Hook `json:"preUpdateChild,omitempty"`
	// PostUpdateChild is kept and not asked, as in Metacontroller.
	// +optional
	PostUpdateChild *Hook `json:"postUpdateChild,omitempty"`
}

// ControllerStatus is what is known of a CompositeController or a DecoratorController. Metacontroller never writes it.
type ControllerStatus struct {
	// ObservedGeneration is the generation of the controller's spec that the conditions are about. Cairn only.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions say whether the controller can be run, and if not, why. Cairn only.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
