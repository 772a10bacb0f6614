package fakeserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file keeps events, and stands in for a cache.

// Recorder keeps events. The zero value is ready to use.
type Recorder struct {
	mu     sync.Mutex
	events []string
}

// Eventf keeps one event, as "type reason note".
func (r *Recorder) Eventf(_, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtype+" "+reason+" "+fmt.Sprintf(note, args...))
}

// Events returns the events of one of reasons, or all.
func (r *Recorder) Events(reasons ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e string) bool {
		return len(reasons) > 0 && !slices.Contains(reasons, strings.Fields(e)[1])
	})
}

// Cached returns a client that writes to c and reads from cache.
func Cached(c client.Client, cache client.Reader) client.Client { return cached{c, cache} }

type cached struct {
	client.Client

	cache client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, o, opts...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, list, opts...)
}
