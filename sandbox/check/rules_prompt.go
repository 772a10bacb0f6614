package check

import "fmt"

// This file is A1 for what it does not cost: beside a failure that lasts, what needs none of the failing writes gets there in
// its own time.

// Prompt evaluates what must be so a while after the last thing happened, although something fails: the status counts what
// there is, and the last edit was observed. The caller says that the wait was longer than every timer, that managers run
// and see everything, and that statuses can be written; and, with observes, that an edit can be observed: whoever cannot
// record a revision, or claim children, may not say that it has seen the edit. What says what fails, for the sentence.
func Prompt(h *History, rv uint64, what string, observes bool, kinds ...Kind) []Violation {
	s := h.At(rv)
	var found []Violation
	for _, k := range eachRemembering(kinds) {
		r := &rest{h: h, s: s, k: k}
		for _, parent := range s.List(k.Parents, "") {
			if parent.GetDeletionTimestamp() != nil {
				continue
			}
			observed := k.ObservedGeneration(parent)
			if observed < parent.GetGeneration() && !observes {
				continue
			}
			if observed < parent.GetGeneration() {
				r.violationf("A1", k.Parents, parent, "beside a failure (%s), nobody has observed generation %d for minutes", what, parent.GetGeneration())
				continue
			}
			for _, sentence := range k.Miscounted(s, parent) {
				r.violationf("A1", k.Parents, parent, "%s", fmt.Sprintf("beside a failure (%s), its status is minutes old: %s", what, sentence))
			}
		}
		found = append(found, r.found...)
	}
	return once(found)
}
