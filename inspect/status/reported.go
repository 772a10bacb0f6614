package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file reads what the controller of any object reports in its status. kstatus knows the built-in kinds and the
// conventions of the API (observedGeneration, Ready, Stalled, Reconciling). Of other kinds signs.go reads conditions,
// phases and flags by their words; here are counters of replicas, and work that ends.

// Counter is a number that a controller reports in the status.
type Counter struct {
	Name  string
	Value int64
}

// counters returns the numbers at the top of a status, by name, without those that count nothing of the parent's.
func counters(parent map[string]any) []Counter {
	status := statusIn(parent)
	var out []Counter
	for _, name := range slices.Sorted(maps.Keys(status)) {
		if v, ok := status[name].(int64); ok && name != "observedGeneration" && name != "collisionCount" {
			out = append(out, Counter{Name: name, Value: v})
		}
	}
	return out
}

// reports is whether a status says anything that a verdict can be made of.
func reports(parent *unstructured.Unstructured) bool {
	return !blank(statusIn(parent.Object))
}

// statusIn returns the status of an object, nil if it has none. The caller must not change it.
func statusIn(o map[string]any) map[string]any {
	status, _ := o["status"].(map[string]any)
	return status
}

// partsOf returns the elements of a list in a status that have fields: listeners, or groups of instances.
func partsOf(status map[string]any, field string) (out []map[string]any) {
	list, _ := status[field].([]any)
	for _, item := range list {
		if part, ok := item.(map[string]any); ok {
			out = append(out, part)
		}
	}
	return out
}

// blank reports whether there is nothing but zeros in a value.
func blank(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range v {
			if !blank(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case bool:
		return !v
	}
	return value == nil || value == int64(0) || value == ""
}

// reportedBy is the verdict on an object by its own status.
func reportedBy(o *unstructured.Unstructured) verdict {
	o = object.Orderly(o)
	found, err := kstatus.Compute(o)
	if err != nil {
		return inProgress("its status cannot be read: %v", err)
	}
	known := kstatus.GetLegacyConditionsFn(o) != nil
	if !known && staleConditions(o) {
		return inProgress("%s", unseen)
	}
	says := worst(signs(o))
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); known && phase != string(corev1.PodFailed) {
		says = sign{} // kstatus knows its conditions
	}
	switch {
	case found.Status == kstatus.FailedStatus:
		return verdict{Failed, failure(o, found)}
	case says.meaning == bad:
		return verdict{Failed, cmp.Or(podBlocker(o), says.text)}
	case found.Status == kstatus.InProgressStatus:
		return inProgress("%s", delay(o, found))
	case unfinished(o):
		return inProgress("%s", cmp.Or(suspended(o), enumerateCounters(o, "it has not ended yet")))
	case known:
		return verdict{Done, plainly(found.Message)}
	case says.meaning == moving, says.meaning == mild && isRun(o):
		return inProgress("%s", says.text)
	}
	counts := counted(o)
	switch {
	case counts.meaning == moving:
		return inProgress("%s", counts.text)
	case says.meaning != silent:
		return verdict{Done, says.text}
	case counts.meaning == good, scheme.Scheme.IsGroupRegistered(o.GroupVersionKind().Group):
		return verdict{Done, enumerateCounters(o, nothingWaited)}
	default:
		return verdict{Unknown, sentence(unsaid, enumerateCounters(o, ""))}
	}
}

// unseen is the reason where a status is about an older spec.
const unseen = "its controller has not observed the latest spec"

// staleConditions reports whether all conditions of a list that have a generation are about an older one: in the
// Gateway API, whose statuses have no generation. A controller may leave some conditions unchanged.
func staleConditions(o *unstructured.Unstructured) bool {
	for _, list := range conditionLists(o.Object) {
		latest := int64(0)
		for _, c := range list {
			latest = max(latest, c.Generation)
		}
		if latest > 0 && latest < o.GetGeneration() {
			return true
		}
	}
	return false
}

// unsaid is the reason of [Unknown].
const unsaid = "its status has no word that cairn knows"

