package parents

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file is R4 for composite parents: what it means that a rollout is over, also where several controllers have the
// same parents. Then each says so of its own children, and the condition Updated says so if all of them do, of one
// generation.

// conditionUpdated is the type of the condition that says whether a rollout is over.
const conditionUpdated = "Updated"

// complete reports whether the controller of these children says that they are updated, as the parent is now.
func (c Composite) complete(parent client.Object) bool {
	if c.Says == "" {
		return saysTrue(parent, conditionUpdated, 0) && c.observed(parent) == parent.GetGeneration()
	}
	return saysTrue(parent, c.Says, parent.GetGeneration())
}

// disagree returns the condition of a controller that does not say what Updated says of all of them, "" if there is
// none.
func (c Composite) disagree(parent client.Object, generation int64) string {
	if c.Says == "" || !saysTrue(parent, conditionUpdated, 0) {
		return ""
	}
	for _, says := range append(slices.Clone(c.Also), c.Says) {
		if !saysTrue(parent, says, generation) {
			return says
		}
	}
	return ""
}

// saysTrue reports whether a condition of a status is True, of that generation; of any if that is zero.
func saysTrue(parent client.Object, conditionType string, generation int64) bool {
	c := content.Condition(parent, conditionType)
	return c != nil && c["status"] == "True" && (generation == 0 || content.Number(c["observedGeneration"]) == generation)
}

// namesOthers reports whether a revision names children of other kinds.
func (c Composite) namesOthers(revision client.Object) bool {
	list, _ := content.AsTree(revision)["children"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		names, _ := entry["names"].([]any)
		return len(names) > 0 && (entry["apiGroup"] != c.Child.Group || entry["kind"] != c.Child.Kind)
	})
}
