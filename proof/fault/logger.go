package fault

import (
	"time"

	"github.com/go-logr/logr"
)

// This file hears of what no request shows: that a pass was dropped and is made again a moment later.

// RetryAfter is the key by which a manager logs how long a pass waits that was dropped because the caches were behind.
const RetryAfter = "retryAfter"

// Logger returns a logger for the manager of this process: what it logs goes on to next, and while it waits for its
// caches, by its own words, the injector is busy.
func (p *Process) Logger(next logr.Logger) logr.Logger {
	return logr.New(&ears{LogSink: next.GetSink(), hear: p.in.waits})
}

// ears is a sink that listens.
type ears struct {
	logr.LogSink

	hear func(time.Duration)
}

// Enabled is true where anything is to be heard.
func (e *ears) Enabled(level int) bool { return level <= 1 || e.LogSink.Enabled(level) }

// Info listens, and passes on what the next one is to have.
func (e *ears) Info(level int, msg string, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if after, ok := pairs[i+1].(time.Duration); ok && pairs[i] == RetryAfter {
			e.hear(after)
		}
	}
	if e.LogSink.Enabled(level) {
		e.LogSink.Info(level, msg, pairs...)
	}
}

// WithValues listens as well.
func (e *ears) WithValues(pairs ...any) logr.LogSink {
	return &ears{e.LogSink.WithValues(pairs...), e.hear}
}

// WithName listens as well.
func (e *ears) WithName(name string) logr.LogSink { return &ears{e.LogSink.WithName(name), e.hear} }
