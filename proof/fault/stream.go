package fault

import (
	"context"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is one watch between the server and the manager: what the server sends goes into a queue, and the manager
// reads from it when it may.

// stream is the body of one watch response. One goroutine fills the queue, the manager's reads empty it.
type stream struct {
	resource schema.GroupResource
	body     io.ReadCloser
	info     runtime.SerializerInfo
	owner    *streams

	mu      sync.Mutex
	queue   [][]byte
	end     error         // what the manager reads after the queue; nil while the watch goes on
	held    bool          // the queue grows and is not read
	changed chan struct{} // closed and replaced at every change of the above
	partial []byte        // the rest of an event that did not fit into one read; never held back
	stop    func() bool   // detaches the stream from its process's life
}

// open starts the pump of a watch, which is to have its resource, body and info.
func (s *streams) open(ctx context.Context, st *stream, next frames) *stream {
	st.owner, st.changed = s, make(chan struct{})
	st.stop = context.AfterFunc(ctx, func() { st.finish(io.EOF, true) })
	s.add(st)
	go func() {
		for {
			event, err := next()
			if err != nil {
				st.finish(err, false)
				return
			}
			st.update(func() {
				if st.end == nil {
					st.queue = append(st.queue, event)
				}
			})
		}
	}()
	return st
}

// update changes the state and wakes who waits for it.
func (st *stream) update(change func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	change()
	close(st.changed)
	st.changed = make(chan struct{})
}

// finish makes err the end of the stream. If drop is true, what is in the queue is lost, and a hold does not matter.
func (st *stream) finish(err error, drop bool) {
	st.update(func() {
		if st.end == nil || drop {
			st.end = err
		}
		if drop {
			st.queue, st.held = nil, false
		}
	})
	if drop {
		_ = st.body.Close() // ends the pump
	}
}

// cut drops what is in the queue and ends the watch with 410.
func (st *stream) cut() error {
	last, err := expired(st.info)
	if err != nil {
		return err
	}
	st.update(func() { st.queue, st.held, st.end = [][]byte{last}, false, io.EOF })
	return st.body.Close() // ends the pump
}

// waiting is how many events are in the queue.
func (st *stream) waiting() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.queue)
}

// Read gives the manager the next bytes. It waits while there are none, or while the stream is held.
func (st *stream) Read(p []byte) (int, error) {
	for {
		n, err, changed := st.take(p)
		if changed == nil {
			return n, err
		}
		<-changed
	}
}

// take reads what may be read now, or returns the channel that says when to try again.
func (st *stream) take(p []byte) (int, error, <-chan struct{}) { //nolint:revive,staticcheck // the channel comes instead of a result
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.partial) == 0 && !st.held && len(st.queue) > 0 {
		st.partial, st.queue = st.queue[0], st.queue[1:]
	}
	switch {
	case len(st.partial) > 0:
		n := copy(p, st.partial)
		st.partial = st.partial[n:]
		return n, nil, nil
	case st.end != nil && !st.held:
		return 0, st.end, nil
	}
	return 0, nil, st.changed
}

// Close ends the watch for the manager's part. A read that is under way ends as if the server had hung up: any other
// error client-go may still report as an event.
func (st *stream) Close() error {
	st.stop()
	st.owner.remove(st)
	st.finish(io.EOF, true)
	return nil
}
