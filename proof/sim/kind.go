package sim

import (
	"context"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file says what the simulation must know about a kind of parent. Adding a controller is filling in one of these.
// What users do to it is said in the words of package scenario, so that what a seed did can be put into a script.

// Kind is one kind of parent, its controller, and what people do to it.
type Kind struct {
	// Hosted are the controllers of a kind that have no name in the manager's registry, because people describe them: the
	// world plays their hook.
	Hosted []Hosted
	// Add, if it is set, adds the controller of a kind that has no name in the registry either, because it is an author's.
	Add func(ctx context.Context, mgr ctrl.Manager) error
	// Releases, if there are any, are as many releases of it: each start of a manager is of the next one, and the first
	// follows the last.
	Releases []func(ctx context.Context, mgr ctrl.Manager) error
	// Loose says that such a controller knows its parents without Go types.
	Loose bool
	// Before are objects that are there before the first manager starts.
	Before []client.Object
	// Later is how many of them, the last ones, are there only from the second start of a manager on.
	Later int
	// Check tells the rules about the kind, Also about more children of the same parents.
	Check check.Kind
	Also  []check.Kind
	// Timed is true if the controller goes by a clock, which may be wrong.
	Timed bool
	// Scheduled is true if children say nothing about the node that they are for, so that any will do.
	Scheduled bool
	// New creates a parent. It selects its children by labels that no other name has.
	New func(chance *rand.Rand, k Kind, name string) scenario.Step
	// Edits are what users change in a spec.
	Edits []Edit
	// Undo goes back to a revision, and is false if it holds nothing that a parent can be given. Nil if there are no
	// revisions.
	Undo func(k Kind, parent, revision client.Object) (scenario.Step, bool)
	// Child makes a child by hand, as somebody does who has copied one: matching, and owned by nobody. Nil if there are no
	// children.
	Child func(chance *rand.Rand, k Kind, parent client.Object, nodes []string) scenario.Step
	// Copy makes a copy of a revision by hand, and says what that is called.
	Copy func(chance *rand.Rand, k Kind, parent, revision client.Object) (what string, step scenario.Step)
	// Tend changes what users write on a child for its controller to read. Nil if it reads nothing.
	Tend func(chance *rand.Rand) fields
}

// fields are the options of a step: values by option or path, as scripts write them.
type fields = map[string]string

// Hosted is one controller that people describe.
type Hosted struct {
	Name  string
	Build func(ctx context.Context, env *host.Environment) (*hosting.Controller, error)
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
	// Fields are what it changes of the parent.
	Fields func(chance *rand.Rand, parent client.Object) fields
	// If says for which parents there is such an edit; nil means for all.
	If func(parent client.Object) bool
}

func (e Edit) isFor(parent client.Object) bool { return e.If == nil || e.If(parent) }

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

func (k Kind) hasChildren() bool { return !k.Check.Children.Empty() }
