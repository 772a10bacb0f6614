package composite

// This file counts what a manager costs others: requests, as the API server answered them, and calls of the hook, as the
// hook got them. The manager is not asked, so it cannot count wrongly.

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/sandbox"
)

// subject is the user whose requests are counted: the manager, or, in its place, the floor.
const subject = "bench-subject"

// tally is what was counted in a while.
type tally struct {
	// requests are those to the API server, by verb and resource: "delete pods".
	requests map[string]int
	// refused are those among them that got an error, with its number: "409 delete pods".
	refused []string
	// calls are those of the hook, bytes what their bodies were.
	calls int
	bytes int64
}

// total is the number of requests of all kinds.
func (t tally) total() int {
	n := 0
	for _, count := range t.requests {
		n += count
	}
	return n
}

// String lists the requests, the most frequent first.
func (t tally) String() string {
	kinds := slices.SortedFunc(maps.Keys(t.requests), func(a, b string) int {
		if d := t.requests[b] - t.requests[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	out := make([]string, 0, len(kinds)+1)
	for _, kind := range kinds {
		out = append(out, fmt.Sprintf("%d %s", t.requests[kind], kind))
	}
	if len(t.refused) > 0 {
		out = append(out, fmt.Sprintf("of which refused: %v", t.refused))
	}
	return strings.Join(out, ", ")
}

// ledger counts, from many goroutines.
type ledger struct {
	mu  sync.Mutex
	now tally
	// requested and called are when there was a request and a call last.
	requested, called time.Time
}

// counted is what the sandbox and all hooks of this process count in.
var counted = &ledger{now: tally{requests: map[string]int{}}}

// request counts one of the subject.
func (l *ledger) request(r sandbox.Request) {
	if r.User != subject {
		return
	}
	what := r.Verb + " " + r.Resource
	switch {
	case r.Resource == "":
		what = r.Verb + " (discovery)"
	case r.Subresource != "":
		what += "/" + r.Subresource
	}
	// Whether a child can be made again is asked under its own name, so that to be told that it is taken is what is hoped for.
	trial := strings.Contains(r.Path, "dryRun=All")
	if trial {
		what = "try " + what
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.requests[what]++
	if r.Code >= 400 && (!trial || r.Code != http.StatusConflict) {
		l.now.refused = append(l.now.refused, fmt.Sprintf("%d %s", r.Code, what))
	}
	l.requested = time.Now()
}

// call counts one of the hook.
func (l *ledger) call(bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.calls++
	l.now.bytes += int64(bytes)
	l.called = time.Now()
}

// read returns what was counted so far.
func (l *ledger) read() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.now
	t.requests, t.refused = maps.Clone(t.requests), slices.Clip(t.refused)
	return t
}

// quiet reports whether there was no request for that long, and, unless somebody resyncs, no call.
func (l *ledger) quiet(d time.Duration, resyncs bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.requested) >= d && (resyncs || time.Since(l.called) >= d)
}

// since returns what was counted after an earlier reading.
func (l *ledger) since(before tally) tally {
	after := l.read()
	for kind, n := range before.requests {
		if after.requests[kind] -= n; after.requests[kind] == 0 {
			delete(after.requests, kind)
		}
	}
	after.refused = after.refused[len(before.refused):]
	after.calls -= before.calls
	after.bytes -= before.bytes
	return after
}

// leaveOutProbes drops the questions whether the kinds can still be watched, which are asked every few seconds for all parents
// together (package host, probe.go), after it has seen that there are no more of them than that.
func (c *cost) leaveOutProbes(t *testing.T) {
	t.Helper()
	for _, probe := range []string{"create selfsubjectaccessreviews", "get (discovery)"} {
		if got, most := c.requests[probe], 4*(int(c.wall.Seconds()/4)+2); got > most {
			t.Errorf("%d times %s in %s, want at most %d", got, probe, c.wall, most)
		}
		delete(c.requests, probe)
	}
}
