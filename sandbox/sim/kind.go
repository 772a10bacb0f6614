package sim

import (
	"context"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/sandbox/check"
)

// This file says what the simulation must know about a kind of parent. Adding a controller is filling in one of these.

// Kind is one kind of parent, its controller, and what people do to it.
type Kind struct {
	// Hosted are the controllers of a kind that have no name in the manager's registry, because people describe them: the
	// world plays their hook.
	Hosted []Hosted
	// Later is how many of them, the last ones, are there only from the second start of a manager on.
	Later int
	// Check tells the rules about the kind, Also about more children of the same parents.
	Check check.Kind
	Also  []check.Kind
	// Scheduled is true if children say nothing about the node that they are for, so that any will do.
	Scheduled bool
	// New returns a parent as a user creates it. It selects its children by labels that no other name has.
	New func(chance *rand.Rand, namespace, name string) client.Object
	// Edits are what users change in a spec.
	Edits []Edit
	// Restore puts what a revision holds into a parent, as an undo does. Nil if there are no revisions.
	Restore func(parent, revision client.Object) error
	// Child returns a child as somebody makes it by hand who has copied one: matching, and owned by nobody.
	Child func(chance *rand.Rand, parent client.Object, nodes []string) client.Object
	// Copy returns a copy of a revision as somebody makes it by hand, and what that is called. Nil is that of a workload's.
	Copy func(chance *rand.Rand, revision client.Object) (what string, copied client.Object)
	// Tend changes what users write on a child for its controller to read. Nil if it reads nothing.
	Tend func(chance *rand.Rand, child client.Object)
}

// Hosted is one controller that people describe.
type Hosted struct {
	Name  string
	Build func(ctx context.Context, env *host.Environment) (*host.Controller, error)
}

// minReady is the name of the edit that sets how long a child must be ready until it counts.
const minReady = "minReadySeconds"

// scaleEdit is the name of the edit that sets how many children a parent asks for.
const scaleEdit = "the scale"

// Edit is one way to change a spec.
type Edit struct {
	Name string
	// Weight is how often users do it, against the others.
	Weight int
	// Do changes parent, which is a copy.
	Do func(chance *rand.Rand, parent client.Object)
}

// resources are all that its controllers watch. Some may come twice.
func (k Kind) resources() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, rule := range k.rules() {
		out = append(out, rule.Resources()...)
	}
	return out
}

// rules are all that tell of the kind.
func (k Kind) rules() []check.Kind { return append([]check.Kind{k.Check}, k.Also...) }

func (k Kind) hasRevisions() bool { return k.Check.HasRevisions() }
