package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file brings a world to rest: no more faults, no more users, everything is done fairly and in order. Controllers
// that keep their promises reach the end, and then write nothing.

const (
	// idle is how long nothing must happen until the world is at rest. It is longer than the longest back-off of
	// controller-runtime's queue and of any controller.
	idle = 20 * time.Minute
	// hour is how long it then must stay so.
	hour = time.Hour
	// patience bounds the calm, in things done.
	patience = 5000
)

// calm ends everything that disturbs, and lets the world go on until it rests. It returns false if it never does.
func (w *world) calm() bool {
	w.tracef("calm")
	w.setTrouble(false)
	w.quieten()
	w.history.Calm = w.clock.Now()
	w.stopClocks(4 * time.Minute)
	if !w.settle(idle) {
		w.violationf("the end is not reached: after %d steps there is still this to do: %s", patience, w.leftToDo())
		return false
	}
	return true
}

// quieten ends everything that comes and goes by chance, and leaves one manager.
func (w *world) quieten() {
	w.outage = nil
	w.bury()
	for len(w.processes) > 1 {
		w.kill(w.processes[w.chance.IntN(len(w.processes))])
	}
	if len(w.processes) > 0 && w.processes[0].run == 1 && slices.ContainsFunc(w.kinds, func(k Kind) bool { return k.Later > 0 }) {
		w.kill(w.processes[0])
	}
	w.temper.stale = false
	for _, p := range w.processes {
		for _, i := range p.manager.caches.order {
			i.held = false
		}
	}
}

// settle lets everything happen that can, until nothing does for that long. It returns false if that takes too long.
func (w *world) settle(quiet time.Duration) bool {
	rested := w.clock.Now()
	for range patience {
		w.step++
		w.bury()
		if len(w.processes) == 0 && w.staged == nil {
			w.startNext()
		}
		if w.fair() {
			rested = w.clock.Now()
			continue
		}
		if w.clock.Since(rested) >= quiet {
			return true
		}
		w.sleep(w.nextDue(quiet - w.clock.Since(rested)))
	}
	return false
}

// fair does the next thing that can be done, and returns false if only time can pass.
func (w *world) fair() bool {
	defer w.wait()
	if n := slices.IndexFunc(w.calls, w.dueNow); n >= 0 {
		c := w.calls[n]
		w.calls = slices.Delete(w.calls, n, n+1)
		w.serve(c, w.staged.mode(c))
		return true
	}
	for _, p := range w.processes {
		if slices.ContainsFunc(p.manager.caches.order, w.catchUp) {
			return true
		}
	}
	for _, pod := range w.pods() {
		if due := w.due(pod); due != nil {
			due()
			return true
		}
	}
	if w.tendJobs() {
		return true
	}
	for _, r := range w.server.Garbage() {
		r.User = userGC
		if w.ask(r).Err == nil {
			return true
		}
	}
	return false
}

// catchUp brings an informer, or its handlers, up to date, and returns false if they are.
func (w *world) catchUp(i *informer) bool {
	if events := w.events[i.resource]; !i.held && i.next < len(events) {
		i.take(events[i.next:])
		return true
	}
	told := false
	for _, h := range i.handlers {
		for len(h.queue) > 0 {
			w.tell(h)
			told = true
		}
	}
	return told
}

// rest checks that nothing happens for an hour, with all that wakes controllers up for nothing.
func (w *world) rest() (from, to uint64) {
	from = w.server.ResourceVersion()
	complaints := len(w.complaints)
	w.history.Resting, w.history.Clock = w.clock.Now(), time.Time{}
	if at := w.frozen.Load(); at != nil {
		w.history.Clock = *at
	}
	for range 6 {
		for _, p := range w.processes {
			for _, i := range p.manager.caches.order {
				i.resync()
			}
		}
		if !w.settle(hour / 6) {
			w.violationf("it does not rest: %s", w.leftToDo())
			break
		}
	}
	if n := len(w.complaints) - complaints; n > 0 {
		w.violationf("there is nothing left to do, and %d passes failed in an hour, the last one with: %s",
			n, w.complaints[len(w.complaints)-1].text)
	}
	return from, w.server.ResourceVersion()
}

// leftToDo says what is pending, for a person.
func (w *world) leftToDo() string {
	var out []string
	for _, c := range w.calls {
		out = append(out, c.String())
	}
	for _, p := range w.processes {
		for _, i := range p.manager.caches.order {
			if n := len(w.events[i.resource]) - i.next; n > 0 {
				out = append(out, fmt.Sprintf("%s has not seen %d changes of %s", p.name, n, i.resource.Resource))
			}
		}
	}
	if n := len(w.complaints); n > 0 {
		out = append(out, "the last error was: "+w.complaints[n-1].text)
	}
	events := w.history.Events
	for _, e := range events[max(0, len(events)-6):] {
		out = append(out, "the last writes: "+e.String())
	}
	return strings.Join(out, "\n    ")
}
