package recorder

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file says who made an edit: the field manager that wrote what is recorded last, by managedFields.

// authors remember who made the edit that is being recorded, from when it was read until the revision is made.
type authors struct {
	mu    sync.Mutex
	known map[types.UID]signature
}

type signature struct {
	version     string
	annotations map[string]string
}

// note remembers who wrote what target covers of o last.
func (a *authors) note(o client.Object, target *revision.Target) {
	by := lastWriter(o.GetManagedFields(), target)
	if by == nil {
		return
	}
	annotations := map[string]string{history.RecordedByAnnotation: by.Manager}
	if by.Time != nil {
		annotations[history.RecordedAtAnnotation] = by.Time.UTC().Format(time.RFC3339)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[types.UID]signature{}
	}
	a.known[o.GetUID()] = signature{o.GetResourceVersion(), annotations}
}

// of returns annotations for a revision of o, which the caller may change.
func (a *authors) of(o client.Object) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]string{}
	if known := a.known[o.GetUID()]; known.version == o.GetResourceVersion() {
		maps.Copy(out, known.annotations)
	}
	return out
}

func (a *authors) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, parent)
}

// lastWriter returns the newest entry that has something of what target covers, nil if none has. The times of entries
// are those of the API server and to the second: of two in one second the later in the list counts.
func lastWriter(entries []metav1.ManagedFieldsEntry, target *revision.Target) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if e.Subresource != "" || e.FieldsV1 == nil || !covers(e.FieldsV1.GetRawBytes(), target) {
			continue
		}
		if last == nil || last.Time == nil || e.Time != nil && !e.Time.Before(last.Time) {
			last = e
		}
	}
	return last
}

// covers reports whether a set of fields has one that is recorded.
func covers(raw []byte, target *revision.Target) bool {
	var set fieldpath.Set
	if !json.Valid(raw) || set.FromJSON(bytes.NewReader(raw)) != nil {
		return false
	}
	found := false
	set.Iterate(func(p fieldpath.Path) {
		found = found || recorded(p, target)
	})
	return found
}

// recorded reports whether a field is covered and not ignored.
func recorded(field fieldpath.Path, target *revision.Target) bool {
	within := func(paths []revision.Path) bool {
		for _, path := range paths {
			if below(field, path) {
				return true
			}
		}
		return false
	}
	return within(target.Paths()) && !within(target.Ignored())
}

func below(field fieldpath.Path, path revision.Path) bool {
	if len(field) < len(path) {
		return false
	}
	for i, name := range path {
		if field[i].FieldName == nil || *field[i].FieldName != name {
			return false
		}
	}
	return true
}
