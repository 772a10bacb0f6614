package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file finds the log of an object of a kind that nobody has told us of, by what the object controls:
// ControllerRevisions, which say what they hold or follow the convention, or ReplicaSets with a number. No kind is
// named here but those of the logs, and pods.

// conventional returns the kind of an object's log, nil if it controls nothing that is one. Where one may be, and may
// not be listed, that is the error.
func conventional(ctx context.Context, c client.Client, parent client.Object) (Kind, error) {
	if parent == nil {
		return nil, nil //nolint:nilnil // nobody has said which object
	}
	gvk, err := c.GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	var revisions []metav1.PartialObjectMetadata
	if gvk.GroupKind() != deployments { // whose revisions are ReplicaSets
		revisions, err = controlled(ctx, c, parent, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	}
	hidden := err
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	gvk = recordedIn(c, gvk, revisions)
	format, err := described(ctx, c, parent, gvk, revisions)
	if err != nil {
		return nil, err
	}
	if format != nil {
		return newBuiltin(c, format), nil
	}
	if len(revisions) > 0 {
		if kind, err := inferred(ctx, c, parent, gvk); kind != nil || err != nil {
			return kind, err
		}
	}
	sets, err := controlled(ctx, c, parent, ReplicaSetKind)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if key := numberKey(sets); key != "" {
		return newReplicaSets(c, gvk, key)
	}
	return nil, errors.Join(hidden, err)
}

// UnservedVersionError says that a revision was recorded in an API version that the API server does not serve any more.
// Their fields may mean something else in another version, so they are neither compared nor restored.
type UnservedVersionError struct {
	// Recorded is what the revision says that its parent is.
	Recorded schema.GroupVersionKind
	// Err is what the API server's discovery says.
	Err error
}

// Error says which version, and what to do.
func (e *UnservedVersionError) Error() string {
	return fmt.Sprintf("it was recorded in %s, which the API server does not serve any more, so its fields may mean "+
		"something else by now; serve that version again to go back (%v)", e.Recorded.GroupVersion(), e.Err)
}

// Unwrap returns what the API server's discovery says.
func (e *UnservedVersionError) Unwrap() error { return e.Err }

// recordedIn returns the kind of parent in the version in which its revisions were recorded: their owner references say
// it. Of several that are served, that of the most revisions counts, then the newer one by Kubernetes' order of
// versions; those of the others are read in their own (versions.go).
func recordedIn(c client.Client, gvk schema.GroupVersionKind, revisions []metav1.PartialObjectMetadata) schema.GroupVersionKind {
	votes := map[string]int{}
	for n := range revisions {
		if of := ownedAs(&revisions[n]); of.GroupKind() == gvk.GroupKind() && unserved(c, of) == nil {
			votes[of.Version]++
		}
	}
	for version, n := range votes {
		if best := votes[gvk.Version]; n > best || n == best && apimachineryversion.CompareKubeAwareVersionStrings(version, gvk.Version) > 0 {
			gvk.Version = version
		}
	}
	return gvk
}

// unserved returns an [*UnservedVersionError] for a version that is served no more, nil for any other.
func unserved(c client.Client, gvk schema.GroupVersionKind) error {
	if _, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
		return &UnservedVersionError{Recorded: gvk, Err: err}
	}
	return nil
}

// Fresh calls ask. If the API server does not serve a resource that ask has requested, Fresh resets mapper and calls
// ask again: the discovery cache may be too old.
func Fresh[T any](mapper meta.RESTMapper, ask func() (T, error)) (T, error) {
	out, err := ask()
	if notServed(err) {
		meta.MaybeResetRESTMapper(mapper)
		return ask()
	}
	return out, err
}

// notServed reports whether err means that the API server does not serve a resource, and not that an object does not
// exist.
func notServed(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// ownedAs is the kind that the controller reference of a revision names, in the version in which it was recorded.
func ownedAs(o metav1.Object) schema.GroupVersionKind {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(history.RecordedIn(o), ref.Kind)
}

// described returns the format that the newest revision describes, nil if none does. Only where they differ, because
// the controller was released anew or a policy was edited, are they read whole: metadata have no number.
func described(
	ctx context.Context, c client.Client, parent client.Object, gvk schema.GroupVersionKind, revisions []metav1.PartialObjectMetadata,
) (*history.Apps, error) {
	var out *history.Apps
	differ := false
	for n := range revisions {
		format, ok := history.Described(&revisions[n], gvk)
		differ = differ || ok && out != nil && !maps.Equal(format.Description(), out.Description())
		if out == nil && ok {
			out = format
		}
	}
	if !differ {
		return out, nil
	}
	all, err := owned(ctx, c, parent)
	newest := int64(-1)
	for n := range all {
		if format, ok := history.Described(&all[n], gvk); ok && all[n].Revision > newest {
			out, newest = format, all[n].Revision
		}
	}
	return out, err
}

// holdsAnother reports whether the data of a revision is an object of another kind than its owner. KubeVirt keeps the
// instance type of a VirtualMachine so.
func holdsAnother(r *appsv1.ControllerRevision, owner string) bool {
	var data metav1.TypeMeta
	return json.Unmarshal(r.Data.Raw, &data) == nil && data.Kind != "" && data.Kind != owner
}

// owned returns the revisions that parent controls and that hold it.
func owned(ctx context.Context, c client.Client, parent client.Object) ([]appsv1.ControllerRevision, error) {
	all := &appsv1.ControllerRevisionList{}
	owner, err := narrowed(ctx, c, parent, all)
	return slices.DeleteFunc(all.Items, func(r appsv1.ControllerRevision) bool {
		return !owner.Controls(&r) || holdsAnother(&r, owner.Kind)
	}), err
}

// inferred reads the revisions whole: only their content shows their fields. It returns nil if all of them hold other
// objects.
func inferred(ctx context.Context, c client.Client, parent client.Object, gvk schema.GroupVersionKind) (Kind, error) {
	revisions, err := owned(ctx, c, parent)
	if err != nil {
		return nil, err
	}
	if len(revisions) == 0 {
		return nil, nil //nolint:nilnil // it has no history
	}
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	pods, err := controlled(ctx, c, parent, pod)
	if err != nil {
		return nil, err
	}
	format, err := history.Inferred(gvk, revisions, pod, pods)
	if err != nil {
		return nil, fmt.Errorf("find the history of %s: %w", parent.GetName(), err)
	}
	return newBuiltin(c, format), nil
}

// controlled returns the metadata of the objects of a kind that parent controls.
func controlled(ctx context.Context, c client.Client, parent client.Object, gvk schema.GroupVersionKind) (
	[]metav1.PartialObjectMetadata, error,
) {
	found := &metav1.PartialObjectMetadataList{} // the client's scheme need not have the type
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	var out []metav1.PartialObjectMetadata
	owner, err := narrowed(ctx, c, parent, found)
	for n := range found.Items {
		if owner.Controls(&found.Items[n]) {
			out = append(out, found.Items[n])
		}
	}
	return out, err
}
