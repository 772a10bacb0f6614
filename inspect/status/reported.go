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
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file reads what the controller of any object reports in its status. kstatus knows the built-in kinds and the
// conventions (observedGeneration, Ready, Stalled, Reconciling); what it leaves out is conventions as well: phases,
// counters of replicas, work that ends.

// Counter is a number that a controller reports in the status.
type Counter struct {
	Name  string
	Value int64
}

// counters returns the numbers at the top of a status, by name, without those that count nothing of the parent's.
func counters(parent map[string]any) []Counter {
	status, _, _ := unstructured.NestedMap(parent, "status")
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
	status, _, _ := unstructured.NestedMap(parent.Object, "status")
	return !blank(status)
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
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	message, _, _ := unstructured.NestedString(o.Object, "status", "message")
	trouble := broken(o)
	switch {
	case found.Status == kstatus.FailedStatus || slices.Contains(brokenPhases, phase):
		return verdict{Failed, failure(o, found, phase, message)}
	case trouble != "":
		return verdict{Failed, trouble}
	case found.Status == kstatus.InProgressStatus:
		return inProgress("%s", delay(o, found))
	case unfinished(o):
		return inProgress("%s", cmp.Or(suspended(o), enumerateCounters(o, "it has not ended yet")))
	case kstatus.GetLegacyConditionsFn(o) != nil:
		return verdict{Done, plainly(found.Message)}
	}
	return convention(o, phase, message)
}

// Phases and conditions that are common in the status of custom resources. Any others say nothing.
var (
	brokenPhases = []string{"Failed", "Error", "Degraded"}
	movingPhases = []string{
		"Pending", "Progressing", "Paused", "Creating", "Provisioning", "Installing", "Updating", "Upgrading", "Deleting",
		"Unknown", "Missing", "Suspended",
	}
	brokenConditions = []string{"Failed", "Degraded"} // if they are true
	goodConditions   = []string{"Available", "Ready", "Synced", "Healthy", "Accepted", "Programmed", "Established", "Reconciled"}
)

// broken says that a condition or the health of an object is that it has failed, empty if none does.
func broken(o *unstructured.Unstructured) string {
	for _, kind := range brokenConditions {
		if c := readiness.FindCondition(o.Object, kind); c != nil && c.Status == string(corev1.ConditionTrue) {
			return sentence("its condition "+kind+" is True", c.Reason, c.Message)
		}
	}
	if health, why := healthOf(o); slices.Contains(brokenPhases, health) {
		return sentence("its health is "+health, why)
	}
	return ""
}

// healthOf returns the health that a status says, as Argo CD's Applications do, and why.
func healthOf(o *unstructured.Unstructured) (health, why string) {
	if said, _, err := unstructured.NestedString(o.Object, "status", "health"); err == nil {
		return said, ""
	}
	said, _, _ := unstructured.NestedStringMap(o.Object, "status", "health")
	return said["status"], said["message"]
}

// goals are the numbers that are wanted, and the counters that reach them: of whatever has replicas, of DaemonSets, and
// of what is in pods of others, as Kruise's SidecarSets.
var goals = []struct{ fields, counters []string }{
	{[]string{"spec", "replicas"}, []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"}},
	{[]string{"status", "desiredNumberScheduled"}, []string{"updatedNumberScheduled", "numberReady", "numberAvailable"}},
	{[]string{"status", "matchedPods"}, []string{"updatedPods", "readyPods"}},
}

// convention is the verdict on objects of kinds that kstatus does not know, and in whose conditions it finds no
// trouble.
func convention(o *unstructured.Unstructured, phase, message string) verdict {
	if why := waiting(o, phase, message); why != "" {
		return inProgress("%s", why)
	}
	for _, g := range goals {
		want, found, err := unstructured.NestedInt64(o.Object, g.fields...)
		if err != nil || !found {
			continue
		}
		for _, name := range g.counters {
			has, reported, err := unstructured.NestedInt64(o.Object, "status", name)
			if err == nil && reported && has < want && (!strings.HasPrefix(name, "updated") || !partitioned(o.Object["spec"])) {
				return inProgress("%s is %d, and %s is %d", name, has, strings.Join(g.fields, "."), want)
			}
		}
	}
	if readiness.FindCondition(o.Object, "Ready") != nil {
		return verdict{Done, "its condition Ready is True"}
	}
	return verdict{Done, enumerateCounters(o, nothingWaited)}
}

// waiting says what the conditions, the phase or the health of an object wait for, empty if none does.
func waiting(o *unstructured.Unstructured, phase, message string) string {
	for _, kind := range goodConditions {
		if c := readiness.FindCondition(o.Object, kind); c != nil && c.Status != string(corev1.ConditionTrue) {
			return sentence("its condition "+kind+" is "+c.Status, c.Reason, c.Message)
		}
	}
	if c := readiness.FindCondition(o.Object, "Progressing"); c != nil && c.Status == string(corev1.ConditionTrue) && !good(o) {
		return sentence("its condition Progressing is True", c.Reason, c.Message)
	}
	if slices.Contains(movingPhases, phase) {
		return sentence("its phase is "+phase, message)
	}
	if health, why := healthOf(o); slices.Contains(movingPhases, health) {
		return sentence("its health is "+health, why)
	}
	if ready, says, err := unstructured.NestedBool(o.Object, "status", "ready"); err == nil && says && !ready {
		return "its status says that it is not ready"
	}
	return ""
}

// good reports whether a condition says that an object is as it should be.
func good(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(goodConditions, func(kind string) bool {
		c := readiness.FindCondition(o.Object, kind)
		return c != nil && c.Status == string(corev1.ConditionTrue)
	})
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
	if !retried && !counted {
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
func failure(o *unstructured.Unstructured, found *kstatus.Result, phase, message string) string {
	if why := podBlocker(o); why != "" {
		return why
	}
	if c := readiness.FindCondition(o.Object, "Failed"); c != nil && c.Status == string(corev1.ConditionTrue) {
		return sentence("", c.Reason, c.Message)
	}
	if len(found.Conditions) > 0 {
		return sentence("", found.Conditions[0].Reason, found.Conditions[0].Message)
	}
	return sentence("its phase is "+phase, message)
}

// delay says what an object that is in progress lacks.
func delay(o *unstructured.Unstructured, found *kstatus.Result) string {
	if why := cmp.Or(podBlocker(o), suspended(o)); why != "" {
		return why
	}
	if observed, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); ok && observed < o.GetGeneration() {
		return "its controller has not observed the latest spec"
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
