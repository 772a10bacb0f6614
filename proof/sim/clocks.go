package sim

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the clocks by which managers know what is due, for kinds whose controllers go by one ([Kind.Timed]).
// They jump, and those of two managers differ. Everything else in a world, timers and the API server included, goes by
// the world's own.

// wallClock is the clock of one run of a manager.
type wallClock struct {
	clock.RealClock

	// off is how far it is ahead of the world's clock. frozen, of the world, stops all of them.
	off    atomic.Int64
	frozen *atomic.Pointer[time.Time]
	// latest is the latest time that it showed before it was set back.
	latest time.Time
}

// Now implements [clock.PassiveClock].
func (c *wallClock) Now() time.Time {
	if at := c.frozen.Load(); at != nil {
		return *at
	}
	return c.RealClock.Now().Add(time.Duration(c.off.Load()))
}

// Since implements [clock.PassiveClock].
func (c *wallClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// set lets it jump.
func (c *wallClock) set(off time.Duration) {
	c.latest = c.shown()
	c.off.Store(int64(off))
}

// shown is the latest time that it has ever shown.
func (c *wallClock) shown() time.Time {
	if now := c.Now(); now.After(c.latest) {
		return now
	}
	return c.latest
}

// timed reports whether there are controllers in the world that go by a clock.
func (w *world) timed() bool {
	for _, k := range w.kinds {
		if k.Timed {
			return true
		}
	}
	return false
}

// windClock gives a manager its clock. In a world of a calm temper it is right.
func (w *world) windClock(p *process) {
	if !w.timed() {
		return
	}
	p.clock = &wallClock{frozen: &w.frozen}
	if w.temper.clocks {
		p.clock.set(w.anyOffset())
	}
}

// anyOffset is how far a clock is off: not at all, by moments, or by up to half an hour.
func (w *world) anyOffset() time.Duration {
	most := []int{0, 0, 90, 1800}[w.chance.IntN(4)]
	if most == 0 {
		return 0
	}
	return time.Duration(w.chance.IntN(2*most)-most) * time.Second
}

// moments are what else happens in a world with clocks, and how much faster time goes by in it.
func (w *world) moments() []choice {
	if !w.timed() {
		return nil
	}
	out := []choice{{16, w.sleepUntilDue}}
	if moves := w.jobMoves(); len(moves) > 0 {
		out = append(out, choice{w.temper.weights.kubelet, func() { moves[w.chance.IntN(len(moves))]() }})
	}
	if w.temper.clocks {
		out = append(out, choice{1, w.jump})
	}
	if w.temper.weights.kill > 0 && w.chance.IntN(20) == 0 {
		out = append(out, choice{2, w.downForLong})
	}
	return out
}

// sleepUntilDue lets time pass until about the next full minute of some manager's clock, and, in every second case,
// what is due be done.
func (w *world) sleepUntilDue() {
	now := w.clock.Now()
	if len(w.processes) > 0 {
		now = w.processes[w.chance.IntN(len(w.processes))].clock.Now()
	}
	rest := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
	w.sleep(max(rest+time.Duration(w.chance.IntN(2000)-500)*time.Millisecond, time.Millisecond))
	if w.chance.IntN(2) == 0 {
		for range w.chance.IntN(12) {
			w.step++
			w.fair()
		}
	}
}

// jump sets a manager's clock. While a pass is under way it stays, so that what the clock showed when that began is
// what it decides by.
func (w *world) jump() {
	if len(w.processes) == 0 {
		return
	}
	p := w.processes[w.chance.IntN(len(w.processes))]
	off := w.anyOffset()
	for _, c := range w.calls {
		if c.from == p && !c.late {
			return
		}
	}
	w.stats.count("clocks jump")
	w.tracef("the clock of %s is off by %s", p.name, off)
	p.clock.set(off)
}

// downForLong lets nobody run for ten schedules and more.
func (w *world) downForLong() {
	w.stats.count("down for ten schedules")
	w.tracef("all managers are down")
	for len(w.processes) > 0 {
		w.kill(w.processes[0])
	}
	w.sleep(time.Duration(10+w.chance.IntN(20)) * time.Minute)
}

// stopClocks lets everything happen that can for a while, with clocks that are right, and then stops them: who goes by
// a clock comes to rest at a moment at which nothing is due for some seconds.
func (w *world) stopClocks(d time.Duration) {
	if !w.timed() {
		return
	}
	for range patience {
		if !w.fair() {
			break
		}
	}
	for _, p := range w.processes {
		p.clock.set(0)
	}
	w.temper.clocks = false
	end := w.clock.Now().Add(d)
	for range patience {
		left := end.Sub(w.clock.Now())
		if left <= 0 && !w.soonDue() {
			break
		}
		w.step++
		w.bury()
		if len(w.processes) == 0 {
			w.startNext()
		}
		if !w.fair() {
			w.sleep(w.nextDue(max(left, time.Second)))
		}
	}
	now := w.clock.Now()
	w.frozen.Store(&now)
	w.tracef("the clocks stop")
}

// soonDue reports whether something is due within seconds, or was a moment ago.
func (w *world) soonDue() bool {
	now := w.clock.Now()
	for _, k := range w.kinds {
		for _, parent := range w.all(k.Check.Parents) {
			if k.Check.Runs == nil {
				continue
			}
			if next := k.soon(parent, now.Add(-2*time.Second)); !next.IsZero() && next.Before(now.Add(10*time.Second)) {
				return true
			}
		}
	}
	return false
}

// soon is the first time after one at which something is due for a parent.
func (k Kind) soon(parent client.Object, after time.Time) time.Time {
	from := after
	if at, counts := k.Check.Runs.Next(parent, from); !counts {
		return at
	}
	if served := k.Check.Runs.Of(parent).Served; !served.IsZero() {
		from = served
	} else {
		from = parent.GetCreationTimestamp().Time
	}
	if last := k.Check.Runs.Latest(parent, from, after); !last.IsZero() {
		from = last
	}
	at, _ := k.Check.Runs.Next(parent, from)
	return at
}
