package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file says for a person what a write changed.

// changes says in one line what is different after a write.
func changes(old, now client.Object) string {
	if old == nil || now == nil {
		return ""
	}
	var out []string
	differ("", content.Tree(old), content.Tree(now), &out)
	return strings.Join(out, ", ")
}

// quiet are paths that say nothing to a person: bookkeeping, and details of a pod's status.
var quiet = []string{
	".metadata.managedFields", ".metadata.resourceVersion", ".metadata.deletionGracePeriodSeconds",
	".status.containerStatuses", ".status.hostIP", ".status.hostIPs", ".status.podIP", ".status.podIPs", ".status.startTime",
}

// steps are conditions on a pod's way to being ready.
var steps = []string{"PodReadyToStartContainers", "Initialized", "ContainersReady"}

// differ appends the paths at which two trees differ, with what is there now where that is short.
func differ(path string, a, b any, out *[]string) {
	if slices.Contains(quiet, path) || reflect.DeepEqual(a, b) {
		return
	}
	name := strings.TrimPrefix(path, ".")
	ma, okA := a.(map[string]any)
	mb, okB := b.(map[string]any)
	switch {
	case okA && okB:
		all := maps.Clone(ma)
		maps.Copy(all, mb)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			differ(path+"."+k, ma[k], mb[k], out)
		}
	case path == ".status.conditions":
		before := conditions(a)
		for _, c := range conditions(b) {
			if !slices.Contains(before, c) {
				*out = append(*out, c)
			}
		}
	case b == nil:
		*out = append(*out, name+" gone")
	default:
		text, err := json.Marshal(b)
		if err != nil || len(text) > 60 {
			text = []byte("other")
		}
		*out = append(*out, name+" = "+string(text))
	}
}

// conditions returns each condition as "Ready True".
func conditions(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		if c, ok := item.(map[string]any); ok && !slices.Contains(steps, fmt.Sprint(c["type"])) {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%v %v", c["type"], c["status"])))
		}
	}
	return out
}
