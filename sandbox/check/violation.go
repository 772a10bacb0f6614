package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file says what went wrong so that a person can see why.

// trailLength is how many events a violation shows.
const trailLength = 8

// Violation is one broken promise.
type Violation struct {
	// Invariant is its name in the design: H2, R1.
	Invariant string
	Object    Key
	// RV is the resource version at which it is seen.
	RV uint64
	// Sentence says what is wrong.
	Sentence string
	// Trail are the last events of the object and its parent up to there, oldest first.
	Trail []Event
	// Replay is how to make the history again, empty if nobody said.
	Replay string
}

// String is the whole story, for a test's output.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %d: %s: %s", v.Invariant, v.RV, v.Object, v.Sentence)
	for _, e := range v.Trail {
		fmt.Fprintf(&b, "\n    %s", e)
	}
	if v.Replay != "" {
		fmt.Fprintf(&b, "\n    again: %s", v.Replay)
	}
	return b.String()
}

// trail returns the last events up to rv of an object, its parent, and the pods it shares the parent with.
func (h *History) trail(k Key, parent types.UID, rv uint64) []Event {
	var out []Event
	for _, e := range h.Events {
		if e.RV > rv {
			break
		}
		o := e.Object()
		if e.Key == k || parent != "" && (o.GetUID() == parent || ownerUID(o) == parent) {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-trailLength):]
}

// changes says in one line what is different after a write.
func changes(old, now client.Object) string {
	if old == nil || now == nil {
		return ""
	}
	var out []string
	differ("", tree(old), tree(now), &out)
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
