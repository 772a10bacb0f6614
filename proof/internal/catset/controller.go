package catset

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file holds what an administrator applies for CatSets: the custom resource and its controllers.

// Limits is which of the controllers runs a CatSet: each has limits of its own. It is a label of the CatSet.
type Limits string

// The controllers. OneByOne names no limit, which is Metacontroller's way; Together may have two pods down at once;
// HeldBack keeps the last pod of the answer, name-0, at its revision; InPlace changes pods instead of replacing them;
// Generated selects children by the UID of their parent.
const (
	OneByOne  Limits = "one-by-one"
	Together  Limits = "together"
	HeldBack  Limits = "held-back"
	InPlace   Limits = "in-place"
	Generated Limits = "generated"
	// Attached is for the DecoratorController.
	Attached Limits = "attached"
)

const limitsLabel = "check.cairn.dev/limits"

type limits struct{ maxUnavailable, partition int }

var all = map[Limits]limits{
	OneByOne:  {maxUnavailable: 1},
	Together:  {maxUnavailable: 2},
	HeldBack:  {maxUnavailable: 2, partition: 1},
	InPlace:   {maxUnavailable: 1},
	Generated: {maxUnavailable: 2},
	Approved:  {maxUnavailable: 2},
	Divided:   {maxUnavailable: 2},
}

// LimitsOf is which of the controllers runs a CatSet.
func LimitsOf(parent client.Object) Limits { return Limits(parent.GetLabels()[limitsLabel]) }

func limitsOf(parent client.Object) limits { return all[LimitsOf(parent)] }

// CRD is the manifest of the custom resource.
const CRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: catsets.check.cairn.dev
spec:
  group: check.cairn.dev
  scope: Namespaced
  names: {kind: CatSet, plural: catsets, singular: catset}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [selector, template]
            properties:
              replicas: {type: integer, minimum: 0, default: 1}
              note: {type: string}
              prefix: {type: string}
              selector: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// Controllers returns the CompositeControllers. Their hook is at that URL, and is waited for as long as timeout says, a
// Go duration.
func Controllers(url, timeout string) []*v1alpha1.CompositeController {
	return controllers("check-", Resource.Resource, "", url, timeout)
}

// controllers are those of one resource of parents. Their names begin with prefix, and revisions of parents that are in
// no namespace are in home.
func controllers(prefix, resource, home, url, timeout string) []*v1alpha1.CompositeController {
	var out []*v1alpha1.CompositeController
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == Approved || name == Divided {
			continue // they need other hooks
		}
		cc := controller(name, url, timeout)
		cc.Name = prefix + string(name)
		cc.Spec.ParentResource.Resource, cc.Spec.ParentResource.RevisionHistory.Namespace = resource, home
		out = append(out, cc)
	}
	return out
}

func controller(name Limits, url, timeout string) *v1alpha1.CompositeController {
	rolled := &v1alpha1.ChildUpdateStrategy{
		Method: v1alpha1.ChildUpdateRollingRecreate,
		StatusChecks: v1alpha1.ChildUpdateStatusChecks{Conditions: []v1alpha1.StatusConditionCheck{
			{Type: "Ready", Status: new("True")},
		}},
	}
	if name == InPlace {
		rolled.Method = v1alpha1.ChildUpdateRollingInPlace
	}
	if l := all[name]; name != OneByOne {
		rolled.MaxUnavailable = new(intstr.FromInt(l.maxUnavailable))
		rolled.Partition = new(int32(l.partition))
	}
	return &v1alpha1.CompositeController{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CompositeController"},
		Spec: v1alpha1.CompositeControllerSpec{
			ParentResource: v1alpha1.ParentResource{
				ResourceRule:    v1alpha1.ResourceRule{APIVersion: Kind.GroupVersion().String()},
				LabelSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{limitsLabel: string(name)}},
				RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: []string{"spec.template"}, Limit: new(int32(Limit))},
			},
			ChildResources: []v1alpha1.ChildResource{
				{ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"}, UpdateStrategy: rolled},
				{
					ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "configmaps"},
					UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateInPlace},
				},
			},
			GenerateSelector: new(name == Generated),
			Hooks:            &v1alpha1.CompositeControllerHooks{Sync: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &url, Timeout: &timeout}}},
		},
	}
}
