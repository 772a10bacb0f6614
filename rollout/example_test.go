package rollout_test

// Examples for the documentation.

import (
	"fmt"

	"github.com/cairn-dev/cairn/rollout"
)

// Three nodes, of which one is broken already. It costs nothing to replace; the others wait, because the budget of one
// is used up by it.
func ExampleNew() {
	units := []rollout.Unit{
		{Key: "node-1", Old: &rollout.Instance{Name: "web-x7", Revision: "5d8f", Ready: true, Available: true}},
		{Key: "node-2", Old: &rollout.Instance{Name: "web-k2", Revision: "5d8f"}},
		{Key: "node-3", New: &rollout.Instance{Name: "web-p4", Revision: "9c41", Ready: true, Available: true}},
	}
	plan := rollout.New(units, rollout.Strategy{MaxUnavailable: 1})
	for _, step := range plan.Steps {
		fmt.Println(step.Verb, step.Instance, "because", step.Reason)
	}
	for _, wait := range plan.Waiting {
		fmt.Println(wait.Unit, "waits:", wait.Reason)
	}
	// Output:
	// Delete web-k2 because it comes from revision 5d8f and is not available anyway
	// node-1 waits: 1 of 3 may be unavailable, and 1 are
}

// With surge, the new instance comes first, and the old one goes when the new one is available.
func ExampleNew_surge() {
	node := rollout.Unit{
		Key: "node-1",
		Old: &rollout.Instance{Name: "web-x7", Revision: "5d8f", Ready: true, Available: true},
	}
	show := func() {
		plan := rollout.New([]rollout.Unit{node}, rollout.Strategy{MaxSurge: 1})
		for _, step := range plan.Steps {
			fmt.Println(step.Verb, step.Instance, step.Reason)
		}
		for _, wait := range plan.Waiting {
			fmt.Println("Wait", wait.Reason)
		}
	}
	show()
	node.New = &rollout.Instance{Name: "web-p4", Revision: "9c41"}
	show()
	node.New.Ready, node.New.Available = true, true
	show()
	// Output:
	// Create  web-x7 on node-1 comes from revision 5d8f (surge 1 of 1)
	// Wait web-p4 is not available yet
	// Delete web-x7 web-p4 took its place on node-1 and is available
}

// Complete is about content. An instance that conforms but is not available is updated.
func ExamplePlan_Complete() {
	units := []rollout.Unit{{Key: "node-1", New: &rollout.Instance{Name: "web-p4", Revision: "9c41"}}}
	plan := rollout.New(units, rollout.Strategy{MaxUnavailable: 1})
	fmt.Println(plan.Complete(), plan.Updated, plan.Available)
	// Output: true 1 0
}
