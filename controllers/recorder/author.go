package recorder

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/author"
	"github.com/cairn-dev/cairn/revision"
)

// This file remembers who made an edit. Caches do not keep who wrote what; the fence before a revision is made reads
// the object past them.

// authors remember who made the edit that is being recorded, from when it was read until the revision is made.
type authors struct {
	mu    sync.Mutex
	known map[types.UID]signature
}

type signature struct {
	version     string
	annotations map[string]string
}

// note remembers who wrote what target covers of o last.
func (a *authors) note(o client.Object, target *revision.Target) {
	by := author.Last(o.GetManagedFields(), target)
	if by == nil {
		return
	}
	annotations := map[string]string{history.RecordedByAnnotation: by.Manager}
	if by.Time != nil {
		annotations[history.RecordedAtAnnotation] = by.Time.UTC().Format(time.RFC3339)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[types.UID]signature{}
	}
	a.known[o.GetUID()] = signature{o.GetResourceVersion(), annotations}
}

// of returns annotations for a revision of o, which the caller may change.
func (a *authors) of(o client.Object) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]string{}
	if known := a.known[o.GetUID()]; known.version == o.GetResourceVersion() {
		maps.Copy(out, known.annotations)
	}
	return out
}

func (a *authors) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, parent)
}
