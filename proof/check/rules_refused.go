package check

import "fmt"

// This file is S1 for what the server did not take: a controller that asks for the impossible is wrong, even if it is
// told so.

// refusals finds the statuses with negative counters that the controllers sent and the server refused.
func refusals(h *History, k Kind) []Violation {
	var out []Violation
	for i := range h.Refused {
		r := &h.Refused[i]
		if r.Resource != k.Parents.Resource || r.Group != k.Parents.Group || r.Negative == "" || h.Manager != nil && !h.Manager(&r.Entry) {
			continue
		}
		key := Key{Resource: k.Parents, Namespace: r.Namespace, Name: r.Name}
		out = append(out, Violation{
			Invariant: "S1", Object: key, RV: r.After,
			Sentence: fmt.Sprintf("a status was sent and refused with %d, because %s", r.Code, r.Negative),
			Trail:    trail(h, key, "", r.After),
			Replay:   h.Replay,
		})
	}
	return out
}
