package rollback

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file parses conditions. Their messages contain a list of key=value, either alone or in brackets after a
// sentence. The list is the stored format; the sentence may be reworded.

// stored returns a condition of parent without its time, or a zero one. It reads status.conditions of an unstructured
// object and Status.Conditions of a Go type, whose elements may have any type with these fields.
func stored(parent runtime.Object, kind string) metav1.Condition {
	if u, ok := parent.(runtime.Unstructured); ok {
		c := readiness.FindCondition(u.UnstructuredContent(), kind)
		if c == nil {
			return metav1.Condition{}
		}
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message}
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

// field returns a field of a struct, or of the struct behind a pointer. It is the zero Value if the field is missing.
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

// tail splits a message into its sentence and the values in the brackets at its end.
func tail(message string) (sentence string, values map[string]string) {
	i := strings.LastIndex(message, " [")
	if i < 0 || !strings.HasSuffix(message, "]") {
		return message, nil
	}
	return message[:i], valuesOf(message[i+2 : len(message)-1])
}

func valuesOf(list string) map[string]string {
	out := map[string]string{}
	for item := range strings.FieldsSeq(list) {
		if key, value, ok := strings.Cut(item, "="); ok {
			out[key] = value
		}
	}
	return out
}
