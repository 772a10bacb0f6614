package catset

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file holds the same for a DecoratorController: CatSets that nobody runs get the same pods and the same ConfigMap
// attached. An attachment belongs to no revision: a pod that differs is replaced at once.

// seen is the annotation in which the decorator's hook says which generation of a CatSet it was told of.
const seen = "check.cairn.dev/seen"

// Annotations are what the hook wants on a CatSet itself.
func Annotations(parent *unstructured.Unstructured) map[string]any {
	return map[string]any{seen: strconv.FormatInt(parent.GetGeneration(), 10)}
}

// Decorator returns the DecoratorController, whose hooks are at those URLs.
func Decorator(sync, finalize, timeout string) *v1alpha1.DecoratorController {
	hook := func(url string) *v1alpha1.Hook {
		return &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &url, Timeout: &timeout}}
	}
	attached := func(resource string, method v1alpha1.ChildUpdateMethod) v1alpha1.Attachment {
		return v1alpha1.Attachment{
			ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: resource},
			UpdateStrategy: &v1alpha1.AttachmentUpdateStrategy{Method: method},
		}
	}
	return &v1alpha1.DecoratorController{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DecoratorController"},
		ObjectMeta: metav1.ObjectMeta{Name: "check"},
		Spec: v1alpha1.DecoratorControllerSpec{
			Resources: []v1alpha1.DecoratorResource{{
				ResourceRule:  v1alpha1.ResourceRule{APIVersion: Kind.GroupVersion().String(), Resource: Resource.Resource},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{limitsLabel: string(Attached)}},
			}},
			Attachments: []v1alpha1.Attachment{
				attached("pods", v1alpha1.ChildUpdateRecreate), attached("configmaps", v1alpha1.ChildUpdateInPlace),
			},
			Hooks: &v1alpha1.DecoratorControllerHooks{Sync: hook(sync), Finalize: hook(finalize)},
		},
	}
}

// AttachedKinds tell the rules what such a CatSet is, once for each resource of its attachments.
func AttachedKinds() []check.Kind {
	observed := func(parent client.Object) int64 {
		n, _ := strconv.ParseInt(parent.GetAnnotations()[seen], 10, 64)
		return n
	}
	pod := parents.Composite{
		Parent: Kind, Parents: Resource, Child: corev1.SchemeGroupVersion.WithKind("Pod"), Children: pods,
		Answer: Answer, Serves: Ready, Observed: observed,
	}
	config := parents.Composite{
		Parent: Kind, Parents: Resource, Child: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Children: configMaps,
		Answer: Answer, Observed: observed,
	}
	return []check.Kind{pod.Kind(), config.Kind()}
}
