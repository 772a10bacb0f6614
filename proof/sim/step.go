package sim

import (
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is the scheduler while the world is wild: which of all that could happen next does.

// choice is one thing that can happen next.
type choice struct {
	weight int
	do     func()
}

// once lets one thing happen.
func (w *world) once() {
	w.step++
	w.bury()
	t := w.temper.weights
	choices := []choice{
		{t.collect, w.collectGarbage},
		{t.machines, w.moveMachine},
		{t.instant, func() { w.sleep(time.Duration(1+w.chance.IntN(200)) * time.Millisecond) }},
		{t.moment, func() { w.sleep(time.Duration(1+w.chance.IntN(10_000)) * time.Millisecond) }},
		{t.while, w.sleepLong},
	}
	if len(w.calls) > 0 {
		choices = append(choices, choice{t.serve, w.serveAny})
	}
	choices = append(choices, w.deliveries()...)
	choices = append(choices, w.lives()...)
	choices = append(choices, w.moments()...)
	if moves := w.kubeletMoves(); len(moves) > 0 {
		choices = append(choices, choice{t.kubelet, func() { moves[w.chance.IntN(len(moves))]() }})
	}
	if w.outage == nil {
		choices = append(choices, choice{t.outage, w.startOutage})
	} else {
		choices = append(choices, choice{t.mend, func() { w.outage = nil; w.tracef("outage ends") }})
	}
	w.choose(choices)
	w.wait()
}

// sleepLong lets minutes pass, but rarely many: a manager that waits for a watch looks ten times a second, and these
// are passes in which nothing happens.
func (w *world) sleepLong() {
	most := 20
	if w.chance.IntN(10) == 0 {
		most = 600
	}
	w.sleep(time.Duration(1+w.chance.IntN(most)) * time.Second)
}

func (w *world) choose(choices []choice) {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := w.chance.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			c.do()
			return
		}
	}
}

// serveAny serves one of the requests that wait, not always well.
func (w *world) serveAny() {
	n := w.chance.IntN(len(w.calls))
	c := w.calls[n]
	if !w.dueNow(c) {
		w.sleep(w.nextDue(time.Second))
		return
	}
	w.calls = slices.Delete(w.calls, n, n+1)
	mode := clean
	if !c.late && w.chance.IntN(1000) < w.temper.faults {
		modes := readModes
		if c.writes() {
			modes = writeModes
		}
		mode = modes[w.chance.IntN(len(modes))]
	}
	w.serve(c, mode)
}

// deliveries are what can happen between the server and the managers' caches.
func (w *world) deliveries() []choice {
	t := w.temper.weights
	var out []choice
	for _, p := range w.processes {
		for _, i := range p.manager.caches.order {
			if i.held {
				continue
			}
			pace := max(1, w.temper.slow[i.resource])
			events := w.events[i.resource]
			if i.next < len(events) {
				if w.chance.IntN(pace) == 0 {
					out = append(out, choice{t.store, func() { w.deliver(p, i) }})
				}
				out = append(out, choice{t.relist, func() { w.gap(p, i) }})
			}
			if pace == 1 {
				out = append(out, choice{t.bookmark, func() { w.bookmark(p, i) }})
			}
			out = append(out, choice{t.resync, func() { w.resync(p, i) }})
			for _, h := range i.handlers {
				if len(h.queue) > 0 {
					out = append(out, choice{t.notify, func() { w.notify(p, h) }})
				}
			}
		}
	}
	return out
}

// deliver lets a store take in one event, sometimes all that there are.
func (w *world) deliver(p *process, i *informer) {
	events := w.events[i.resource][i.next:]
	if w.chance.IntN(4) > 0 {
		events = events[:1]
	}
	n := i.take(events)
	w.tracef("%s sees %d events of %s up to %d", p.name, n, i.resource.Resource, events[n-1].RV)
	w.stats.count("events")
}

// notify gives a handler what its store took in.
func (w *world) notify(p *process, h *registration) {
	n := 1
	if w.chance.IntN(4) == 0 {
		n = len(h.queue)
	}
	for range n {
		if w.trace.on {
			w.tracef("%s hears of %s %s", p.name, h.name, h.queue[0])
		}
		w.tell(h)
	}
	w.stats.count("notices")
}

