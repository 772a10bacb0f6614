package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// This file says with whose rights a controller that an object describes reads and writes.

// ServiceAccountAnnotation is the annotation of a CompositeController, a DecoratorController or a HistoryPolicy that
// names a ServiceAccount as NAMESPACE/NAME. The manager acts for it with that account's rights and no others.
const ServiceAccountAnnotation = "cairn.dev/service-account"

// ServiceAccountOf returns the ServiceAccount that o names with [ServiceAccountAnnotation], the zero value if it names
// none. It returns an error if that is no name of one: tell who wrote it, there is no account to fall back to.
func ServiceAccountOf(o metav1.Object) (types.NamespacedName, error) {
	text, ok := o.GetAnnotations()[ServiceAccountAnnotation]
	if !ok {
		return types.NamespacedName{}, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("annotation %s: %q names no ServiceAccount; NAMESPACE/NAME does",
			ServiceAccountAnnotation, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
