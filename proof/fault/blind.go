package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file keeps the caches behind while the manager repeats a request, or starts again: the two moments in which a
// controller that trusts its caches does everything twice.

// blind is a time in which the caches lag, until a request like one that failed has been answered.
type blind struct {
	after *Request
	// any is true if every counted request will do.
	any bool
	// over is closed when the caches see again, which open has them do. It is idempotent.
	over chan struct{}
	open func()
}

// lasts reports whether the caches lag still.
func (b *blind) lasts() bool {
	select {
	case <-b.over:
		return false
	default:
		return true
	}
}

// blindfold opens the eyes again once the request has been repeated, when the process ends, or when it took too long.
func (in *Injector) blindfold(ctx context.Context, after *Request, release func()) {
	b := in.blind(&blind{after: after}, release)
	context.AfterFunc(ctx, b.open)
}

// restartAt makes the next life begin as of a version, and stay there until it has written something.
func (in *Injector) restartAt(after *Request, version string) {
	in.blind(&blind{after: after, any: true}, in.past(version))
}

// blind notes a blindness that lasts until it is opened, or took too long.
func (in *Injector) blind(b *blind, release func()) *blind {
	b.over = make(chan struct{})
	open := sync.OnceFunc(func() {
		release()
		close(b.over)
	})
	timer := time.AfterFunc(in.plan.HoldFor, open)
	b.open = func() {
		timer.Stop()
		open()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.blinds = append(in.blinds, b)
	return b
}

// repeated ends the blindness that waits for a request like this one. The caller holds the lock.
func (in *Injector) repeated(r Request) {
	for _, b := range in.blinds {
		same := b.after.GroupResource == r.GroupResource && b.after.Subresource == r.Subresource &&
			b.after.Verb == r.Verb && b.after.Name == r.Name
		if r.Index > b.after.Index && (b.any || same) {
			go b.open() // it takes the locks of streams, and nobody waits for it
		}
	}
}

// past begins a time in which new watches of all resources are held, and first lists are as of a version, until the
// function that it returns is called.
func (in *Injector) past(version string) (release func()) {
	s := &in.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heldAll, s.rewindAll, s.rewound = true, version, nil
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heldAll, s.rewindAll = false, ""
		for st := range s.watches {
			if s.held[st.resource] == 0 {
				st.update(func() { st.held = false })
			}
		}
	})
}

// now returns the resource version of the newest state, by a list of the resource that a request is about: the manager
// may list what it writes.
func (t *transport) now(req *http.Request, r *Request) (string, error) {
	info, err := requestInfo.NewRequestInfo(req)
	if err != nil {
		return "", err
	}
	list := req.Clone(context.WithoutCancel(req.Context()))
	list.Method, list.Body, list.ContentLength = http.MethodGet, nil, 0
	list.URL.Path = path.Join("/", info.APIPrefix, info.APIGroup, info.APIVersion, "namespaces", info.Namespace, info.Resource)
	list.URL.RawPath, list.URL.RawQuery = "", "limit=1"
	list.Header.Set("Accept", "application/json")
	list.Header.Del("Content-Type")
	resp, err := t.next.RoundTrip(list)
	if err != nil {
		return "", fmt.Errorf("list %s to learn the present: %w", r.GroupResource, err)
	}
	var head metav1.PartialObjectMetadataList
	err = errors.Join(json.NewDecoder(resp.Body).Decode(&head), resp.Body.Close())
	if err == nil && head.ResourceVersion == "" {
		err = fmt.Errorf("list %s to learn the present: %s", r.GroupResource, resp.Status)
	}
	return head.ResourceVersion, err
}
