package lab

// This file counts what a manager costs others: requests, as the API server answered them, and calls of the hook, as
// the hook got them. The manager is not asked, so it cannot count wrongly.

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cairn-dev/cairn/sandbox"
)

// Subject is the user whose requests are counted.
const Subject = "bench-subject"

// Tally is what was counted in a while.
type Tally struct {
	// Requests are those to the API server, by verb and resource: "delete pods".
	Requests map[string]int
	// Refused are those among them that got an error, with its number: "409 delete pods".
	Refused []string
	// Calls are those of a hook, if there is one, and Bytes what their bodies were.
	Calls int
	Bytes int64
}

// Total is the number of requests of all kinds.
func (t Tally) Total() int {
	n := 0
	for _, count := range t.Requests {
		n += count
	}
	return n
}

// String lists the requests, the most frequent first.
func (t Tally) String() string {
	kinds := slices.SortedFunc(maps.Keys(t.Requests), func(a, b string) int {
		if d := t.Requests[b] - t.Requests[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	out := make([]string, 0, len(kinds)+1)
	for _, kind := range kinds {
		out = append(out, fmt.Sprintf("%d %s", t.Requests[kind], kind))
	}
	if len(t.Refused) > 0 {
		out = append(out, fmt.Sprintf("of which refused: %v", t.Refused))
	}
	return strings.Join(out, ", ")
}

// Ledger counts, from many goroutines. Make one with [NewLedger], and give its Request to the sandbox.
type Ledger struct {
	mu  sync.Mutex
	now Tally
	// requested and called are when there was a request and a call last.
	requested, called time.Time
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{now: Tally{Requests: map[string]int{}}} }

// Request counts one of [Subject].
func (l *Ledger) Request(r sandbox.Request) {
	if r.User != Subject {
		return
	}
	what := r.Verb + " " + r.Resource
	switch {
	case r.Resource == "":
		what = r.Verb + " (discovery)"
	case r.Subresource != "":
		what += "/" + r.Subresource
	}
	// Whether a child can be made again is asked under its own name, so that to be told that it is taken is what is hoped
	// for.
	trial := strings.Contains(r.Path, "dryRun=All")
	if trial {
		what = "try " + what
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Requests[what]++
	if r.Code >= 400 && (!trial || r.Code != http.StatusConflict) {
		l.now.Refused = append(l.now.Refused, fmt.Sprintf("%d %s", r.Code, what))
	}
	l.requested = time.Now()
}

// Call counts one of the hook.
func (l *Ledger) Call(bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Calls++
	l.now.Bytes += int64(bytes)
	l.called = time.Now()
}

// Read returns what was counted so far.
func (l *Ledger) Read() Tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.now
	t.Requests, t.Refused = maps.Clone(t.Requests), slices.Clip(t.Refused)
	return t
}

// Quiet reports whether there was no request for that long, and, unless somebody resyncs, no call.
func (l *Ledger) Quiet(d time.Duration, resyncs bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.requested) >= d && (resyncs || time.Since(l.called) >= d)
}

// Since returns what was counted after an earlier reading.
func (l *Ledger) Since(before Tally) Tally {
	after := l.Read()
	for kind, n := range before.Requests {
		if after.Requests[kind] -= n; after.Requests[kind] == 0 {
			delete(after.Requests, kind)
		}
	}
	after.Refused = after.Refused[len(before.Refused):]
	after.Calls -= before.Calls
	after.Bytes -= before.Bytes
	return after
}
