package children

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// This file holds the results of a comparison.

// Pair is an existing child and its desired state.
type Pair struct {
	// Variant tells apart the desired states that one child is compared with in the same pass. Use few.
	Variant           string
	Observed, Desired *unstructured.Unstructured
	// InPlace says that the child would be changed, and not replaced.
	InPlace bool
}

// asked is the key of a wish during a pass.
type asked struct {
	uid     types.UID
	desired *unstructured.Unstructured
}

func (w Pair) key() asked { return asked{w.Observed.GetUID(), w.Desired} }

// Likeness says whether a child is as desired.
type Likeness int

const (
	// Doubt says that only the API server can tell, and [Pass.Ask] has not asked it yet.
	Doubt Likeness = iota
	// Same says that applying the desired state would change nothing of its content.
	Same
	// Different says that it would.
	Different
	// Unknown says that the API server gave no answer when it was asked. The child is to stay as it is.
	Unknown
)

// Verdict is the result of a comparison.
type Verdict struct {
	Is Likeness
	// Why is the reason if it is Unknown.
	Why *HeldError
	// Result is what applying would do if children are changed by merge patches. With server-side apply it only says
	// whether there is a difference.
	Result apply.Result
}

// The reasons of a [HeldError].
const (
	// ComparisonRefused says that it cannot be known whether a child is as desired.
	ComparisonRefused = "ComparisonRefused"
	// ReplacementRefused says that a child cannot be recreated once it is deleted.
	ReplacementRefused = "ReplacementRefused"
)

// HeldError says why a child that may not be as desired stays as it is. Show it on the parent, and try again.
type HeldError struct {
	// Reason is one word, for a condition.
	Reason string
	// Child names the child for users.
	Child string
	// Refusal is what the API server said.
	Refusal error
}

// Error says what happened, to which child, and what to do.
func (e *HeldError) Error() string {
	if e.Reason == ComparisonRefused {
		return fmt.Sprintf("%s stays as it is, because the API server refuses to say whether it is what the hook asks for (%s). "+
			"Change what refuses it, or what the hook asks for", e.Child, line(e.Refusal))
	}
	return fmt.Sprintf("%s is not deleted, because the API server would refuse the one to replace it (%s). "+
		"Change what refuses it, or what the hook asks for; delete %s yourself if it may go without a replacement",
		e.Child, line(e.Refusal), e.Child)
}

// Unwrap returns what the API server said.
func (e *HeldError) Unwrap() error { return e.Refusal }
