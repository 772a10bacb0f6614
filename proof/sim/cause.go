package sim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// This file sees that whoever reads Events learns why things are refused now: half-way through a refusal that lasts,
// its reason becomes another one.

// otherCause is in what the API server says when the reason is the second one.
const otherCause = "second-policy"

// heardWithin is how long after the first refusal for another reason an Event has to tell it.
const heardWithin = 90 * time.Second

// unheard notes that a request for a parent is refused for the second reason.
func (w *world) unheard(c *call) {
	if c.pass == nil || w.heardOf[c.pass.For] {
		return
	}
	if w.causes == nil {
		w.causes = map[string]time.Time{}
	}
	if _, known := w.causes[c.pass.For]; !known {
		w.causes[c.pass.For] = w.clock.Now()
	}
}

// hears notes an Event that is written, and not only counted.
func (w *world) hears(name, text string) {
	if !strings.Contains(text, otherCause) {
		return
	}
	for of := range w.causes {
		if strings.HasSuffix(of, " "+name) {
			delete(w.causes, of)
			if w.heardOf == nil {
				w.heardOf = map[string]bool{}
			}
			w.heardOf[of] = true
		}
	}
}

// unheardOf reports the parents of which no Event tells the second reason. An Event is told from the last one by the
// version of its parent, so that this is about requests whose failure the status tells: those about children, of kinds
// with conditions.
func (w *world) unheardOf() {
	d := w.trouble.denial
	silent := slices.ContainsFunc(w.kinds, func(k Kind) bool {
		decorated := len(k.Hosted) > 0 && !k.hasRevisions()
		return k.Timed || k.Add != nil || len(k.Releases) > 0 || decorated
	})
	if d != nil && !silent && slices.Contains(w.childResources(), d.resource) {
		for _, of := range slices.Sorted(maps.Keys(w.causes)) {
			since := w.causes[of]
			if w.clock.Since(since) > heardWithin {
				w.violationf("no Event of %s tells why requests for it are refused, for %s", of, w.clock.Since(since))
			}
		}
	}
	w.causes, w.heardOf = nil, nil
}
