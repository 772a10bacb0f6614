package history

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file says what a log has to know of the objects that it is stored in. How each kind stores them is in apps.go
// and in package metacontroller. Formats are contracts with kubectl and with the built-in controllers.

// Annotations that cairn adds to the revisions it writes. They are evidence for rule E0 and for fencing, and nothing
// depends on their presence: revisions of the built-in controllers have none.
const (
	// ParentUIDAnnotation holds the UID of the parent that the revision was recorded for.
	ParentUIDAnnotation = "cairn.dev/parent-uid"
	// ParentGenerationAnnotation holds the parent's metadata.generation, in decimal, when the revision was created or
	// renumbered.
	ParentGenerationAnnotation = "cairn.dev/parent-generation"
	// RecordedByAnnotation holds the field manager that made the edit which the revision records, and RecordedAtAnnotation
	// when that was, by the API server's clock (RFC 3339). Both are for people, and on recorded kinds only.
	RecordedByAnnotation = "cairn.dev/recorded-by"
	RecordedAtAnnotation = "cairn.dev/recorded-at"
)

// Format says how the revisions of one kind of parent are stored: as which objects, under which names and labels, and
// what of the parent they hold. It decides nothing and reads nothing. [Apps] is that of apps/v1 ControllerRevisions;
// package metacontroller has the one of the parents of a CompositeController. Make it once and share it; nothing
// changes it.
//
// Errors of its methods are for the author of the parent: they say what it lacks to be recorded.
type Format interface { //nolint:interfacebloat // one contract: half of a format is of no use
	// Target is the part of a parent that is versioned, and Snapshot takes it.
	Target() *revision.Target
	Snapshot(parent client.Object) (*revision.Snapshot, error)
	// Generational reports whether every change of that part raises metadata.generation.
	Generational() bool
	// OwnerKind is the kind of parent, as it is written into owner references.
	OwnerKind(parent client.Object) schema.GroupVersionKind

	// Resource is that of the objects, Empty returns one with nothing in it, and EmptyList a list of them.
	Resource() schema.GroupResource
	Empty() client.Object
	EmptyList() client.ObjectList
	// Namespace is where the revisions of parent are.
	Namespace(parent client.Object) (string, error)
	// Selector is the one by which parent claims them. Adoptable says why an orphan that it matches must not be adopted,
	// nil if it may be. owned are the revisions that parent has already.
	Selector(parent client.Object) (labels.Selector, error)
	Adoptable(parent, orphan client.Object, owned []client.Object) error

	// Name returns the name of a new revision. collisions counts the names that others had, nil if there were none.
	Name(parent client.Object, s *revision.Snapshot, collisions *int32) string
	// Object returns the object that stores a snapshot of parent under that name: labelled, owned, and stamped.
	Object(parent client.Object, s *revision.Snapshot, collisions *int32, number int64, stamp revision.Stamp) (client.Object, error)
	// HashLabels returns the labels by which the children of a revision find it, nil if no label points at one.
	HashLabels(r revision.Revision) map[string]string
	// Read returns a stored object as package revision sees it. One that cannot be decoded has Err and no Snapshot.
	Read(o client.Object) revision.Revision
}

// FormatOf returns the format of a parent kind. ok is false for a kind that keeps no log in apps/v1
// ControllerRevisions, or one that cairn does not know yet; the caller reports that to its user.
func FormatOf(parent schema.GroupKind) (f *Apps, ok bool) {
	for _, f := range []*Apps{DaemonSet(), StatefulSet(), CronJob()} {
		if f.Parent.GroupKind() == parent {
			return f, true
		}
	}
	return nil, false
}

// ReadStamp returns the stamp of a revision, for implementations of [Format]. A malformed one is no stamp.
func ReadStamp(o metav1.Object) revision.Stamp {
	generation, err := strconv.ParseInt(o.GetAnnotations()[ParentGenerationAnnotation], 10, 64)
	uid := o.GetAnnotations()[ParentUIDAnnotation]
	if err != nil || uid == "" {
		return revision.Stamp{}
	}
	return revision.Stamp{ParentUID: types.UID(uid), Generation: generation}
}
