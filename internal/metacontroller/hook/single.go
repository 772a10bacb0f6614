package hook

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// This file is a cache of one object that knows why it is empty.

// single is the cache of one object.
type single struct {
	informer toolscache.SharedIndexInformer
	// asked is when it was asked for last. Only Secrets uses it.
	asked time.Time

	mu sync.Mutex
	// listing and watching are the results of the last request of either kind.
	listing, watching error
	// news is closed when they change.
	news chan struct{}
}

// calls are the requests that list and watch a resource.
type calls[L runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newSingle returns the cache of the object of that name, not started. client has the requests.
func newSingle[L runtime.Object](client any, empty runtime.Object, name string, c calls[L]) *single {
	s := &single{news: make(chan struct{})}
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = byName
			l, err := c.list(ctx, o)
			s.listed(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = byName
			w, err := c.watch(ctx, o)
			s.begun(err)
			return w, err
		},
	}, client)
	s.informer = toolscache.NewSharedIndexInformer(lw, empty, 0, nil)
	// Callers get the error, and show it to users.
	_ = s.informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {}) // fails only once started
	return s
}

// listed notes the result of a list.
func (s *single) listed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = err
	s.tell()
}

// begun notes the result of starting a watch. A watch may replace the list, or else starts after it: once there is one,
// no list is failing.
func (s *single) begun(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = err
	if err == nil {
		s.listing = nil
	}
	s.tell()
}

func (s *single) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// state returns the last refusal of the server, the last other error, and a channel that is closed when either changes.
func (s *single) state() (news <-chan struct{}, refused, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range []error{s.listing, s.watching} {
		switch {
		case apierrors.IsForbidden(err):
			refused = err
		case err != nil && failed == nil:
			failed = err
		}
	}
	return s.news, refused, failed
}

// get returns the object, nil if there is none. A refusal is an error even if the object was seen before: without the
// right to read it, it must not be used. Any other failure is one only as long as the object was never seen.
func (s *single) get(ctx context.Context, key string) (any, error) {
	synced := s.informer.HasSyncedChecker()
	for {
		news, refused, failed := s.state()
		if refused != nil {
			return nil, fmt.Errorf("%w; the role needs get, list and watch of it", refused)
		}
		if toolscache.IsDone(synced) {
			o, _, err := s.informer.GetStore().GetByKey(key)
			return o, err
		}
		select {
		case <-news:
		case <-synced.Done():
		case <-ctx.Done():
			if failed == nil {
				failed = ctx.Err()
			}
			return nil, fmt.Errorf("it could not be read in time: %w", failed)
		}
	}
}
