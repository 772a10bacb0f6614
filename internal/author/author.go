// Package author says who made an edit: the field manager that wrote a part of an object last, by managedFields. It is
// pure.
//
// What may not come in: what is done with the answer.
package author

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cairn-dev/cairn/revision"
)

// Last returns the newest entry that has something of what target covers, nil if none has. The times of entries
// are those of the API server and to the second: of two in one second the later in the list counts.
func Last(entries []metav1.ManagedFieldsEntry, target *revision.Target) *metav1.ManagedFieldsEntry {
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
