package metacontroller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file says what of a parent is versioned.

// Format says how the revisions of one parent resource are stored. It is a value that is made once for a controller and
// shared; nothing changes it.
type Format struct {
	resource         schema.GroupResource
	generateSelector bool
	namespace        string
	paths            []string
	target           *revision.Target
}

// NewFormat returns the format of the parents of a controller. The error is for the author of the controller and
// belongs into its status: an apiVersion that is none, or a field path that cannot be versioned.
func NewFormat(spec *v1alpha1.CompositeControllerSpec) (*Format, error) {
	parent := spec.ParentResource
	version, err := schema.ParseGroupVersion(parent.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("spec.parentResource.apiVersion: %w", err)
	}
	paths, target, err := covered(parent.RevisionHistory.EffectiveFieldPaths())
	if err != nil {
		return nil, fmt.Errorf("spec.parentResource.revisionHistory.fieldPaths: %w", err)
	}
	f := &Format{
		resource:         schema.GroupResource{Group: version.Group, Resource: parent.Resource},
		generateSelector: spec.GenerateSelector != nil && *spec.GenerateSelector,
		paths:            paths,
		target:           target,
	}
	if parent.RevisionHistory != nil {
		f.namespace = parent.RevisionHistory.Namespace
	}
	return f, nil
}

var _ history.Format = (*Format)(nil)

// Resource is that of Metacontroller's ControllerRevisions.
var Resource = v1alpha1.SchemeGroupVersion.WithResource("controllerrevisions").GroupResource()

// Target implements [history.Format].
func (f *Format) Target() *revision.Target { return f.target }

// Over returns the format with another part of the parent: that of a revision, say, which was taken with other field
// paths. It is for comparing, not for recording.
func (f *Format) Over(target *revision.Target) *Format {
	out := *f
	out.target = target
	return &out
}

// Resource implements [history.Format].
func (f *Format) Resource() schema.GroupResource { return Resource }

// Empty implements [history.Format].
func (f *Format) Empty() client.Object { return &v1alpha1.ControllerRevision{} }

// EmptyList implements [history.Format].
func (f *Format) EmptyList() client.ObjectList { return &v1alpha1.ControllerRevisionList{} }

// OwnerKind implements [history.Format]: the kind that parent says it is.
func (f *Format) OwnerKind(parent client.Object) schema.GroupVersionKind {
	return parent.GetObjectKind().GroupVersionKind()
}

// maxCollisions is how many names of one content an orphan may have.
const maxCollisions = 16

// Adoptable implements [history.Format]. A revision says which children came from it, and lost ones come back from
// there. So an orphan is adopted only if its name follows from its content, for this parent or the one that its stamp
// names, which was deleted without it; and never as the newest one beside revisions that the parent has.
func (f *Format) Adoptable(parent, orphan client.Object, owned []client.Object) error {
	o, ok := orphan.(*v1alpha1.ControllerRevision)
	if !ok {
		return fmt.Errorf("%T is no revision", orphan)
	}
	read := f.Read(o)
	if read.Snapshot == nil {
		return fmt.Errorf("it cannot be read: %w", read.Err)
	}
	if !f.Named(o.Name, read, parent.GetUID()) && !f.Named(o.Name, read, read.Stamp.ParentUID) {
		return errors.New("its name does not follow from its content, so another writer made it")
	}
	for _, mine := range owned {
		if r, ok := mine.(*v1alpha1.ControllerRevision); ok && r.Revision >= o.Revision {
			return nil
		}
	}
	if len(owned) > 0 {
		return errors.New("its number is higher than those of the revisions that the parent has")
	}
	return nil
}

// Named reports whether name follows from the content of r, which has a snapshot, as a revision of the parent with that
// UID.
func (f *Format) Named(name string, r revision.Revision, parent types.UID) bool {
	of := &unstructured.Unstructured{}
	of.SetUID(parent)
	for n := range int32(maxCollisions) {
		if name == f.Name(of, r.Snapshot, &n) {
			return true
		}
	}
	return false
}

// HashLabels implements [history.Format]: no label points at a revision, because it lists its children itself.
func (f *Format) HashLabels(revision.Revision) map[string]string { return nil }

// untyped returns a parent as parents of composite controllers are read.
func untyped(parent client.Object) *unstructured.Unstructured {
	return parent.(*unstructured.Unstructured)
}

// SharesLog reports whether the revisions of both can be one log of a parent: they hold the same and are selected
// alike, or they are in different namespaces. namespaced says that parents are in one, and their revisions beside them.
func (f *Format) SharesLog(other *Format, namespaced bool) bool {
	return !namespaced && f.namespace != other.namespace ||
		f.generateSelector == other.generateSelector && slices.Equal(f.paths, other.paths)
}

// Generational implements [history.Format]: whether every change of that part raises the parent's metadata.generation.
// The API server counts changes of everything but metadata and status.
func (f *Format) Generational() bool {
	return !slices.ContainsFunc(f.target.Paths(), func(p revision.Path) bool { return p[0] == "metadata" })
}

// covered returns the target for field paths as they were declared, and the paths that it covers, sorted. A path that
// lies inside another one adds nothing and is left out, whatever the order: Metacontroller takes both.
func covered(fieldPaths []string) ([]string, *revision.Target, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(fieldPaths)))
	var names []string
	var paths []revision.Path
	for _, s := range sorted {
		path, err := revision.ParsePath(s)
		if err != nil {
			return nil, nil, err
		}
		if err := versionable(path); err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(sorted, func(outer string) bool { return strings.HasPrefix(s, outer+".") }) {
			continue
		}
		names, paths = append(names, s), append(paths, path)
	}
	target, err := revision.FieldPaths(nil, paths...)
	return names, target, err
}

// versionable refuses what says which object the parent is and what became of it. The identity of a parent must survive
// a restore, and a revision for each write of its status would never end.
func versionable(path revision.Path) error {
	switch path[0] {
	case "apiVersion", "kind":
		return fmt.Errorf("%s says what kind of object the parent is, so it cannot be restored; list fields of spec", path)
	case "status":
		return fmt.Errorf("%s is written by the controller, so each pass would make a revision; list fields of spec", path)
	case "metadata":
		if len(path) == 1 || path[1] != "labels" && path[1] != "annotations" {
			return fmt.Errorf("%s is not what children are made from; of metadata, list labels or annotations", path)
		}
	}
	return nil
}

// errNoSelector says what a parent needs so that its children can be found.
var errNoSelector = errors.New("spec.selector of the parent must be a label selector with matchLabels or matchExpressions; " +
	"where parents have none, set generateSelector in the controller")
