package children

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/refusal"
)

// This file holds the values that a comparison leads to.

// Wish is a child that is there, and what is wanted of it.
type Wish struct {
	// Variant tells apart the desired states that one child is compared with in the same pass. Use few.
	Variant           string
	Observed, Desired *unstructured.Unstructured
	// InPlace says that the child would be changed, and not replaced.
	InPlace bool
}

// asked names a wish while a pass goes on.
type asked struct {
	uid     types.UID
	desired *unstructured.Unstructured
}

func (w Wish) key() asked { return asked{w.Observed.GetUID(), w.Desired} }

// Likeness says whether a child is what is wanted.
type Likeness int

const (
	// Doubt says that only the API server can tell, and [Pass.Ask] has not asked it yet.
	Doubt Likeness = iota
	// Same says that to apply what is wanted would change nothing of its content.
	Same
	// Different says that it would.
	Different
	// Unknown says that the API server did not tell when it was asked. The child is to stay as it is.
	Unknown
)

// Verdict is what a comparison has led to.
type Verdict struct {
	Is Likeness
	// Why is the reason if it is Unknown.
	Why *HeldError
	// Result is what applying comes to where children are changed by merge patches. By server-side apply it says only whether
	// there is a difference.
	Result apply.Result
}

// The reasons of a [HeldError].
const (
	// ComparisonRefused says that nobody can tell whether a child is what is wanted.
	ComparisonRefused = "ComparisonRefused"
	// ReplacementRefused says that a child cannot be made again once it is deleted.
	ReplacementRefused = "ReplacementRefused"
)

// HeldError says why a child that may not be what is wanted stays as it is. Show it on the parent, and try again.
type HeldError struct {
	// Reason is one word, for a condition.
	Reason string
	// Child names the child for people.
	Child string
	// Refusal is what the API server said.
	Refusal error
}

// Error says what happened, to which child, and what to do.
func (e *HeldError) Error() string {
	if e.Reason == ComparisonRefused {
		return fmt.Sprintf("%s stays as it is, because the API server refuses to say whether it is what the hook asks for (%s). "+
			"Change what refuses it, or what the hook asks for", e.Child, refusal.Line(e.Refusal))
	}
	return fmt.Sprintf("%s is not deleted, because the API server would refuse the one to replace it (%s). "+
		"Change what refuses it, or what the hook asks for; delete %s yourself if it may go without a replacement",
		e.Child, refusal.Line(e.Refusal), e.Child)
}

// Unwrap returns what the API server said.
func (e *HeldError) Unwrap() error { return e.Refusal }
