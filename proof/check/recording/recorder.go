package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file records: it watches every resource with one client that nobody disturbs, and knows what it has seen.

// Scope is one resource to record.
type Scope struct {
	Resource schema.GroupVersionResource
	// Cluster is true for a resource that has no namespaces.
	Cluster bool
}

// Recorder writes down what happens to the objects of some resources.
type Recorder struct {
	client  dynamic.Interface
	marker  string
	streams []*stream
	origin  uint64
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu       sync.Mutex
	listed   []Change
	watched  []Change
	complete uint64
	err      error
	// progress is closed, and made anew, whenever a stream got further or failed.
	progress chan struct{}
	// changed holds a channel for each namespace that somebody waits for.
	changed map[string]chan struct{}
}

// Record starts to record the resources in the given namespaces, until ctx is done or Stop is called. The only
// namespace may be metav1.NamespaceAll: then [Recorder.HistoryOf] takes the recording apart. The client should be one
// of its own, without limits and without faults. The first namespace, or "default", gets a ConfigMap by which Sync
// marks a moment.
func Record(ctx context.Context, c dynamic.Interface, namespaces []string, scopes []Scope) (*Recorder, error) {
	if len(namespaces) == 0 {
		return nil, errors.New("record: no namespaces")
	}
	r := &Recorder{
		client: c, marker: cmp.Or(namespaces[0], metav1.NamespaceDefault),
		progress: make(chan struct{}), changed: map[string]chan struct{}{},
	}
	for _, scope := range scopes {
		in := namespaces
		if scope.Cluster {
			in = []string{metav1.NamespaceAll}
		}
		for _, namespace := range in {
			s := &stream{recorder: r, resource: scope.Resource, namespace: namespace, poke: make(chan struct{}, 1)}
			if err := s.list(ctx); err != nil {
				return nil, err
			}
			r.streams = append(r.streams, s)
			r.origin = max(r.origin, s.seen)
		}
	}
	r.complete = r.origin
	ctx, r.cancel = context.WithCancel(ctx)
	for _, s := range r.streams {
		r.done.Go(func() { s.run(ctx) })
	}
	return r, nil
}

// Sync waits until everything that was written before the call is in the history, and returns the resource version up
// to which that is so. It takes about two seconds, because the API server tells how far a watch is no more often than
// that, and more on a machine that is busy. It fails if a watch has a gap: then the history is worth nothing.
func (r *Recorder) Sync(ctx context.Context) (uint64, error) {
	now, err := r.mark(ctx)
	if err != nil {
		return 0, fmt.Errorf("mark the moment: %w", err)
	}
	for _, s := range r.streams {
		// A consistent list makes the API server's own cache see the mark, without which the watch would not pass it.
		if _, err := s.client().List(ctx, metav1.ListOptions{}); err != nil {
			return 0, fmt.Errorf("list %s: %w", s.resource, err)
		}
		s.ask(now)
	}
	for {
		r.mu.Lock()
		behind := slices.ContainsFunc(r.streams, func(s *stream) bool { return s.seen < now })
		if !behind {
			r.complete = max(r.complete, now)
		}
		progress, err := r.progress, r.err
		r.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case !behind:
			return now, nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait until the watches have passed %d: %w", now, ctx.Err())
		}
	}
}

// mark writes something and returns its resource version: now.
func (r *Recorder) mark(ctx context.Context) (uint64, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetGenerateName("cairn-check-")
	marks := r.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(r.marker)
	made, err := marks.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	now, err := parseVersion(made.GetResourceVersion())
	return now, errors.Join(err, marks.Delete(ctx, made.GetName(), metav1.DeleteOptions{}))
}

// History returns what was recorded up to the last Sync, and an error if anything is missing.
func (r *Recorder) History() (*History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history(r.complete, func(client.Object) bool { return true })
}

// HistoryOf is [Recorder.History] of one namespace, and of what is in none, up to a resource version that Sync has
// passed. A sweep records all of its runs at once, each in its own namespace, and has them judged one by one.
func (r *Recorder) HistoryOf(namespace string, to uint64) (*History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to > r.complete {
		return nil, fmt.Errorf("the recording is complete up to %d, and %d is asked for", r.complete, to)
	}
	return r.history(to, func(o client.Object) bool { return o.GetNamespace() == namespace || o.GetNamespace() == "" })
}

// history merges what a test lets through. The caller holds the lock.
func (r *Recorder) history(to uint64, test func(client.Object) bool) (*History, error) {
	if r.err != nil {
		return nil, r.err
	}
	var listed, watched []Change
	for _, c := range r.listed {
		if test(c.Object) {
			listed = append(listed, c)
		}
	}
	for _, c := range r.watched {
		if !test(c.Object) {
			continue
		}
		rv, err := VersionOf(c.Object)
		if err != nil {
			return nil, err
		}
		if rv <= to {
			watched = append(watched, c)
		}
	}
	return NewHistory(r.origin, to, listed, watched)
}

// Changed returns a channel that is closed when something that is recorded happens in a namespace, so that who waits
// for a condition need not ask the API server again and again.
func (r *Recorder) Changed(namespace string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed[namespace] == nil {
		r.changed[namespace] = make(chan struct{})
	}
	return r.changed[namespace]
}

// Stop ends the recording and waits until it has ended.
func (r *Recorder) Stop() {
	r.cancel()
	r.done.Wait()
}

// advance notes that a stream has seen everything up to rv, and what came last, if anything did. A change from the time
// before a mark that a stream had passed already means that its progress was not to be trusted.
func (r *Recorder) advance(s *stream, rv uint64, c *Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c != nil {
		if rv <= s.seen {
			r.err = errors.Join(r.err, fmt.Errorf("watch %s: %s came with resource version %d after %d", s, c.Object.GetName(), rv, s.seen))
		}
		r.watched = append(r.watched, *c)
		if waiting := r.changed[c.Object.GetNamespace()]; waiting != nil {
			close(waiting)
			delete(r.changed, c.Object.GetNamespace())
		}
	}
	s.seen = max(s.seen, rv)
	r.signal()
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
	r.signal()
}

func (r *Recorder) signal() {
	close(r.progress)
	r.progress = make(chan struct{})
}

func parseVersion(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }
