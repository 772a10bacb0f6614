package children

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"
)

// This file says what is free again once a child is deleted, and would fail a trial until then: the ports and addresses
// of a Service, and its share of a quota. It is pure.

// released returns o without the ports and addresses that are allocated to the child that it is to replace. A trial
// with them would be refused; without them the API server checks all the rest. It may write to o.
func released(o, observed *unstructured.Unstructured) *unstructured.Unstructured {
	if !isCore(o, "Service") {
		return o
	}
	spec, _ := o.Object["spec"].(map[string]any)
	held, _ := observed.Object["spec"].(map[string]any)
	if address, _ := spec["clusterIP"].(string); address != "" && address != corev1.ClusterIPNone && address == held["clusterIP"] ||
		spec["clusterIP"] == nil && sameFirst(spec["clusterIPs"], held["clusterIPs"]) {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	if spec["healthCheckNodePort"] != nil && integer(spec["healthCheckNodePort"]) == integer(held["healthCheckNodePort"]) {
		delete(spec, "healthCheckNodePort")
	}
	ports := map[int64]bool{}
	for _, port := range objects(held["ports"]) {
		ports[integer(port["nodePort"])] = true
	}
	for _, port := range objects(spec["ports"]) {
		if n := integer(port["nodePort"]); n != 0 && ports[n] {
			delete(port, "nodePort")
		}
	}
	return o
}

func isCore(o *unstructured.Unstructured, kind string) bool {
	return o.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind(kind).GroupKind()
}

func sameFirst(a, b any) bool {
	x, _ := a.([]any)
	y, _ := b.([]any)
	return len(x) > 0 && len(y) > 0 && x[0] == y[0] && x[0] != corev1.ClusterIPNone
}

// integer reads a number as hooks and caches hold it, zero if it is none.
func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// fits reports whether a quota has enough for what a trial asked for once the child is deleted. Without excess it
// returns false: then the refusal had another reason.
func fits(excess []excess, observed *unstructured.Unstructured) bool {
	for _, e := range excess {
		if !e.leaves(freed(observed, e.Resource)) {
			return false
		}
	}
	return len(excess) > 0
}

// freed is how much of a resource of a quota a child uses. If that is not known it is zero.
func freed(child *unstructured.Unstructured, name string) resource.Quantity {
	one, none := *resource.NewQuantity(1, resource.DecimalSI), resource.Quantity{}
	typ, _, _ := unstructured.NestedString(child.Object, "spec", "type")
	switch {
	case isCore(child, "Pod"):
		return freedByPod(child, name)
	case name == "services.loadbalancers" && typ == string(corev1.ServiceTypeLoadBalancer):
		return one
	case name == "services.nodeports" && (typ == string(corev1.ServiceTypeNodePort) || typ == string(corev1.ServiceTypeLoadBalancer)):
		ports, _, _ := unstructured.NestedSlice(child.Object, "spec", "ports")
		return *resource.NewQuantity(int64(len(ports)), resource.DecimalSI)
	case name == "requests.storage":
		text, _, _ := unstructured.NestedString(child.Object, "spec", "resources", "requests", "storage")
		if q, err := resource.ParseQuantity(text); err == nil {
			return q
		}
		return none
	case strings.HasPrefix(name, "count/"), !strings.ContainsAny(name, "./"):
		return one // a count of objects of the kind: only pods use other resources
	}
	return none
}

func freedByPod(child *unstructured.Unstructured, name string) resource.Quantity {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, &pod); err != nil {
		return resource.Quantity{}
	}
	if name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return resource.Quantity{} // it does not count any more
	}
	if name == string(corev1.ResourcePods) {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if limit, ok := strings.CutPrefix(name, "limits."); ok {
		return resourcehelper.PodLimits(&pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(limit)]
	}
	return resourcehelper.PodRequests(&pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(strings.TrimPrefix(name, "requests."))]
}
