package pass

import (
	"fmt"
	"time"
)

// This file paces the replacement of children that end by themselves: a pod that a kubelet rejects would be replaced by
// one that it rejects as well, as fast as both can.

const (
	// The pause before a child that has ended is replaced grows between these two, as users of DaemonSets know it.
	firstPause = time.Second
	lastPause  = 15 * time.Minute
)

// pause is how long a child of a place stays after it has ended, from the time on when the one before it was replaced.
type pause struct {
	began  time.Time
	length time.Duration
}

// spot is a place, and the revision that its next child comes from: an edited parent starts afresh, for it may have
// been edited because its children fail.
type spot struct{ revision, place string }

// Wait is a back-off that goes on. The zero value is none.
type Wait struct {
	Length time.Duration
	End    time.Time
}

// String says what a condition says of it, the same for as long as it goes on.
func (w Wait) String() string {
	return fmt.Sprintf("its back-off of %s ends at %s", w.Length, w.End.UTC().Format("15:04:05 UTC"))
}

// Pause is for how long a child that has ended by itself stays before one of a revision takes its place.
func (p *Pass) Pause(revision, place string) Wait { return p.PauseAtMost(lastPause, revision, place) }

// PauseAtMost is [Pass.Pause] with another limit than 15 minutes.
func (p *Pass) PauseAtMost(limit time.Duration, revision, place string) Wait {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	last := p.memory.pauses[spot{revision, place}]
	length := min(last.length, limit)
	if p.Now().Sub(last.began) >= length {
		return Wait{}
	}
	return Wait{length, last.began.Add(length)}
}

// Replaced notes that a child which has ended by itself is replaced: the next one at its place stays for twice as long,
// unless the last is long ago. It may be called by several goroutines at once.
func (p *Pass) Replaced(revision, place string) {
	p.controller.mu.Lock()
	defer p.controller.mu.Unlock()
	now := p.Now()
	kept := map[spot]pause{}
	for at, last := range p.memory.pauses {
		if now.Sub(last.began) <= 2*lastPause {
			kept[at] = last
		}
	}
	at := spot{revision, place}
	length := firstPause
	if last, known := kept[at]; known {
		length = min(2*last.length, lastPause)
	}
	kept[at] = pause{now, length}
	p.memory.pauses = kept
}
