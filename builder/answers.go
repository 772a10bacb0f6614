package builder

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file remembers what an author's function has returned for one version of a parent, while that parent has work to do: a rollout
// makes several passes for each child, and changes the parent once a second at most. Losing it costs a call.

// answers are what is remembered of all parents. It is safe for concurrent use.
type answers struct {
	mu sync.Mutex
	of map[types.UID]answered
}

// answered is what is remembered of one parent: of one version only.
type answered struct {
	version string
	wants   map[source][]want
}

// source is what was restored before the author was asked: a revision as it is stored, or nothing.
type source struct {
	revision types.UID
	version  string
}

// ask returns what is wanted of a parent from a source, and calls wants if that is not known.
func (a *answers) ask(parent client.Object, from source, wants func() ([]want, error)) ([]want, error) {
	uid, version := parent.GetUID(), parent.GetResourceVersion()
	if out, ok := a.known(uid, version, from); ok {
		return out, nil
	}
	out, err := wants()
	if err != nil || version == "" {
		return out, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[types.UID]answered{}
	}
	if a.of[uid].version != version {
		a.of[uid] = answered{version, map[source][]want{}}
	}
	a.of[uid].wants[from] = out
	return out, nil
}

// known returns what is remembered.
func (a *answers) known(uid types.UID, version string, from source) (out []want, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[uid].version == version {
		out, ok = a.of[uid].wants[from]
	}
	return out, ok
}

// forget drops what is remembered of a parent.
func (a *answers) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, parent)
}
