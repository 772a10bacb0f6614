package catset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file holds CatSets whose hook wants to know of an object beside them: a ConfigMap with the images that are
// allowed. What the hook answers follows from the parent alone all the same; without the permission it answers with an
// error.

// Approved CatSets are run by [ApprovedController].
const Approved Limits = "approved"

// ApprovedController returns the controller of approved CatSets, whose hooks are at those URLs.
func ApprovedController(sync, customize, timeout string) *v1alpha1.CompositeController {
	cc := controller(Approved, sync, timeout)
	cc.Name = "check-" + string(Approved)
	cc.Spec.ParentResource.Resource = Resource.Resource
	cc.Spec.Hooks.Customize = &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &customize, Timeout: &timeout}}
	return cc
}

// Permit is the ConfigMap that allows images to a CatSet, to be applied.
func Permit(namespace, name string, images ...string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(permitOf(name), namespace).WithData(map[string]string{"images": strings.Join(images, " ")})
}

func permitOf(parent string) string { return parent + "-permit" }

// Customize answers the customize hook's question with that body: a CatSet wants to be told of its permit.
func Customize(body []byte) (map[string]any, error) {
	var q struct {
		Parent *metav1.PartialObjectMetadata `json:"parent"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("no question: %w", err)
	}
	if q.Parent == nil {
		return nil, errNoObject
	}
	return map[string]any{"relatedResources": []any{map[string]any{
		"apiVersion": "v1", "resource": configMaps.Resource, "names": []any{permitOf(q.Parent.Name)},
	}}}, nil
}

// Permitted reports whether what is asked about may be answered: what the parent asks for is allowed, or it needs no
// permit.
func (q *Question) Permitted() bool {
	if LimitsOf(q.Parent) != Approved {
		return true
	}
	images, _, _ := unstructured.NestedString(q.permit().Object, "data", "images")
	return slices.Contains(strings.Fields(images), Image(q.Parent))
}

// permit is what the question says of the permit, empty if that is not there.
func (q *Question) permit() *unstructured.Unstructured {
	if permit := q.Related["ConfigMap.v1"][permitOf(q.Parent.GetName())]; permit != nil {
		return permit
	}
	return &unstructured.Unstructured{}
}
