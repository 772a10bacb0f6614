package recording

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is one watch of a recorder. It goes on where it was when the connection ends, and fails where it cannot.

const (
	// askSeconds is the lifetime of a watch that should tell soon how far it is. The API server does so two seconds before
	// the end of a watch, if it comes to it: a busy one may not, so each further attempt gets twice the time.
	askSeconds = 3
	// mostSeconds bounds that.
	mostSeconds = 24
	// restSeconds is the lifetime of any other watch.
	restSeconds = 1800
)

// stream is the watch of one resource in one namespace.
type stream struct {
	recorder  *Recorder
	resource  schema.GroupVersionResource
	namespace string
	// poke wakes a stream that is at rest, because wanted was raised.
	poke chan struct{}
	// seen is the resource version up to which everything was seen, wanted is up to where somebody waits for it. The
	// recorder's mutex guards both.
	seen, wanted uint64
}

func (s *stream) String() string { return s.resource.Resource + " in " + strconv.Quote(s.namespace) }

func (s *stream) client() dynamic.ResourceInterface {
	if s.namespace == metav1.NamespaceAll {
		return s.recorder.client.Resource(s.resource)
	}
	return s.recorder.client.Resource(s.resource).Namespace(s.namespace)
}

// ask makes the stream tell soon how far it is, again and again until it has passed a resource version.
func (s *stream) ask(until uint64) {
	s.recorder.mu.Lock()
	s.wanted = max(s.wanted, until)
	s.recorder.mu.Unlock()
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// list reads what exists before the watch begins.
func (s *stream) list(ctx context.Context) error {
	list, err := s.client().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", s, err)
	}
	if s.seen, err = parseVersion(list.GetResourceVersion()); err != nil {
		return fmt.Errorf("list %s: %w", s, err)
	}
	for i := range list.Items {
		o, err := typed(&list.Items[i])
		if err != nil {
			return fmt.Errorf("list %s: %w", s, err)
		}
		s.recorder.listed = append(s.recorder.listed, Change{Resource: s.resource, Object: o})
	}
	return nil
}

// run watches until ctx is done or something is missing. An answer of 410 is the end: what lies between is unknown.
func (s *stream) run(ctx context.Context) {
	asking := int64(askSeconds)
	for ctx.Err() == nil {
		seen, wanted := s.position()
		seconds := int64(restSeconds)
		if seen < wanted {
			seconds = asking
		}
		if err := s.watch(ctx, seen, wanted, seconds); err != nil {
			if ctx.Err() == nil {
				s.recorder.fail(fmt.Errorf("watch %s: %w", s, err))
			}
			return
		}
		asking = askSeconds
		if seen, _ := s.position(); seen < wanted {
			asking = min(2*seconds, mostSeconds)
		}
	}
}

// position is up to where the stream is, and where somebody waits for it.
func (s *stream) position() (seen, wanted uint64) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	return s.seen, s.wanted
}

// watch takes what one watch tells, until it ends. Who asks ends it earlier, but not while it has to answer who asked
// before: a watch that begins anew each time never comes to its answer.
func (s *stream) watch(ctx context.Context, from, wanted uint64, seconds int64) error {
	w, err := s.client().Watch(ctx, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(from, 10), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		var poke chan struct{}
		if seen, _ := s.position(); seen >= wanted {
			poke = s.poke
		}
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if err := s.take(event); err != nil {
				return err
			}
		case <-poke:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *stream) take(event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a watch told of a %T", event.Object)
	}
	rv, err := parseVersion(u.GetResourceVersion())
	if err != nil {
		return err
	}
	if event.Type == watch.Bookmark {
		s.recorder.advance(s, rv, nil)
		return nil
	}
	o, err := typed(u)
	if err != nil {
		return err
	}
	s.recorder.advance(s, rv, &Change{Resource: s.resource, Object: o, Deleted: event.Type == watch.Deleted})
	return nil
}

// typed returns the object as its Go type, if Kubernetes has one: the rules read it at many resource versions.
// Managed fields are left out: no rule reads them, and they are half of what would be kept.
func typed(u *unstructured.Unstructured) (client.Object, error) {
	u.SetManagedFields(nil)
	made, err := clientgoscheme.Scheme.New(u.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return u, nil
	}
	if err != nil {
		return nil, err
	}
	o, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", made)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return o, nil
}
