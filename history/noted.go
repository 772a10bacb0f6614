package history

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file says what a revision notes of the log when it is recorded, for people: in the request that records it, so
// that it costs none.

// Annotations about the log as it was when a revision was recorded.
const (
	// CompletedRevisionsAnnotation lists the names of revisions to which a rollout is known to have been complete then,
	// separated by commas: the status of the parent said so of the newest, with at least one child that was available.
	CompletedRevisionsAnnotation = "cairn.dev/completed-revisions"
	// WasRevisionAnnotation holds the number that a revision had before its parent went back to it.
	WasRevisionAnnotation = "cairn.dev/was-revision"
)

// completedCondition is the type of the condition that says so: the one that package pass sets.
const completedCondition = "Updated"

// stalledCondition is the type of the condition that a parent with a progress deadline has, and underWay its reasons
// while not all children of its revision have been available at once: package pass sets them.
const stalledCondition = "Stalled"

var underWay = []string{"RolloutProgressing", "ProgressDeadlineExceeded"}

// serving says which counter is 0, or left out, if no child is available, whatever the condition says: where the status
// has the other field.
var serving = map[string]string{"desiredNumberScheduled": "numberAvailable", "availableReplicas": "availableReplicas"}

// CompletedRevisions returns what [CompletedRevisionsAnnotation] lists.
func CompletedRevisions(o client.Object) []string {
	if text := o.GetAnnotations()[CompletedRevisionsAnnotation]; text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

// noted returns the annotations that the revision gets which a verdict records, nil if it records none.
func noted(parent client.Object, v *Verdict) map[string]string {
	if v.Update != nil && !v.Renumber() {
		return nil
	}
	out := map[string]string{}
	var known []string
	if v.Update != nil {
		known = v.Update.Completed
		if v.Update.Number > 0 {
			out[WasRevisionAnnotation] = strconv.FormatInt(v.Update.Number, 10)
		}
	}
	sorted := revision.Sorted(v.Entries)
	if n := len(sorted); n > 0 && completed(parent, sorted[n-1]) && !slices.Contains(known, sorted[n-1].Name) {
		known = append(slices.Clip(known), sorted[n-1].Name)
	}
	known = slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return !slices.ContainsFunc(sorted, func(r revision.Revision) bool { return r.Name == name })
	})
	if len(known) > 0 {
		out[CompletedRevisionsAnnotation] = strings.Join(known, ",")
	}
	return out
}

// note adds annotations to a new object, if there is room: its parent's may be all that the API server takes.
func note(o client.Object, noted map[string]string) {
	if len(noted) == 0 {
		return
	}
	all := maps.Clone(o.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, noted)
	if sizeOf(all) <= maxAnnotations {
		o.SetAnnotations(all)
	}
}

// Annotations are those noted, for a [Change].
func (v *Verdict) Annotations() map[string]any {
	out := map[string]any{}
	for key, value := range v.Noted {
		out[key] = value
	}
	return out
}

// completed reports whether the status of parent says that the rollout to its newest revision is complete. It is about
// that revision only if its controller has seen the generation for which it was recorded.
func completed(parent client.Object, newest revision.Revision) bool {
	if newest.Stamp.ParentUID != parent.GetUID() || newest.Stamp.Generation == 0 {
		return false
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	if err != nil {
		return false
	}
	seen, _, _ := unstructured.NestedInt64(tree, "status", "observedGeneration")
	return seen >= newest.Stamp.Generation && Completed(tree)
}

// Completed reports whether a parent, given as a tree, says of the generation that its controller has seen that all
// children come from its revision, and that one is available at least.
func Completed(parent map[string]any) bool {
	for has, counter := range serving {
		if _, found, _ := unstructured.NestedFieldNoCopy(parent, "status", has); !found {
			continue
		}
		if n, _, _ := unstructured.NestedInt64(parent, "status", counter); n == 0 {
			return false
		}
	}
	conditions, _, _ := unstructured.NestedSlice(parent, "status", "conditions")
	has := func(kind, field string, values ...string) bool {
		return slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			value, _ := condition[field].(string)
			return condition["type"] == kind && slices.Contains(values, value)
		})
	}
	return has(completedCondition, "status", "True") && !has(stalledCondition, "reason", underWay...)
}
