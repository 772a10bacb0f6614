package history

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/revision"
)

// This file puts the annotations of a revision together: those that are copied from its parent, and its stamp.

// maxAnnotations is how many bytes the annotations of an object may have in all, keys and values, for the API server.
const maxAnnotations = 256 << 10

// annotations returns copied with the stamp. A parent may have as many annotations as any object may, so that both
// together can be too many: then copied ones are left out, what kubectl applied last first, and then the largest. The
// stamp is what rules rest on, and a revision that cannot be stored stops every rollout.
func annotations(copied map[string]string, s revision.Stamp) map[string]string {
	out := maps.Clone(copied)
	if out == nil {
		out = map[string]string{}
	}
	stamp := stampAnnotations(s)
	maps.Copy(out, stamp)
	size := sizeOf(out)
	if size <= maxAnnotations {
		return out
	}
	weight := func(k string) int {
		if k == corev1.LastAppliedConfigAnnotation {
			return 2 * maxAnnotations
		}
		return len(k) + len(out[k])
	}
	keys := slices.SortedFunc(maps.Keys(out), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
	for _, k := range keys {
		if _, ours := stamp[k]; ours {
			continue
		}
		if size <= maxAnnotations {
			break
		}
		size -= len(k) + len(out[k])
		delete(out, k)
	}
	return out
}

func sizeOf(annotations map[string]string) int {
	size := 0
	for k, v := range annotations {
		size += len(k) + len(v)
	}
	return size
}

func stampAnnotations(s revision.Stamp) map[string]string {
	return map[string]string{
		ParentUIDAnnotation:        string(s.ParentUID),
		ParentGenerationAnnotation: strconv.FormatInt(s.Generation, 10),
	}
}