// tell gives a handler one notice. A worker may begin a pass at once; the next notice waits until it has got somewhere,
// for else it would be chance whether the two meet.
func (w *world) tell(h *registration) {
	h.notify()
	w.wait()
}

// bookmark tells a store how new it is.
func (w *world) bookmark(p *process, i *informer) {
	rv := w.server.ResourceVersion()
	if events := w.events[i.resource]; i.next < len(events) {
		rv = events[i.next].RV - 1
	}
	i.bookmark(rv)
	w.tracef("%s knows %s up to %d", p.name, i.resource.Resource, rv)
	w.stats.count("bookmarks")
}

// gap breaks a watch, so that the manager lists again.
func (w *world) gap(p *process, i *informer) {
	w.relist(i, w.server.ResourceVersion())
	w.tracef("%s lists %s again", p.name, i.resource.Resource)
	w.stats.count("relists")
}

func (w *world) resync(p *process, i *informer) {
	i.resync()
	w.tracef("%s resyncs %s", p.name, i.resource.Resource)
	w.stats.count("resyncs")
}

// lives are starts and ends of managers.
func (w *world) lives() []choice {
	t := w.temper.weights
	var out []choice
	for _, p := range w.processes {
		out = append(out, choice{t.kill, func() {
			w.tracef("kill %s", p.name)
			w.stats.count("kills between requests")
			w.kill(p)
		}})
	}
	switch len(w.processes) {
	case 0:
		out = append(out, choice{t.restart, func() { w.startNext() }})
	case 1:
		if w.temper.two {
			out = append(out, choice{1, func() { w.stats.count("two managers"); w.startNext() }})
		}
	default:
	}
	return out
}

// startNext starts the manager that does not run, with lists that may be old.
func (w *world) startNext() {
	name := managerNames[0]
	if len(w.processes) > 0 && w.processes[0].name == name {
		name = managerNames[1]
	}
	w.stats.count("starts")
	w.tracef("start %s", name)
	w.start(name, w.someVersion)
}

// someVersion is as of when a list of a manager that starts is answered: now, or some changes of the resource ago.
func (w *world) someVersion(resource schema.GroupVersionResource) uint64 {
	events := w.events[resource]
	if !w.temper.stale || len(events) == 0 || w.chance.IntN(2) == 0 {
		return w.server.ResourceVersion()
	}
	w.stats.count("old lists")
	at := len(events) - 2 - w.chance.IntN(min(len(events), 12))
	if at < 0 {
		return 0
	}
	return events[at].RV
}

// managerNames are the managers there can be, and the users of their requests.
var managerNames = [2]string{"manager-1", "manager-2"}

// startOutage refuses writes to a resource for a while.
func (w *world) startOutage() {
	k := w.kinds[w.chance.IntN(len(w.kinds))].Check
	resources := []schema.GroupVersionResource{k.Revisions, k.Revisions, k.Children, k.Parents}
	if k.Revisions.Empty() {
		resources = []schema.GroupVersionResource{k.Children, k.Children, k.Parents}
	}
	if k.Children.Empty() {
		resources = []schema.GroupVersionResource{k.Revisions, k.Revisions, k.Parents}
	}
	codes := []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusTooManyRequests}
	verbs := []string{"", model.VerbCreate, model.VerbPatch, model.VerbDelete}
	w.outage = &outage{
		resource: resources[w.chance.IntN(len(resources))],
		verb:     verbs[w.chance.IntN(len(verbs))],
		code:     codes[w.chance.IntN(len(codes))],
	}
	w.tracef("outage: %s %s answers %d", w.outage.verb, w.outage.resource.Resource, w.outage.code)
	w.stats.count("outages")
}

func (w *world) collectGarbage() {
	for _, r := range w.server.Garbage() {
		r.User = userGC
		w.ask(r)
		w.stats.count("garbage collected")
		if w.chance.IntN(3) > 0 {
			return
		}
	}
}
