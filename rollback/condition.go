package rollback

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// This file reads conditions. What the next manager reads back is a list of key=value in them, which stands alone or in
// brackets at the end of a sentence: the sentence may be written anew.

// stored returns a condition of parent without its time, and a zero one if there is none: status.conditions of an
// unstructured object, or Status.Conditions of a Go type, whatever the type of the conditions is.
func stored(parent runtime.Object, kind string) metav1.Condition {
	if u, ok := parent.(runtime.Unstructured); ok {
		return storedUntyped(u.UnstructuredContent(), kind)
	}
	status := field(reflect.ValueOf(parent), "Status")
	conditions := field(status, "Conditions")
	if conditions.Kind() != reflect.Slice {
		return metav1.Condition{}
	}
	for i := range conditions.Len() {
		c := conditions.Index(i)
		if text(c, "Type") == kind {
			return metav1.Condition{
				Type: kind, Status: metav1.ConditionStatus(text(c, "Status")), Reason: text(c, "Reason"), Message: text(c, "Message"),
			}
		}
	}
	return metav1.Condition{}
}

func storedUntyped(parent map[string]any, kind string) metav1.Condition {
	list, _, _ := unstructured.NestedFieldNoCopy(parent, "status", "conditions")
	items, _ := list.([]any)
	for _, item := range items {
		c, _ := item.(map[string]any)
		if c["type"] == kind {
			status, _ := c["status"].(string)
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
		}
	}
	return metav1.Condition{}
}

// field is a field of a struct or of what a pointer points at, the zero Value if there is none.
func field(v reflect.Value, name string) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

func text(v reflect.Value, name string) string {
	if f := field(v, name); f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

// tail are the values in the brackets at the end of a message, and what is before them.
func tail(message string) (sentence string, values map[string]string) {
	i := strings.LastIndex(message, " [")
	if i < 0 || !strings.HasSuffix(message, "]") {
		return message, nil
	}
	return message[:i], valuesOf(message[i+2 : len(message)-1])
}

func valuesOf(list string) map[string]string {
	out := map[string]string{}
	for _, item := range strings.Fields(list) {
		if key, value, ok := strings.Cut(item, "="); ok {
			out[key] = value
		}
	}
	return out
}
