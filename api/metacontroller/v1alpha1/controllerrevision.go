package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file holds the ControllerRevision: one snapshot of a parent, and the children that belong to it.

// Labels by which the revisions of one parent resource are told apart from those of another whose parents have the same
// selector.
const (
	// RevisionGroupLabel holds the API group of the parent resource, nothing for the core group.
	RevisionGroupLabel = "metacontroller.k8s.io/apiGroup"
	// RevisionResourceLabel holds the plural name of the parent resource.
	RevisionResourceLabel = "metacontroller.k8s.io/resource"
)

// ControllerRevision is what the versioned fields of a parent were at one moment, and which children were made from
// that. Its parentPatch never changes; its children and its number do.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fieldPaths) || has(oldSelf.fieldPaths)",message="fieldPaths say how parentPatch is read, and are written with it: they cannot be added afterwards"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=controllerrevisions,scope=Namespaced
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.metadata.ownerReferences[?(@.controller==true)].name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.metadata.ownerReferences[?(@.controller==true)].kind`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ControllerRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// ParentPatch holds the fields of the parent at the controller's fieldPaths, nested as in the parent; a field that the
	// parent did not have is absent, and {} means that it had none of them. It cannot be changed.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="parentPatch is what the parent was, and children are made from it again when they are lost: it cannot be changed. To change the children edit the parent; to go back to this revision use cairn undo"
	ParentPatch runtime.RawExtension `json:"parentPatch"`
	// FieldPaths are the fieldPaths that parentPatch was taken with. The controller's own may be others by now, and to
	// restore a field that was not looked at would remove it. When they are absent those of the controller count. They
	// cannot be changed. Cairn only.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="fieldPaths say how parentPatch is read, and children are made from it again when they are lost: they cannot be changed"
	FieldPaths []string `json:"fieldPaths,omitempty"`
	// Children are those that belong to this revision. A child is written down here before it is touched.
	// +optional
	Children []ControllerRevisionChildren `json:"children,omitempty"`
	// Revision is the revision's place in the history of its parent: the newest has the highest number. It rises when the
	// parent goes back to this revision. 0 means that Metacontroller wrote the revision. Cairn only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="the number of a revision says when the parent last asked for it, so it can only rise; to go back to this revision use cairn undo"
	Revision int64 `json:"revision,omitempty"`
}

// ControllerRevisionList is a list of ControllerRevisions.
//
// +kubebuilder:object:root=true
type ControllerRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ControllerRevision `json:"items"`
}

// ControllerRevisionChildren are the children of one kind that belong to a revision.
type ControllerRevisionChildren struct {
	// APIGroup is the group of the kind, nothing for the core group.
	APIGroup string `json:"apiGroup"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Names are the names of the children: relative to the parent, so <namespace>/<name> where the parent is in no
	// namespace and the child is in one.
	Names []string `json:"names"`
}
