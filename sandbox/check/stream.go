package check

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
	// the end of a watch.
	askSeconds = 3
	// restSeconds is the lifetime of any other watch.
	restSeconds = 1800
)

// stream is the watch of one resource in one namespace.
type stream struct {
	recorder  *Recorder
	resource  schema.GroupVersionResource
	namespace string
	// poke asks the stream to tell soon how far it is.
	poke chan struct{}
	// seen is the resource version up to which everything was seen; the recorder's mutex guards it.
	seen uint64
}

func (s *stream) String() string { return s.resource.Resource + " in " + strconv.Quote(s.namespace) }

func (s *stream) client() dynamic.ResourceInterface {
	if s.namespace == metav1.NamespaceAll {
		return s.recorder.client.Resource(s.resource)
	}
	return s.recorder.client.Resource(s.resource).Namespace(s.namespace)
}

// ask makes the stream tell soon how far it is. Asking twice is asking once.
func (s *stream) ask() {
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
	seconds := int64(restSeconds)
	for ctx.Err() == nil {
		w, err := s.client().Watch(ctx, metav1.ListOptions{
			ResourceVersion: strconv.FormatUint(s.position(), 10), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		})
		if err != nil {
			if ctx.Err() == nil {
				s.recorder.fail(fmt.Errorf("watch %s: %w", s, err))
			}
			return
		}
		asked, err := s.follow(ctx, w)
		w.Stop()
		if err != nil {
			if ctx.Err() == nil {
				s.recorder.fail(fmt.Errorf("watch %s: %w", s, err))
			}
			return
		}
		seconds = restSeconds
		if asked {
			seconds = askSeconds
		}
	}
}

func (s *stream) position() uint64 {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	return s.seen
}

// follow takes what one watch tells, until it ends or the stream is asked how far it is.
func (s *stream) follow(ctx context.Context, w watch.Interface) (asked bool, err error) {
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return false, nil
			}
			if err := s.take(event); err != nil {
				return false, err
			}
		case <-s.poke:
			return true, nil
		case <-ctx.Done():
			return false, nil
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
