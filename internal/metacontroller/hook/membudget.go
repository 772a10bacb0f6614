package hook

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// This file bounds the memory that answers take in this process, however large and many they are. A caller waits until
// there is memory for its answer. Small answers have memory of their own, so that no large one delays them.
//
// The garbage collector lets the heap grow to twice of what is in use, so the bounds below amount to 288 MiB at most.

const (
	// largest is the decoded size of the largest answer that is read.
	largest = 64 << 20
	// MostRemembered is what all memories of a process together should keep at most, in bytes: see [NewMemory]. It leaves
	// enough for the largest answer.
	MostRemembered = 32 << 20
	// small is the decoded size up to which an answer is small.
	small = 1 << 20
	// smallBody is the length of a body that is read without reserving memory.
	smallBody = 256 << 10
	// patience is how long to wait for memory. Passes that hold large answers could wait for each other.
	patience = 30 * time.Second
	// collect is how often the garbage collector is run while a caller waits: unused answers take up memory until it has
	// found them.
	collect = 100 * time.Millisecond
)

// room is an amount of memory that can be reserved.
type room struct {
	what  string
	size  int64
	given *semaphore.Weighted
}

func newRoom(what string, size int64) *room { return &room{what, size, semaphore.NewWeighted(size)} }

// rooms are those of this process.
var rooms = struct{ bodies, smaller, larger *room }{
	bodies:  newRoom("to read it", DefaultLimit*2),
	smaller: newRoom("to decode it", 16<<20),
	larger:  newRoom("to decode it", largest+MostRemembered),
}

// errNoRoom says that other answers take all the memory that answers may have.
var errNoRoom = errors.New("large answers of hooks take all the memory that is set aside for them; it is asked again")

// take reserves n bytes, and waits for them no longer than patience. An error is a *[Error].
func (r *room) take(ctx context.Context, n int64) error {
	n = min(n, r.size)
	if r.given.TryAcquire(n) {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go collectUntil(within)
	switch err := r.given.Acquire(within, n); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Error{Reason: TimedOut, Err: fmt.Errorf("there was no room in memory %s in time: %w", r.what, ctx.Err())}
	default:
		return &Error{Reason: NoRoom, Err: errNoRoom}
	}
}

// collecting is held while the garbage collector is run for waiting callers: one run is enough for all of them.
var collecting sync.Mutex

// collectUntil runs the garbage collector again and again until ctx ends.
func collectUntil(ctx context.Context) {
	tick := time.NewTicker(collect) //nolint:forbidigo // the garbage collector, like the patience of who waits, runs in real time
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if collecting.TryLock() {
			runtime.GC()
			collecting.Unlock()
		}
	}
}

func (r *room) give(n int64) { r.given.Release(min(n, r.size)) }

// decoding decodes an answer of that size when there is memory for it. The memory of a large answer stays reserved
// until the answer is garbage: a pass may take long.
func decoding[A any](ctx context.Context, size int64, decode func() (A, error)) (A, error) {
	r := rooms.smaller
	if size > small {
		r = rooms.larger
	}
	if err := r.take(ctx, size); err != nil {
		var none A
		return none, err
	}
	decoded, err := decode()
	if answer, ok := any(decoded).(*Answer); ok && err == nil && size > small {
		runtime.AddCleanup(answer, r.give, size)
		return decoded, nil
	}
	r.give(size)
	return decoded, err
}
