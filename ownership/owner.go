package ownership

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// This file identifies owners. A UID alone is not enough: a user who may create objects can write a ControllerRef that
// has the UID of any parent. If its kind is another one, no admission policy about that parent matches it.

// Owner identifies the controller of an object: by group, kind and UID. The version is not part of it, because it
// changes when the owner is served in a newer one. Neither is the group extensions, in which Kubernetes before 1.16
// served DaemonSets, Deployments and ReplicaSets: it counts as apps. The zero value controls nothing.
type Owner struct {
	schema.GroupKind

	UID types.UID
}

// OwnerOf returns the identity of a parent. Objects of Go types need not know their kind, so it is an argument.
func OwnerOf(parent metav1.Object, kind schema.GroupKind) Owner {
	return Owner{kind, parent.GetUID()}
}

// ControllerOf returns the owner that the ControllerRef of an object names, or the zero value if the object is an
// orphan.
func ControllerOf(o metav1.Object) Owner {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ownerIn(ref)
	}
	return Owner{}
}

func ownerIn(ref *metav1.OwnerReference) Owner {
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	switch {
	case !grouped:
		group = ""
	case group == "": // "/v1" names no kind that is served
		group = ref.APIVersion
	case group == "extensions" && (ref.Kind == "DaemonSet" || ref.Kind == "Deployment" || ref.Kind == "ReplicaSet"):
		group = appsv1.GroupName
	}
	return Owner{schema.GroupKind{Group: group, Kind: ref.Kind}, ref.UID}
}

// Controls reports whether the ControllerRef of an object names o.
func (o Owner) Controls(child metav1.Object) bool {
	return o != Owner{} && ControllerOf(child) == o
}

// Value is the owner as a value of [ControllerIndex], [Orphan] for the zero value.
func (o Owner) Value() string {
	if o == (Owner{}) {
		return Orphan
	}
	return string(o.UID) + "/" + o.String()
}
