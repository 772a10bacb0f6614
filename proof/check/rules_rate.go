package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/rollback"
)

// This file is A1 for what it costs: under a failure that lasts, what one parent makes its controller ask for is
// bounded in each minute and falls; and at rest it is nothing.

// bound is how many calls for one parent there may be in a minute of a failure.
type bound struct{ first, later int }

// A back-off that doubles from five milliseconds tries 14 times in the first minute, 4 times in the next nine, and at
// most once in any minute after the third. A try costs a request for each child that may succeed, one for the status,
// and one or two to look.
var bounds = map[recording.Sort]bound{
	recording.Request:  {first: 300, later: 30},
	recording.Said:     {first: 60, later: 30},
	recording.Question: {first: 60, later: 6},
}

// Runs of a schedule are each due at a time of their own, and what is tried for one is over before the next one is due:
// each time that comes within a minute begins a back-off.

// soon is how many minutes are the first ones.
const soon = 3

// Rate is A1: under a failure that lasts, the requests, Events and questions for one parent are bounded in each minute,
// and after the first three minutes they are few. At rest there are none: nothing that waits is asked for again and
// again.
func Rate(h *History, kinds ...Kind) []Violation {
	var found []Violation
	for _, span := range h.Lasting {
		found = append(found, rate(h, span, kinds)...)
	}
	return found
}

// Idle is A1 at rest: when nothing is left to do, no request is made. Passes are, when timers and resyncs ask for them,
// and they read their caches, or ask a hook.
func Idle(h *History) []Violation {
	var calls []recording.Call
	for _, c := range h.Calls {
		if c.Sort == recording.Request && !h.Resting.IsZero() && !c.At.Before(h.Resting) {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return []Violation{{
		Invariant: "A1", RV: calls[0].After, Replay: h.Replay,
		Sentence: fmt.Sprintf("nothing is left to do, and %s made %d requests: %s", calls[0].For, len(calls), tally(calls)),
	}}
}

type spender struct {
	sort recording.Sort
	of   string
}

func rate(h *History, span recording.Span, kinds []Kind) []Violation {
	minutes := map[spender]map[int][]recording.Call{}
	for _, c := range h.Calls {
		if c.At.Before(span.From) || !c.At.Before(span.To) && span.To.After(span.From) {
			continue
		}
		s := spender{c.Sort, c.For}
		if minutes[s] == nil {
			minutes[s] = map[int][]recording.Call{}
		}
		minute := int(c.At.Sub(span.From) / time.Minute)
		minutes[s][minute] = append(minutes[s][minute], c)
	}
	var found []Violation
	for _, s := range slices.SortedFunc(maps.Keys(minutes), func(a, b spender) int {
		return strings.Compare(string(a.sort)+a.of, string(b.sort)+b.of)
	}) {
		for _, minute := range slices.Sorted(maps.Keys(minutes[s])) {
			calls, most := minutes[s][minute], bounds[s.sort].first
			if minute >= soon {
				from := span.From.Add(time.Duration(minute) * time.Minute)
				most = bounds[s.sort].later * (1 + due(h, kinds, s.of, from, from.Add(time.Minute)))
				if undoneIn(h, s.of, from.Add(-soon*time.Minute), from.Add(time.Minute)) {
					most = bounds[s.sort].first
				}
			}
			if len(calls) <= most {
				continue
			}
			found = append(found, Violation{
				Invariant: "A1", RV: calls[len(calls)-1].After, Replay: h.Replay,
				Sentence: fmt.Sprintf("%s made %d %s in minute %d of a failure that lasts (%s); at most %d are a back-off: %s",
					s.of, len(calls), s.sort, minute+1, span.What, most, tally(calls)),
			})
			break // the others are the same
		}
	}
	return found
}

// due counts the times at which a run of the parent that calls were for is due.
func due(h *History, kinds []Kind, of string, from, to time.Time) (n int) {
	for _, k := range kinds {
		if k.Runs == nil {
			continue
		}
		for _, parent := range worldAt(h, h.Complete).List(k.Parents, "") {
			if !strings.HasSuffix(of, " "+parent.GetNamespace()+"/"+parent.GetName()) {
				continue
			}
			at, counts := k.Runs.Next(parent, from)
			if counts {
				n++ // the first one is counted from another start
			}
			for ; !at.IsZero() && !at.After(to); at, _ = k.Runs.Next(parent, at) {
				n++
			}
		}
	}
	return n
}

// undoneIn reports whether the rollout of the parent that calls were for was undone in that time: that is an edit,
// after which everything begins anew.
func undoneIn(h *History, of string, from, to time.Time) bool {
	return slices.ContainsFunc(h.Events, func(e Event) bool {
		if e.Old == nil || e.New == nil || e.By == nil || e.By.At.Before(from) || e.By.At.After(to) ||
			!strings.HasSuffix(of, " "+e.New.GetNamespace()+"/"+e.New.GetName()) {
			return false
		}
		return e.Old.GetAnnotations()[rollback.NoteAnnotation] != e.New.GetAnnotations()[rollback.NoteAnnotation]
	})
}

// tally counts calls by what they are.
func tally(calls []recording.Call) string {
	counts := map[string]int{}
	for _, c := range calls {
		counts[c.What]++
	}
	var out []string
	for _, what := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		out = append(out, fmt.Sprintf("%d %s", counts[what], strings.TrimSpace(what)))
	}
	return strings.Join(out, ", ")
}