// goals are the numbers that are wanted, and the counters that reach them: of whatever has replicas, of DaemonSets, and
// of what is in pods of others, as Kruise's SidecarSets.
var goals = []struct{ fields, counters []string }{
	{[]string{"spec", "replicas"}, []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"}},
	{[]string{"spec", "instances"}, []string{"instances", "readyInstances"}},
	{[]string{"status", "desiredReplicas"}, []string{"readyReplicas", "availableReplicas"}},
	{[]string{"status", "desiredWorkerReplicas"}, []string{"readyWorkerReplicas", "availableWorkerReplicas"}},
	{[]string{"status", "desiredNumberScheduled"}, []string{"updatedNumberScheduled", "numberReady", "numberAvailable"}},
	{[]string{"status", "expectedMachines"}, []string{"currentHealthy"}},
	{[]string{"status", "matchedPods"}, []string{"updatedPods", "readyPods"}},
}

// counted compares the numbers of a status with those that are wanted.
func counted(o *unstructured.Unstructured) sign {
	out := sign{}
	for _, g := range goals {
		want, found, err := unstructured.NestedInt64(o.Object, g.fields...)
		if err != nil || !found {
			continue
		}
		for _, name := range g.counters {
			has, reported, err := unstructured.NestedInt64(o.Object, "status", name)
			switch {
			case err != nil || !reported:
			case has >= want:
				out.meaning = max(out.meaning, good)
			case !strings.HasPrefix(name, "updated") || !partitioned(o.Object["spec"]):
				return sign{moving, fmt.Sprintf("%s is %d, and %s is %d", name, has, strings.Join(g.fields, "."), want)}
			}
		}
	}
	status := statusIn(o.Object)
	for _, field := range slices.Sorted(maps.Keys(status)) {
		for _, part := range partsOf(status, field) {
			want, wanted := part["replicas"].(int64)
			if has, reported := part["readyReplicas"].(int64); wanted && reported && has < want {
				return sign{moving, fmt.Sprintf("readyReplicas of %v is %d, and replicas is %d", part["name"], has, want)}
			}
		}
	}
	if n, _, err := unstructured.NestedInt64(o.Object, "status", "unavailableReplicas"); err == nil && n > 0 {
		return sign{moving, fmt.Sprintf("unavailableReplicas is %d", n)}
	}
	return out
}

const nothingWaited = "nothing in its status is waited for"

// partitioned reports whether a strategy anywhere in a spec keeps some replicas as they are.
func partitioned(spec any) bool {
	fields, _ := spec.(map[string]any)
	for name, value := range fields {
		switch {
		case name == "template":
		case name == "partition" && !blank(value), partitioned(value):
			return true
		}
	}
	return false
}

// unfinished reports whether an object is work that ends, and has not: kstatus takes a Job that runs for done.
func unfinished(o *unstructured.Unstructured) bool {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	_, retried := spec["backoffLimit"]
	_, counted := spec["completions"]
	if !counted && (!retried || !isRun(o)) {
		return false
	}
	for _, end := range []string{"Complete", "Succeeded"} {
		if c := readiness.FindCondition(o.Object, end); c != nil && c.Status == string(corev1.ConditionTrue) {
			return false
		}
	}
	ended, _, _ := unstructured.NestedString(o.Object, "status", "completionTime")
	return ended == ""
}

// suspended says that somebody has stopped an object, empty if not.
func suspended(o *unstructured.Unstructured) string {
	for _, field := range []string{"suspend", "paused"} {
		if stopped, _, err := unstructured.NestedBool(o.Object, "spec", field); err == nil && stopped {
			return "spec." + field + " is true"
		}
	}
	return ""
}

// failure says why an object has failed: in the words of the condition that says so, or of the pod.
func failure(o *unstructured.Unstructured, found *kstatus.Result) string {
	if why := podBlocker(o); why != "" {
		return why
	}
	if c := readiness.FindCondition(o.Object, "Failed"); c != nil && c.Status == string(corev1.ConditionTrue) {
		return sentence("", c.Reason, c.Message)
	}
	if len(found.Conditions) > 0 {
		return sentence("", found.Conditions[0].Reason, found.Conditions[0].Message)
	}
	return worst(signs(o)).text
}

// delay says what an object that is in progress lacks.
func delay(o *unstructured.Unstructured, found *kstatus.Result) string {
	if why := cmp.Or(podBlocker(o), suspended(o)); why != "" {
		return why
	}
	if observed, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); ok && observed < o.GetGeneration() {
		return unseen
	}
	if c := readiness.FindCondition(o.Object, "Ready"); c != nil && c.Status != string(corev1.ConditionTrue) {
		return sentence("its condition Ready is "+c.Status, c.Reason, c.Message)
	}
	return plainly(found.Message)
}

// podBlocker is why a pod is not ready, empty for other objects.
func podBlocker(o *unstructured.Unstructured) string {
	if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Pod") {
		return ""
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		return ""
	}
	return readiness.Blocker(pod)
}

// plainly puts the two sentences of kstatus that sound like more than they are in other words.
func plainly(message string) string {
	if message == "" || strings.HasPrefix(message, "Resource is ") {
		return nothingWaited
	}
	return message
}

// enumerateCounters says which numbers are reported, or otherwise.
func enumerateCounters(o *unstructured.Unstructured, otherwise string) string {
	var out []string
	for _, c := range counters(o.Object) {
		out = append(out, fmt.Sprintf("%s %d", c.Name, c.Value))
	}
	return cmp.Or(strings.Join(out, ", "), otherwise)
}

// sentence joins what there is by colons.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}
