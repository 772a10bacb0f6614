package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The verbs of a Request.
const (
	VerbGet              = "get"
	VerbList             = "list"
	VerbCreate           = "create"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
)

// Options say what a Server is made of.
type Options struct {
	// Seed decides UIDs and generated names.
	Seed uint64
	// Now is the server's clock. Nil stands still at 2026-01-01T00:00:00Z.
	Now func() time.Time
	// Kinds are the kinds that are served. Nil means BuiltIn().
	Kinds []Kind
}

// Request is one request to the API server.
type Request struct {
	Verb        string // one of the Verb constants
	Resource    schema.GroupVersionResource
	Subresource string // "", "status", "binding", "scale" is not served
	Namespace   string // empty for cluster-scoped resources; empty in a list means all namespaces
	Name        string // empty for create, list and deletecollection

	// Object is the body of a create or an update; a binding takes a *corev1.Binding. The server keeps it and may change
	// it: the caller gives it away.
	Object client.Object
	// PatchType and Patch are the body of a patch. Server-side apply is not served.
	PatchType types.PatchType
	Patch     []byte

	// Preconditions, Propagation and GracePeriodSeconds are the options of a delete.
	Preconditions      *metav1.Preconditions
	Propagation        *metav1.DeletionPropagation
	GracePeriodSeconds *int64

	// DryRun goes through everything and stores nothing.
	DryRun bool

	// LabelSelector and FieldSelector narrow a list or a deletecollection. Nil selects everything.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// ResourceVersion is the oldest state that a get or a list accepts, as in the real API. The answer is always the
	// newest state; ListAt gives older ones.
	ResourceVersion string

	// User is who asks. The server does not look at it.
	User string
}

// Response is the answer to a Request.
type Response struct {
	// Object is what a get found and what a write left behind: for a delete, the object as it was last. It is shared with
	// the server and with all other readers: it must not be changed.
	Object client.Object
	// Items are what a list found and what a deletecollection deleted, by namespace and name; shared like Object.
	Items []client.Object
	// ResourceVersion is the server's resource version when it answered.
	ResourceVersion uint64
	// Err is nil or a *apierrors.StatusError, as a client makes it of the real server's answer.
	Err error
}

// Event is one change of one object, as a watch shows it.
type Event struct {
	RV       uint64 // of the change; every change has its own
	Type     watch.EventType
	Resource schema.GroupVersionResource
	// Object is the object after the change; of a deleted object its last state, with the resource version of the delete.
	Object client.Object
	// Old is the object before the change; nil in an Added event. Both are shared and must not be changed.
	Old client.Object
}
