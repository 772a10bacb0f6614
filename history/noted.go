package history

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file says what a revision notes of the log when it is recorded, for people: in the request that records it, so
// that it costs none.

// Annotations about the log as it was when a revision was recorded.
const (
	// CompletedRevisionsAnnotation lists the names of revisions that were known to be good then, separated by commas,
	// as the status of the parent said ([rollback.LastGood]). It is for people: no automatic action goes by it.
	CompletedRevisionsAnnotation = "cairn.dev/completed-revisions"
	// WasRevisionAnnotation holds the number that a revision had before its parent went back to it.
	WasRevisionAnnotation = "cairn.dev/was-revision"
)

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
	for _, name := range rollback.GoodOf(parent).Names() {
		if !slices.Contains(known, name) {
			known = append(slices.Clip(known), name)
		}
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
