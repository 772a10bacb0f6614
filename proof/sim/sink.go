package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file listens to what controllers say: the errors of their passes, and their events. Goroutines of one step speak
// in no order, so that what they said is sorted before anybody looks at it.

// saying is something that a controller said.
type saying struct {
	// failure is true for a pass that returned an error.
	failure bool
	// fatal is true for a manager that ends by itself.
	fatal bool
	// what is the reason of an event, text the rest.
	what, text string
	// event is what is said, nil if it is no Event.
	event *eventKey
}

func (p *process) say(s saying) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.said = append(p.said, s)
	}
}

// heard returns what was said since the last time.
func (p *process) heard() []saying {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said
	p.said = nil
	slices.SortFunc(said, func(a, b saying) int { return strings.Compare(a.what+a.text, b.what+b.text) })
	return said
}

// sink is a [logr.LogSink] that keeps errors.
type sink struct{ process *process }

func (s sink) Init(logr.RuntimeInfo)          {}
func (s sink) Enabled(int) bool               { return false }
func (s sink) Info(int, string, ...any)       {}
func (s sink) WithValues(...any) logr.LogSink { return s }
func (s sink) WithName(string) logr.LogSink   { return s }

func (s sink) Error(err error, message string, _ ...any) {
	s.process.say(saying{failure: true, what: message, text: fmt.Sprint(err)})
}

// recorder is an [events.EventRecorder]. It writes no Events, but knows which ones client-go's would write, and whether
// the API server would take them.
type recorder struct{ process *process }

var _ events.EventRecorder = recorder{}

// eventKey is what makes client-go count an Event instead of writing another one. The reference to the object has its
// resource version in it, if the object has one.
type eventKey struct {
	regarding, related corev1.ObjectReference
	kind, action       string
	reason             string
}

// series is an Event that was written: how often it was since, and when last.
type series struct {
	count int
	last  time.Time
}

const (
	// seriesEnd is after how long client-go counts an Event no longer, but writes a new one.
	seriesEnd = 6 * time.Minute
	// maxNote is how long the note of an Event may be, in bytes: the API server refuses longer ones.
	maxNote = 1024
)

func (r recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.process.say(saying{
		what: reason, text: fmt.Sprintf(note, args...), event: &eventKey{reference(regarding), reference(related), kind, action, reason},
	})
}

// reference is the part of an object by which client-go tells Events apart.
func reference(o runtime.Object) corev1.ObjectReference {
	named, ok := o.(client.Object)
	if !ok {
		return corev1.ObjectReference{}
	}
	return corev1.ObjectReference{
		Kind: fmt.Sprintf("%T", o), Namespace: named.GetNamespace(), Name: named.GetName(), UID: named.GetUID(),
		ResourceVersion: named.GetResourceVersion(),
	}
}

// event takes down what an Event costs, and whether the API server would take it.
func (w *world) event(p *process, s saying) {
	key := *s.event
	if n := len(s.text); n > maxNote || key.reason == "" || key.action == "" {
		w.history.Refused = append(w.history.Refused, check.Refused{
			Entry: check.Entry{
				User: p.name, Verb: "create", Resource: "events", Namespace: key.regarding.Namespace, Name: key.regarding.Name,
				Code: http.StatusUnprocessableEntity, At: w.clock.Now(),
			},
			After: w.server.ResourceVersion(),
			Why:   fmt.Sprintf("the Event %s has a note of %d bytes, and %d are allowed: %.80s...", key.reason, n, maxNote, s.text),
		})
	}
	if p.series == nil {
		p.series = map[eventKey]series{}
	}
	was, now := p.series[key], w.clock.Now()
	if now.Sub(was.last) > seriesEnd {
		was.count = 0
	}
	p.series[key] = series{was.count + 1, now}
	if was.count == 0 {
		w.hears(key.regarding.Namespace+"/"+key.regarding.Name, s.text)
	}
	if was.count >= 2 {
		return // it is counted, and written when the series ends
	}
	w.history.Calls = append(w.history.Calls, recording.Call{
		Sort: recording.Said, At: now, After: w.server.ResourceVersion(), What: "Event " + key.reason,
		For: fmt.Sprintf("%s %s/%s", key.regarding.Kind, key.regarding.Namespace, key.regarding.Name),
	})
}
