package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file holds the HistoryPolicy: which objects are recorded, and what of them.

// HistoryPolicy gives the objects of a resource a revision history without their controller's help: each edit of what
// it covers is recorded in a ControllerRevision of apps/v1 that the object controls.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=historypolicies,scope=Cluster,shortName=hp
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resource.resource`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Parents",type=integer,JSONPath=`.status.parents`
// +kubebuilder:printcolumn:name="Revisions",type=integer,JSONPath=`.status.revisions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HistoryPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HistoryPolicySpec   `json:"spec"`
	Status HistoryPolicyStatus `json:"status,omitempty"`
}

// HistoryPolicyList is a list of HistoryPolicies.
//
// +kubebuilder:object:root=true
type HistoryPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HistoryPolicy `json:"items"`
}

// HistoryPolicySpec says which objects are recorded, and what of them.
//
// +kubebuilder:validation:XValidation:rule="self.resource.apiVersion != 'v1' || self.resource.resource != 'secrets' || (has(self.allowSensitive) && self.allowSensitive)",fieldPath=".allowSensitive",message="secrets would be copied into ControllerRevisions, which more people may read than secrets, and stay there after they were changed; set allowSensitive: true if that is meant"
type HistoryPolicySpec struct {
	// Resource is what is recorded. It cannot be changed: create another policy instead.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed; create another policy"
	Resource RecordedResource `json:"resource"`
	// NamespaceSelector narrows the objects by the labels of their namespaces. All namespaces are recorded when it is
	// absent. Objects that are in no namespace do not look at it.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Selector narrows the objects by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// FieldPaths are the fields that are recorded, and that an undo brings back as a whole: field names joined by dots,
	// without list indices. The default is spec or, for objects that have none, everything beside metadata and status.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.matches('^(apiVersion|kind|metadata|status)($|[.])'))",message="apiVersion, kind, metadata and status are not recorded"
	FieldPaths []string `json:"fieldPaths,omitempty"`
	// IgnorePaths are fields inside of the recorded ones that are neither recorded nor changed by an undo. The default is
	// spec.replicas for resources with a scale subresource; an empty list ignores nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	IgnorePaths *[]string `json:"ignorePaths,omitempty"`
	// RevisionHistoryLimit is how many revisions of an object are kept beside the one that it is now.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// RevisionHistorySizeLimit bounds what the old revisions of an object hold together, in bytes: the oldest go, and one
	// stays whatever its size. What it allows for all objects is what etcd stores and the recorder keeps in memory.
	// +optional
	// +kubebuilder:default="4Mi"
	RevisionHistorySizeLimit *resource.Quantity `json:"revisionHistorySizeLimit,omitempty"`
	// RevisionNamespace is where the revisions of objects are that are in no namespace. Those of others are beside them.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RevisionNamespace string `json:"revisionNamespace,omitempty"`
	// AllowSensitive allows to record Secrets, and values that look like some: of environment variables that are called
	// like passwords, and of text fields that are. Whoever may read ControllerRevisions can read them then, in versions
	// that were replaced, too. Without it Secrets are refused, and such values are left out: an undo does not change them.
	// +optional
	AllowSensitive bool `json:"allowSensitive,omitempty"`
	// WhenDeleted says what becomes of the revisions when the policy is deleted: they stay until their objects are
	// deleted, or go.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted DeletionPolicy `json:"whenDeleted,omitempty"`
}

// RecordedResource names a resource as the API server serves it.
type RecordedResource struct {
	// APIVersion is group and version, as in networking.k8s.io/v1; v1 for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// Resource is the plural name, as in ingresses.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`
}

// DeletionPolicy says what becomes of revisions.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// Retain keeps revisions.
	Retain DeletionPolicy = "Retain"
	// Delete deletes them.
	Delete DeletionPolicy = "Delete"
)

// DefaultRevisionHistoryLimit is the limit of a policy that says none.
const DefaultRevisionHistoryLimit = 10

// DefaultRevisionHistorySizeLimit is the size limit of a policy that says none, in bytes.
const DefaultRevisionHistorySizeLimit = 4 << 20

// PolicyLabel is on revisions that a policy has made. Its value is the policy's name or, if that is too long for a
// label, begins with it.
const PolicyLabel = "cairn.dev/historypolicy"

// PolicyUIDAnnotation is on revisions that a policy has made: its UID. Only these are deleted by whenDeleted: Delete,
// because a name is used again, and anybody may set a label.
const PolicyUIDAnnotation = "cairn.dev/historypolicy-uid"

// PolicyFinalizer keeps a policy with whenDeleted: Delete until its revisions are deleted.
const PolicyFinalizer = "cairn.dev/recorded-revisions"

// HistoryPolicyStatus is what the recorder says of a policy.
type HistoryPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready says whether objects are recorded, and if not, why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Parents is how many objects are recorded, and Revisions how many revisions they have.
	// +optional
	Parents int64 `json:"parents"`
	// +optional
	Revisions int64 `json:"revisions"`
	// Skipped is how many objects are selected and could not be recorded, and SkippedExamples are the first of them by
	// name.
	// +optional
	Skipped int64 `json:"skipped"`
	// +optional
	// +kubebuilder:validation:MaxItems=10
	SkippedExamples []SkippedObject `json:"skippedExamples,omitempty"`
}

// SkippedObject is an object that could not be recorded.
type SkippedObject struct {
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Message says why.
	Message string `json:"message"`
}
