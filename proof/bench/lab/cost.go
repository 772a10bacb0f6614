package lab

// This file says what one change costs the process that is measured.

import "time"

// Cost is what one thing that was measured took.
type Cost struct {
	Tally

	// Wall is the time until the last pod served, CPU the processor time of the process until nothing happened any more.
	Wall, CPU time.Duration
	// Moved is how many bytes the process has read and written, Peak the most memory that it ever had, in bytes.
	Moved, Peak int64
}

// Measure returns what it takes until the load is as it is to be after a change.
func (c *Cluster) Measure(p *Process, change func()) Cost {
	c.Helper()
	c.running = p
	defer func() { c.running = nil }()
	before, cpu, moved, start := c.counted.Read(), p.CPU(), p.Moved(), time.Now()
	change()
	end := c.Served()
	c.Settled()
	return Cost{
		Tally: c.counted.Since(before), Wall: max(0, end.Sub(start)), CPU: p.CPU() - cpu, Moved: p.Moved() - moved, Peak: p.Peak(),
	}
}

// Idle returns what it takes to do nothing for a while.
func (c *Cluster) Idle(p *Process, d time.Duration) Cost {
	c.Helper()
	before, cpu, moved, start := c.counted.Read(), p.CPU(), p.Moved(), time.Now()
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-c.Context().Done():
		c.Fatal(c.Context().Err())
	}
	return Cost{Tally: c.counted.Since(before), Wall: time.Since(start), CPU: p.CPU() - cpu, Moved: p.Moved() - moved, Peak: p.Peak()}
}
