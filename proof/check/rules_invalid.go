package check

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is A2: what the controllers write, the API server can take. A write that is invalid or too large is lost,
// and will be lost the next time as well.

// Invalid finds the writes of the controllers that the server itself refused as invalid (422, 400) or too large (413);
// Events are among them where somebody looks at those.
func Invalid(h *History) []Violation {
	var found []Violation
	said := map[string]bool{}
	for i := range h.Refused {
		r := &h.Refused[i]
		switch {
		case r.Injected, h.Manager != nil && !h.Manager(&r.Entry):
			continue
		case r.Code != http.StatusUnprocessableEntity && r.Code != http.StatusRequestEntityTooLarge && r.Code != http.StatusBadRequest:
			continue
		}
		key := Key{Resource: schema.GroupVersionResource{Group: r.Group, Resource: r.Resource}, Namespace: r.Namespace, Name: r.Name}
		sentence := fmt.Sprintf("%s of it was refused with %d: %.300s", r.Verb, r.Code, r.Why)
		if said[key.String()+r.Verb] {
			continue
		}
		said[key.String()+r.Verb] = true
		found = append(found, Violation{Invariant: "A2", Object: key, RV: r.After, Sentence: sentence, Replay: h.Replay})
	}
	return found
}
