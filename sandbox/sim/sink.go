package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
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

// recorder is an [events.EventRecorder].
type recorder struct {
	process *process
	// formatted says whether anybody reads the text.
	formatted bool
}

var _ events.EventRecorder = recorder{}

func (r recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	s := saying{what: reason}
	if r.formatted {
		s.text = fmt.Sprintf(note, args...)
	}
	r.process.say(s)
}
