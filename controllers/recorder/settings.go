package recorder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads a policy: what is recorded, of which objects, and why it cannot be. It is pure: what the API server
// serves is given.

// Reasons for the condition Ready of a policy that records nothing, beside those of package hosting.
const (
	// SensitiveResource: Secrets are recorded on purpose only.
	SensitiveResource = "SensitiveResource"
	// HasHistory: the resource has a history already, or is one.
	HasHistory = "HasHistory"
	// NamespaceRequired: the objects are in no namespace, and the policy does not say where their revisions are to be.
	NamespaceRequired = "NamespaceRequired"
	// InvalidSpec: a field path or a selector cannot be used.
	InvalidSpec = "InvalidSpec"
	// Overlaps: an older policy records the same resource.
	Overlaps = "Overlaps"
)

// Labels of a revision by which the object that it belongs to finds it again, also if it was orphaned.
const (
	kindLabel = "cairn.dev/recorded-kind"
	nameLabel = "cairn.dev/recorded-name"
)

// spec is the field that says what an object is to be, where there is one.
const spec = "spec"

// described is what the API server serves of a resource.
type described struct {
	watching.Resource

	// fields are those of the objects, nil if that is not known.
	fields []string
	// scaled says that there is a scale subresource.
	scaled bool
}

// settings are what one policy asks for. Nothing changes them: a new spec is a new value.
type settings struct {
	policy   *v1alpha1.HistoryPolicy
	resource watching.Resource
	target   *revision.Target
	// objects and namespaces select what is recorded; namespaces is nil if all are.
	objects, namespaces labels.Selector
	// limit is how many old revisions of an object are kept, size how many bytes they may hold together.
	limit int32
	size  int64
}

// keeps is how many of the old entries of an object are kept: the newest that fit, and one in any case. update is the
// one that it is now.
func (s *settings) keeps(entries []revision.Revision, update *revision.Revision) int32 {
	left, kept := s.size, int32(0)
	for _, e := range slices.Backward(revision.Sorted(entries)) {
		if e.Snapshot == nil || update != nil && e.UID == update.UID {
			continue
		}
		if left -= int64(len(e.Snapshot.Data())); left < 0 && kept > 0 || kept == s.limit {
			break
		}
		kept++
	}
	return kept
}

// validate refuses what is never recorded, before anybody asks what the API server serves.
func validate(policy *v1alpha1.HistoryPolicy) error {
	version, err := schema.ParseGroupVersion(policy.Spec.Resource.APIVersion)
	if err != nil {
		return refused(InvalidSpec, "spec.resource.apiVersion: %w", err)
	}
	switch resource := version.WithResource(policy.Spec.Resource.Resource).GroupResource(); resource {
	case schema.GroupResource{Resource: "secrets"}:
		if !policy.Spec.AllowSensitive {
			return refused(SensitiveResource, "secrets would be copied into ControllerRevisions, which more people may read than secrets, "+
				"and stay there after they were changed; set spec.allowSensitive: true if that is meant")
		}
	case history.AppsResource, watching.Revisions.Resource.GroupResource():
		return refused(HasHistory, "%s are revisions themselves", resource)
	case schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"}:
		return refused(HasHistory, "%s are a log themselves", resource)
	}
	return nil
}

