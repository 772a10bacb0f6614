package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file says what is different between two versions of an object, as a person would.

func path(tree map[string]any, path string) any {
	value, _ := getPath(tree, path)
	return value
}

// short writes option=value for the path of an option.
func (k kind) short(change string) string {
	where, value, _ := strings.Cut(change, "=")
	for option, path := range k.Options {
		if path == where {
			return option + "=" + value
		}
	}
	return change
}

// ownerChanges says whether an object was adopted or released.
func ownerChanges(old, now client.Object) []string {
	before, after := metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(now)
	switch {
	case before == nil && after != nil:
		return []string{"now of " + after.Name}
	case before != nil && after == nil:
		return []string{"no longer of " + before.Name}
	case before != nil && before.UID != after.UID:
		return []string{"now of " + after.Name + ", was of another " + before.Name}
	}
	return nil
}

// labelChanges says what is different in labels. Hashes are left out: they are names of revisions.
func labelChanges(old, now map[string]string) []string {
	all := maps.Clone(now)
	if all == nil {
		all = map[string]string{}
	}
	for key := range old {
		if _, ok := all[key]; !ok {
			all[key] = "-"
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if old[key] == now[key] {
			continue
		}
		value := all[key]
		if key == appsv1.ControllerRevisionHashLabelKey {
			value = "other"
		}
		out = append(out, "label "+key+"="+value)
	}
	return out
}

// untold are parts of a status that say nothing, or when.
var untold = []string{"status.conditions", "status.observedGeneration"}

// differ appends the paths at which two trees differ, with what is there now where that is short.
func differ(path string, old, now any, out *[]string) {
	if reflect.DeepEqual(old, now) || slices.Contains(untold, path) {
		return
	}
	a, okA := old.(map[string]any)
	b, okB := now.(map[string]any)
	if okA && okB || old == nil && okB && path == "status" {
		all := maps.Clone(b)
		for key := range a {
			all[key] = b[key]
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			differ(path+"."+key, a[key], b[key], out)
		}
		return
	}
	la, okA := old.([]any)
	lb, okB := now.([]any)
	if okA && okB && len(la) == len(lb) {
		for i := range la {
			differ(fmt.Sprintf("%s[%d]", path, i), la[i], lb[i], out)
		}
		return
	}
	value := cmp.Or(text(now), "-")
	if len(value) > maxValue {
		value = "other"
	}
	*out = append(*out, path+"="+value)
}

// maxValue is how long a value may be to be written out.
const maxValue = 60
