package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// This file turns a result into a patch, and into text for users.

// Patch returns the JSON merge patch (RFC 7386) that makes the observed child the result's object. It holds the
// observed UID and resourceVersion, so that it fails with a conflict if the child has changed, or was replaced, since.
// Metacontroller sends the whole object instead; what the API server stores is the same.
func (r Result) Patch(observed map[string]any) ([]byte, error) {
	patch := difference(observed, r.Object)
	metadata := object(patch["metadata"])
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	for _, field := range [...]string{"uid", "resourceVersion"} {
		if value, there := object(observed["metadata"])[field]; there {
			metadata[field] = value
		}
	}
	return json.Marshal(patch)
}

// difference returns the merge patch from a to b: removed keys are null.
func difference(a, b map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range a {
		if _, stays := b[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range b {
		from, isObject := a[key].(map[string]any)
		to, staysObject := value.(map[string]any)
		switch {
		case equal(a[key], value):
		case isObject && staysObject:
			patch[key] = difference(from, to)
		default:
			patch[key] = value
		}
	}
	return patch
}

// Differences names the fields in which the result's object differs from the observed child, sorted, at most limit of
// them, such as spec.containers[0].image. The annotation with what was applied last is not among them.
func (r Result) Differences(observed map[string]any, limit int) []string {
	d := differences{limit: limit}
	d.objects("", observed, r.Object)
	return d.paths
}

// differences collects paths.
type differences struct {
	limit int
	paths []string
}

func (d *differences) objects(at string, a, b map[string]any) {
	both := maps.Clone(b)
	if both == nil {
		both = map[string]any{}
	}
	maps.Copy(both, a)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		switch {
		case at == "metadata.annotations" && key == LastApplied:
		case at == "":
			d.values(key, a[key], b[key])
		default:
			d.values(at+"."+key, a[key], b[key])
		}
	}
}

func (d *differences) values(at string, a, b any) {
	if len(d.paths) >= d.limit || equal(a, b) {
		return
	}
	before, after := list(a), list(b)
	switch {
	case object(a) != nil && object(b) != nil:
		d.objects(at, object(a), object(b))
	case len(before) > 0 && len(before) == len(after):
		for i := range before {
			d.values(fmt.Sprintf("%s[%d]", at, i), before[i], after[i])
		}
	case at == "metadata" || at == "metadata.annotations":
		// One of them is not there, or no object. What the other has besides what was applied last is the difference.
		d.objects(at, object(a), object(b))
	default:
		d.paths = append(d.paths, at)
	}
}