// read returns what a policy asks for.
func read(policy *v1alpha1.HistoryPolicy, resource described) (*settings, error) {
	kind := resource.Kind.GroupKind()
	if _, has := history.FormatOf(kind); has || slices.Contains(keeping[kind.Group], kind.Kind) {
		return nil, refused(HasHistory, "the controller of a %s keeps its history itself; cairn history shows it", kind.Kind)
	}
	if !resource.Namespaced && policy.Spec.RevisionNamespace == "" {
		return nil, refused(NamespaceRequired, "%s are in no namespace: say with spec.revisionNamespace where their revisions are to be",
			resource)
	}
	s := &settings{
		policy: policy, resource: resource.Resource,
		limit: v1alpha1.DefaultRevisionHistoryLimit, size: v1alpha1.DefaultRevisionHistorySizeLimit,
	}
	if limit := policy.Spec.RevisionHistoryLimit; limit != nil {
		s.limit = *limit
	}
	if size := policy.Spec.RevisionHistorySizeLimit; size != nil {
		s.size = size.Value()
	}
	var errs []error
	var err error
	if s.target, err = targetOf(policy, resource); err != nil {
		errs = append(errs, err)
	}
	if s.objects, err = selector(policy.Spec.Selector); err != nil {
		errs = append(errs, fmt.Errorf("spec.selector: %w", err))
	}
	if given := policy.Spec.NamespaceSelector; given != nil {
		if s.namespaces, err = selector(given); err != nil {
			errs = append(errs, fmt.Errorf("spec.namespaceSelector: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, refused(InvalidSpec, "%w", err)
	}
	return s, nil
}

// keeping are kinds, by group, whose controllers are known to keep a history, as ControllerRevisions or as numbered
// ReplicaSets. What another kind's controller keeps is noticed object by object.
var keeping = map[string][]string{
	"apps":                     {"Deployment"},
	"argoproj.io":              {"Rollout"},
	"leaderworkerset.x-k8s.io": {"LeaderWorkerSet"},
	"apps.kruise.io":           {"CloneSet", "DaemonSet", "SidecarSet", "StatefulSet", "UnitedDeployment"},
}

// mine reports whether a revision was made by a recorder. Any of its marks says so: what a person has taken the others
// off is still ours.
func mine(o client.Object) bool {
	has := o.GetLabels()
	return has[kindLabel] != "" || has[nameLabel] != "" || o.GetAnnotations()[v1alpha1.PolicyUIDAnnotation] != ""
}

func refused(reason, format string, args ...any) error {
	return &hosting.Error{Reason: reason, Event: reason, Err: fmt.Errorf(format, args...)}
}

func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// targetOf returns what of the objects is recorded.
func targetOf(policy *v1alpha1.HistoryPolicy, resource described) (*revision.Target, error) {
	texts := policy.Spec.FieldPaths
	if len(texts) == 0 {
		if texts = defaultPaths(resource.fields); len(texts) == 0 {
			return nil, fmt.Errorf("spec.fieldPaths: the API server does not say which fields %s have; name those to record", resource)
		}
	}
	paths, err := parsed("spec.fieldPaths", texts)
	if err != nil {
		return nil, err
	}
	target, err := revision.FieldPaths(nil, paths...)
	if err != nil {
		return nil, fmt.Errorf("spec.fieldPaths: %w", err)
	}
	if !policy.Spec.AllowSensitive {
		target = target.WithoutSecrets()
	}
	ignored, err := parsed("spec.ignorePaths", ignoredOf(policy, resource, texts))
	if err != nil || len(ignored) == 0 {
		return target, err
	}
	if target, err = target.Without(ignored...); err != nil {
		return nil, fmt.Errorf("spec.ignorePaths: %w", err)
	}
	return target, nil
}

// defaultPaths are spec or, where there is none, everything but what the API server and controllers write.
func defaultPaths(fields []string) []string {
	if slices.Contains(fields, spec) {
		return []string{spec}
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool {
		return f == "apiVersion" || f == "kind" || f == "metadata" || f == "status"
	})
}

// ignoredOf leaves the scale out by default: autoscalers change it all the time, and an undo should not take it back.
func ignoredOf(policy *v1alpha1.HistoryPolicy, resource described, recorded []string) []string {
	if given := policy.Spec.IgnorePaths; given != nil {
		return *given
	}
	if resource.scaled && slices.Contains(recorded, spec) {
		return []string{"spec.replicas"}
	}
	return nil
}

func parsed(field string, texts []string) ([]revision.Path, error) {
	var out []revision.Path
	for i, text := range texts {
		path, err := revision.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		out = append(out, path)
	}
	return out, nil
}

// format is how revisions are stored. author returns annotations that say who made the edit.
func (s *settings) format(author func(parent client.Object) map[string]string) *history.Apps {
	kind := s.resource.Kind
	owned := func(parent client.Object) map[string]string {
		return map[string]string{
			kindLabel: revision.LabelValue(kind.GroupKind().String()),
			nameLabel: revision.LabelValue(parent.GetName()),
		}
	}
	f := &history.Apps{
		Parent:    kind,
		Versioned: s.target,
		HashLabel: appsv1.ControllerRevisionHashLabelKey,
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			return labels.ValidatedSelectorFromSet(owned(parent))
		},
		ChildLabel: appsv1.ControllerRevisionHashLabelKey,
		NewParent:  s.newParent,
		Elsewhere:  s.policy.Spec.RevisionNamespace,
		Labels: func(parent client.Object) map[string]string {
			out := owned(parent)
			out[v1alpha1.PolicyLabel] = revision.LabelValue(s.policy.Name)
			return out
		},
	}
	description := f.Description()
	f.Annotations = func(parent client.Object) map[string]string {
		out := author(parent)
		if out == nil {
			out = map[string]string{}
		}
		maps.Copy(out, description)
		out[v1alpha1.PolicyUIDAnnotation] = string(s.policy.UID)
		if cause := parent.GetAnnotations()[changeCause]; cause != "" {
			out[changeCause] = cause
		}
		return out
	}
	f.Anew = func(parent client.Object) map[string]any { // or an undo would be told to be the edit that it goes back to
		out := map[string]any{history.RecordedByAnnotation: nil, history.RecordedAtAnnotation: nil}
		for key, value := range author(parent) {
			out[key] = value
		}
		return out // the cause stays: an undo does not change that of the object, which is about the edit that was undone
	}
	return f
}

// changeCause is what people say of a change, for kubectl rollout history.
const changeCause = "kubernetes.io/change-cause"

func (s *settings) newParent() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(s.resource.Kind)
	return o
}

// selects reports whether an object is one that is recorded, given the labels of its namespace.
func (s *settings) selects(o client.Object, namespace map[string]string) bool {
	if !s.objects.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	return s.namespaces == nil || o.GetNamespace() == "" || s.namespaces.Matches(labels.Set(namespace))
}

// overlapping returns the policy that records the resource of this one as well and is to go on, nil if this one is. The
// older one goes on; of two that were created in one second, the first by name.
func overlapping(policy *v1alpha1.HistoryPolicy, all []v1alpha1.HistoryPolicy) *v1alpha1.HistoryPolicy {
	for i := range all {
		other := &all[i]
		if other.UID == policy.UID || other.DeletionTimestamp != nil || !sameResource(policy.Spec.Resource, other.Spec.Resource) {
			continue
		}
		made, before := policy.CreationTimestamp, other.CreationTimestamp
		if before.Before(&made) || before.Equal(&made) && other.Name < policy.Name {
			return other
		}
	}
	return nil
}

// sameResource compares resources without their versions: an object is served in all of them.
func sameResource(a, b v1alpha1.RecordedResource) bool {
	group := func(r v1alpha1.RecordedResource) string {
		group, _, found := strings.Cut(r.APIVersion, "/")
		if !found {
			return ""
		}
		return group
	}
	return a.Resource == b.Resource && group(a) == group(b)
}
