package builder

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file is what an author says about a controller.

// Controller is a controller as its author describes it: a value, which [Controller.Setup] checks as a whole and gives
// to a manager. P is the type of its parents, for instance *v1.Fleet, or *unstructured.Unstructured with apiVersion and
// kind set.
type Controller[P client.Object] struct {
	// Parent is an empty parent. It has to be in a namespace, as its revisions are.
	Parent P
	// Versions are the field paths that revisions hold, for instance "spec.template" (Controller History proposal, "Target
	// Object State"). An edit of them is a rollout; what is not among them is not restored by an undo. One that the Go
	// type does not have is refused; of unstructured parents, one that the schema does not have which the API server
	// serves.
	Versions []string
	// Upgrade returns the parent of which a revision was recorded by an earlier release of this controller, whose Versions
	// or API version were others: old has that apiVersion, kind, and the fields that the revision holds. Of what it
	// returns the versioned fields count. Children that are held come back from it, and a parent that asks for the same is
	// not rolled. What is stored stays as it is, for the release to go back to. Its error, or a panic, makes the revision
	// one that cannot be read: it is kept, and a warning event says so. Optional: without it a revision is read as far as
	// its fields are among today's, and not at all where one of them seems to have been renamed, or has fields that the Go
	// type does not have any more.
	Upgrade func(old *unstructured.Unstructured) (P, error)
	// Owns are the kinds of its children, each once.
	Owns []Rule
	// Children returns what a parent wants, in the order of a rollout. It is called with the parent as it is, and with its
	// versioned fields restored from a revision. It must depend on nothing else: what it has returned for one version of a
	// parent is used again, and must not be changed. It need not set namespace, labels by which the parent selects its
	// children, owner references or revision labels. Its error, or a panic, is an event and a condition, and the pass is
	// retried. It is called twice: where the answers differ, the reason is NotDeterministic, with the field, and nothing
	// is written before the parent is edited.
	Children func(parent P) ([]client.Object, error)
	// Strategy returns how a parent is rolled. It is taken from the parent as it is, whatever it is rolled to. Optional:
	// without it one child at a time is replaced.
	Strategy func(parent P) Strategy
	// Limit returns how many revisions are kept that nothing depends on. Optional: without it 10, as the built-in kinds
	// keep.
	Limit func(parent P) int32
	// Labels returns the labels by which a parent selects its children and its revisions; all of them get these labels.
	// Optional: without it, one label of the parent's group and kind with the parent's name. Change it, and all children
	// are released.
	Labels func(parent P) map[string]string
	// Status fills the status of parent, which is a copy, from what a pass has seen. It is written if it differs.
	// Optional.
	Status func(parent P, s Summary)

	// RollBack rolls rollouts back that have exceeded [Strategy.ProgressDeadline], of parents with the annotation
	// cairn.dev/on-deadline: inspect.RollBack. Optional.
	RollBack pass.RollBack

	// Name is the controller's, for logs, metrics and events. Optional: without it, the kind in small letters.
	Name string
	// Workers is the number of parents that are reconciled concurrently. Optional: zero means 5.
	Workers int
}
