package catset

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/proof/check"
)

// This file holds CatSets that two CompositeControllers have: one makes the pods, the other one the ConfigMap, and both
// roll them out by the same revisions.

// Divided CatSets are run by [DividedControllers].
const Divided Limits = "divided"

// The names of the two controllers.
const (
	dividedPods    = "check-divided-pods"
	dividedConfigs = "check-divided-configs"
)

// DividedControllers returns the two controllers. The hook of each answers with its own kind of children only.
func DividedControllers(podsURL, configsURL, timeout string) []*v1alpha1.CompositeController {
	first, second := controller(Divided, podsURL, timeout), controller(Divided, configsURL, timeout)
	first.Name, second.Name = dividedPods, dividedConfigs
	first.Spec.ChildResources = first.Spec.ChildResources[:1]
	second.Spec.ChildResources = second.Spec.ChildResources[1:]
	second.Spec.ChildResources[0].UpdateStrategy = &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateRollingInPlace}
	out := []*v1alpha1.CompositeController{first, second}
	for _, cc := range out {
		cc.UID = types.UID(cc.Name) // they know each other by it
		cc.Spec.ParentResource.Resource = Resource.Resource
	}
	return out
}

// DividedKinds tell the rules what such a CatSet is: both kinds of children belong to revisions, and each controller
// says in a condition of its own whether its children are updated.
func DividedKinds() []check.Kind {
	all := composites(Kind, Resource)
	const says = "cairn.dev/Updated."
	pods, configs := all[0], all[1]
	configs.Rolled, configs.FieldPaths, configs.Limit = true, pods.FieldPaths, pods.Limit
	pods.Says, configs.Says = says+dividedPods, says+dividedConfigs
	pods.Also, configs.Also = []string{configs.Says}, []string{pods.Says}
	return []check.Kind{pods.Kind(), configs.Kind()}
}
