package pass

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file sends events, and counts them: a rollout over a thousand nodes is not a thousand events.
//
// The recorder of client-go joins events that are the same but for their text into one with a count, which costs
// nothing. It takes two for the same if all that they refer to is, resourceVersions included, so that references have
// none here, but for that of the parent where a warning has another cause than before, or an event about no child
// another text: it would else go on telling the first one for as long as it is repeated.

const (
	// MaxNote is how long the text of an event may be, in bytes. The API server refuses more than 1,024.
	MaxNote = 1000
	// burst is how many different events of a parent are sent at once, of which the last few are for warnings only. After
	// that there is one more every refill: 25 in five minutes, as the built-in controllers have it.
	burst, forWarnings = 25, 5
	refill             = 12 * time.Second
	// known is how long the recorder joins events that are equal.
	known = 6 * time.Minute
	// oneCause is how long a warning tells one cause at least.
	oneCause = 30 * time.Second
	// calm is how long no event may be left out before one says how many were.
	calm = 10 * time.Second
)

// Normal sends an event about the parent: what was done, to which child. related may be nil. The text of action is a
// verb. After too many events it is only counted; a later event says how many were left out.
func (p *Pass) Normal(related client.Object, reason, action, note string, args ...any) {
	p.event(corev1.EventTypeNormal, related, reason, action, Cut(fmt.Sprintf(note, args...), MaxNote))
}

// Warn sends a warning about the parent: what went wrong, and what to do. related may be nil. It is never left out, but
// after too many events it is about the parent alone, so that equal ones are joined.
func (p *Pass) Warn(related client.Object, reason, action, note string, args ...any) {
	p.event(corev1.EventTypeWarning, related, reason, action, Cut(fmt.Sprintf(note, args...), MaxNote))
}

func (p *Pass) event(kind string, related client.Object, reason, action, note string) {
	c, now := p.controller, p.controller.Clock.Now()
	b := &p.memory.events
	key := eventKey{kind: kind, reason: reason, action: action}
	if related != nil {
		key.related = related.GetUID()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	version := p.Parent.GetResourceVersion()
	switch {
	case kind == corev1.EventTypeWarning:
		key.version = b.cause(key, p.gist(note), version, now, oneCause)
	case related == nil:
		key.version = b.cause(key, note, version, now, 0)
	}
	if !b.admit(key, now) {
		if kind == corev1.EventTypeNormal {
			b.leaveOut(key, note, now)
			return
		}
		related, key.related = nil, ""
		key.version = b.cause(eventKey{kind: kind, reason: reason, action: action}, p.gist(note), version, now, oneCause)
		b.sent[key] = now
	}
	about := reference(p.Parent, p.kind())
	about.SetResourceVersion(key.version)
	c.Recorder.Eventf(about, referenceOrNil(related), kind, reason, action, "%s", note)
}

// cause is what warnings of a key, or events about no child, tell.
type cause struct {
	line, version string
	since, last   time.Time
}

// flushEvents sends an event that says how many were left out, once none has been for a while.
func (p *Pass) flushEvents() {
	b, now := &p.memory.events, p.controller.Clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, o := range b.omitted {
		wait := max(o.at.Add(calm).Sub(now), b.sent[key].Add(known).Sub(now)) // earlier the recorder would join it with the last one
		if wait > 0 {
			p.RequeueAfter(wait)
			continue
		}
		delete(b.omitted, key)
		b.sent[key] = now
		p.controller.Recorder.Eventf(reference(p.Parent, p.kind()), nil, key.kind, key.reason, key.action,
			"%s", Cut(fmt.Sprintf("%d more, the last one: %s", o.count, o.last), MaxNote))
	}
}

// budget is how many events of one parent may be sent. The zero value is a full budget.
type budget struct {
	mu     sync.Mutex // writes of one pass are carried out at once
	tokens float64
	at     time.Time
	// sent is when events of a key were sent last, omitted what was left out since the last event that said so.
	sent    map[eventKey]time.Time
	omitted map[eventKey]*omitted
	// told is what warnings, and events about no child, tell.
	told map[eventKey]cause
}

// eventKey is what makes two events equal to the recorder.
type eventKey struct {
	kind, reason, action string
	related              types.UID
	// version is the one of the parent that it refers to.
	version string
}

// omitted are events of one reason that were left out.
type omitted struct {
	count int
	last  string
	at    time.Time
}

// cause returns the version of the parent that an event of a key refers to: a new one if its line says something else
// than was told, and that has been told for at least this long. Where the parent has not changed since, the recorder
// could not tell the two apart.
func (b *budget) cause(key eventKey, line, version string, now time.Time, least time.Duration) string {
	t, told := b.told[key]
	switch {
	case !told || now.Sub(t.last) >= known:
		maps.DeleteFunc(b.told, func(_ eventKey, old cause) bool { return now.Sub(old.last) >= known })
		t = cause{line: line, since: now}
	case t.line != line && now.Sub(t.since) >= least && version != t.version:
		t = cause{line: line, since: now, version: version}
	}
	if b.told == nil {
		b.told = map[eventKey]cause{}
	}
	t.last = now
	b.told[key] = t
	return t.version
}

// gist is the first line of a note without the names of children and the words that have digits in them. The name of a
// request, a time and a count differ each time, and are no other cause.
func (p *Pass) gist(note string) string {
	line, _, _ := strings.Cut(note, "\n")
	varies := func(word string) bool {
		return strings.ContainsAny(word, "0123456789") || strings.HasPrefix(strings.TrimLeft(word, `"`), p.Parent.GetName()+"-")
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(line), varies), " ")
}

// admit reports whether an event may be sent. One that the recorder joins with an earlier one costs nothing.
func (b *budget) admit(key eventKey, now time.Time) bool {
	if b.sent == nil {
		b.tokens, b.sent, b.omitted = burst, map[eventKey]time.Time{}, map[eventKey]*omitted{}
	} else {
		b.tokens = min(burst, b.tokens+now.Sub(b.at).Seconds()/refill.Seconds())
	}
	b.at = now
	if at, ok := b.sent[key]; ok && now.Sub(at) < known {
		return true
	}
	reserve := 0.0
	if key.kind == corev1.EventTypeNormal {
		reserve = forWarnings
	}
	if b.tokens < 1+reserve {
		return false
	}
	b.tokens--
	for k, at := range b.sent {
		if now.Sub(at) >= known {
			delete(b.sent, k)
		}
	}
	b.sent[key] = now
	return true
}

// leaveOut counts an event that is not sent.
func (b *budget) leaveOut(key eventKey, note string, now time.Time) {
	key.related, key.version = "", ""
	o := b.omitted[key]
	if o == nil {
		o = &omitted{}
		b.omitted[key] = o
	}
	o.count, o.last, o.at = o.count+1, note, now
}

// reference is how an event refers to an object.
func reference(o client.Object, kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}}
	out.SetGroupVersionKind(kind)
	return out
}

// referenceOrNil refers to an object if its kind is known. It returns nil, not a nil pointer, if there is none.
func referenceOrNil(o client.Object) runtime.Object {
	if o == nil {
		return nil
	}
	kind := o.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil || len(kinds) == 0 {
			return nil
		}
		kind = kinds[0]
	}
	return reference(o, kind)
}
