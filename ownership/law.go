package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is the three laws as one pure function over what was observed.

// Action is what the laws ask of a parent for one object.
type Action string

// The actions (ControllerRef proposal, "Adoption" and "Orphaning").
const (
	// Keep: the object is the parent's, and counts.
	Keep Action = "Keep"
	// Adopt: the object is an orphan and matches; take it, after an uncached check of the parent.
	Adopt Action = "Adopt"
	// Release: the object is the parent's and no longer matches; remove the ControllerRef.
	Release Action = "Release"
	// Ignore: the object is not the parent's, does not count, and is not to be touched.
	Ignore Action = "Ignore"
)

// Decision is an action and why.
type Decision struct {
	Action Action
	Reason string
}

// Decide applies the three laws to one object. kind is the kind of the parent. matches is true if the object's labels
// match the parent's selector. With [Claimer.Member], that function must also return true. Neither argument is changed.
func Decide(parent metav1.Object, kind schema.GroupKind, child metav1.Object, matches bool) Decision {
	if parent.GetNamespace() != "" && child.GetNamespace() != parent.GetNamespace() {
		return Decision{Ignore, fmt.Sprintf("it is in namespace %q, its would-be parent in %q", child.GetNamespace(), parent.GetNamespace())}
	}
	us, controller := OwnerOf(parent, kind), ControllerOf(child)
	switch {
	case controller == (Owner{}):
		return decideOrphan(parent, child, matches)
	case controller != us && controller.UID == us.UID:
		return Decision{Ignore, fmt.Sprintf("its ControllerRef has the parent's UID and another kind, %s", controller.GroupKind)}
	case controller != us:
		return Decision{Ignore, fmt.Sprintf("it is controlled by %s %s", controller.Kind, metav1.GetControllerOfNoCopy(child).Name)}
	case matches:
		return Decision{Keep, "the parent controls it"}
	case parent.GetDeletionTimestamp() != nil:
		return Decision{Ignore, "the parent controls it and it no longer matches, but a parent that is being deleted releases nothing"}
	default:
		return Decision{Release, "the parent controls it, but it no longer matches"}
	}
}

func decideOrphan(parent, child metav1.Object, matches bool) Decision {
	switch {
	case !matches:
		return Decision{Ignore, "it is an orphan that the selector does not match"}
	case parent.GetDeletionTimestamp() != nil:
		return Decision{Ignore, "it is an orphan, but a parent that is being deleted adopts nothing"}
	case child.GetDeletionTimestamp() != nil:
		return Decision{Ignore, "it is an orphan that is being deleted"}
	default:
		return Decision{Adopt, "it is an orphan that the selector matches"}
	}
}
