package check

import (
	"cmp"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file is C1 at rest: what the spec asks for is there, or something stands in the way that a controller can only
// wait for, and the status does not say otherwise; and P1, nowhere is one too many.

// left is what a parent lacks.
type left struct {
	// waiting names a child that a controller can only wait for: it is going, or does not serve yet. held names a place
	// that holds too few because of such a child, or because the place is taken.
	waiting, held string
	// missing and surplus name places that hold too few or too many, stray says of what child in what it differs.
	missing, surplus, stray string
	// vacant names an empty place whose revision is lost. No other child waits for it.
	vacant string
	// twins names a place that holds two children of one revision. Nothing is a reason for that.
	twins  string
	wanted int
}

// reached compares what there is with what the spec asks for.
func (r *rest) reached(parent client.Object) {
	if r.k.ObservedGeneration(parent) < parent.GetGeneration() {
		return // that is said
	}
	if r.k.Most != nil && len(r.k.Units(r.s, parent)) == 0 {
		r.enough(parent) // there are no places
	}
	l := r.left(parent)
	switch budget := r.k.Budget(parent, l.wanted); {
	case l.twins != "" && r.k.Most == nil:
		r.violationf("P1", r.k.Parents, parent, "two children of one revision are at %s", l.twins)
	case l.missing != "":
		r.violationf("C1", r.k.Parents, parent, "nothing is at %s, and nothing stands in the way", l.missing)
	case l.waiting != "" || l.held != "":
		// What is old may have to wait for that.
	case l.surplus != "" && r.k.Most == nil: // otherwise it is P2
		r.violationf("P1", r.k.Parents, parent, "%s, and nothing stands in the way", l.surplus)
	case l.stray != "" && budget != (Budget{}):
		r.violationf("C1", r.k.Parents, parent, "the rollout has stopped, and nothing stands in the way: of %s", l.stray)
	}
	if unsaid := l.missing + l.held + l.vacant + l.surplus + l.stray; unsaid != "" && !explains(parent) {
		r.violationf("C1", r.k.Parents, parent, "the spec is not reached, and no condition of the status says why")
	}
}

// enough is C1 for kinds that ask for a number of children.
func (r *rest) enough(parent client.Object) {
	all := Unit{Children: r.s.Owned(r.k.Children, parent.GetUID())}
	for _, child := range all.Children {
		if child.GetDeletionTimestamp() != nil || !r.k.Available(child, parent, time.Time{}) {
			return // it may be waited for
		}
	}
	if most := r.k.Most(parent); len(all.Children) < most {
		r.violationf("C1", r.k.Parents, parent, "it has %d %s and asks for %d", len(all.Children), r.k.Children.Resource, most)
	}
}

func (r *rest) left(parent client.Object) left {
	var l left
	ordered, blocked := r.k.Ordered != nil && r.k.Ordered(parent), false
	for _, u := range r.k.Units(r.s, parent) {
		alive, waiting := r.k.alive(u), r.waiting(u, parent)
		l.waiting = cmp.Or(waiting, l.waiting)
		vacant := u.Wanted && len(u.Children) == 0 && (u.Vacant || u.Guarded && r.guardLost(parent, u))
		switch {
		case vacant:
			l.vacant = u.Name
		case u.Wanted && len(u.Children) == 0:
			l.lacks(u, ordered && blocked)
		default:
			l.surplus = cmp.Or(surplus(u, alive), l.surplus)
		}
		if r.twins(alive) {
			l.twins = u.Name
		}
		if u.Wanted {
			l.wanted++
			blocked = blocked || waiting != "" || len(alive) == 0 && !vacant
			l.stray = cmp.Or(r.stray(u, parent), l.stray)
		}
	}
	if r.k.Ordered == nil && l.waiting != "" {
		l.held, l.missing = l.missing, "" // whether one waits for the other, only the kind could say
	}
	return l
}

// surplus says what is too much at a place, "" if nothing is.
func surplus(u Unit, alive []client.Object) string {
	switch {
	case !u.MayStay && len(alive) > 0:
		return fmt.Sprintf("%s is at %s, where none may be", alive[0].GetName(), u.Name)
	case len(alive) > 1:
		return fmt.Sprintf("%d children are at %s", len(alive), u.Name)
	}
	return ""
}

// stray says of which child of a wanted place in what it differs from what the parent asks for, "" if none does.
func (r *rest) stray(u Unit, parent client.Object) (stray string) {
	if u.Guarded || u.Taken {
		return ""
	}
	for _, child := range r.k.alive(u) {
		if strays := r.k.StraysNow(child, parent); strays != "" {
			stray = child.GetName() + ", " + strays
		}
	}
	return stray
}

// lacks notes that a place holds no child. A place that is taken may stay so, and where there is an order, one may wait
// for those before it.
func (l *left) lacks(u Unit, waits bool) {
	if u.Taken || waits {
		l.held = u.Name
	} else {
		l.missing = u.Name
	}
}

// waiting names a child of a place that a controller can only wait for, "" if there is none.
func (r *rest) waiting(u Unit, parent client.Object) string {
	for _, child := range u.Children {
		if child.GetDeletionTimestamp() != nil || !r.k.Available(child, parent, time.Time{}) {
			return child.GetName()
		}
	}
	return ""
}

// twins reports whether two children of a place come from one revision.
func (r *rest) twins(children []client.Object) bool {
	seen := map[client.Object]bool{}
	for _, child := range children {
		from := r.k.named(r.s, child)
		if from != nil && seen[from] {
			return true
		}
		seen[from] = true
	}
	return false
}

// explains reports whether a condition says that something is not as it should be. A status without conditions speaks
// by its counters only.
func explains(parent client.Object) bool {
	list, _ := content.At(content.Tree(parent), []string{"status", "conditions"}).([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["status"] != "True" && c["message"] != "" && c["message"] != nil {
			return true
		}
	}
	return len(list) == 0
}
