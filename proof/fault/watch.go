package fault

import (
	"errors"
	"net/http"
	"net/url"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file delays, cuts and falsifies what the manager's caches are told.

// streams are the watches of one injector, and what is to happen to future ones.
type streams struct {
	mu      sync.Mutex
	watches map[*stream]bool
	held    map[schema.GroupResource]int // by how many
	rewind  map[schema.GroupResource]string

	// heldAll and rewindAll are about all resources, the latter about the first list of each.
	heldAll   bool
	rewindAll string
	rewound   map[schema.GroupResource]bool
}

func (s *streams) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == nil {
		s.watches = map[*stream]bool{}
	}
	s.watches[st] = true
	if s.held[st.resource] > 0 || s.heldAll {
		st.update(func() { st.held = true })
	}
}

func (s *streams) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, st)
}

// of returns the open watches of a resource. The caller holds the lock.
func (s *streams) of(resource schema.GroupResource) []*stream {
	var out []*stream
	for st := range s.watches {
		if st.resource == resource {
			out = append(out, st)
		}
	}
	return out
}

// Hold keeps the watch events of a resource from the manager until the returned function is called, which then gives
// all of them, in order; of several holds, the last release does. It holds for watches that are opened meanwhile as
// well, their initial events included; a plain list is answered. Once Hold has returned, no event passes that was not
// on its way into the manager before.
func (in *Injector) Hold(resource schema.GroupResource) (release func()) {
	add := func(n int) {
		s := &in.streams
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held == nil {
			s.held = map[schema.GroupResource]int{}
		}
		s.held[resource] += n
		for _, st := range s.of(resource) {
			st.update(func() { st.held = s.held[resource] > 0 || s.heldAll })
		}
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

// Held returns how many events of a resource have come from the server and not been read by the manager yet. A scenario
// that holds a watch waits for them here.
func (in *Injector) Held(resource schema.GroupResource) (n int) {
	s := &in.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.of(resource) {
		n += st.waiting()
	}
	return n
}

// Cut ends the open watches of a resource with 410 Expired, so that informers list again. Events that were held are
// lost, as they are when a server forgets them. It returns how many watches there were.
func (in *Injector) Cut(resource schema.GroupResource) (int, error) {
	s := &in.streams
	s.mu.Lock()
	cut := s.of(resource)
	s.mu.Unlock()
	var errs []error
	for _, st := range cut {
		errs = append(errs, st.cut())
	}
	return len(cut), errors.Join(errs...)
}

// Rewind answers the next list of a resource that is content with any version (resourceVersion=0, with which informers
// begin) as of an older resourceVersion, as an API server does whose cache lags behind. Watch-lists are refused until
// then, as by a server that does not offer them, so that informers fall back to listing: the answer to a watch-list is
// never old. A list that asks for the newest state gets it. The state is the real one, from the store's history, so the
// version must not be compacted yet (5 minutes).
func (in *Injector) Rewind(resource schema.GroupResource, resourceVersion string) {
	s := &in.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rewind == nil {
		s.rewind = map[schema.GroupResource]string{}
	}
	s.rewind[resource] = resourceVersion
}

// asOf returns the version as of which to answer, if any, and whether that was the only time.
func (s *streams) asOf(resource schema.GroupResource, once bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version, ok := s.rewind[resource]; ok {
		if once {
			delete(s.rewind, resource)
		}
		return version
	}
	if s.rewindAll == "" || s.rewound[resource] {
		return ""
	}
	if once {
		if s.rewound == nil {
			s.rewound = map[schema.GroupResource]bool{}
		}
		s.rewound[resource] = true
	}
	return s.rewindAll
}

// list sends a list, possibly as one of an older state.
func (t *transport) list(req *http.Request, r Request) (*http.Response, error) {
	query := req.URL.Query()
	if query.Get("resourceVersion") != "0" {
		return t.next.RoundTrip(req)
	}
	version := t.in.streams.asOf(r.GroupResource, true)
	if version == "" {
		return t.next.RoundTrip(req)
	}
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	return t.next.RoundTrip(withQuery(req, query))
}

// watch sends a watch and stands between its events and the manager.
func (t *transport) watch(req *http.Request, r Request) (*http.Response, error) {
	if req.URL.Query().Get("sendInitialEvents") == "true" && t.in.streams.asOf(r.GroupResource, false) != "" {
		return answer(req, statusOf(http.StatusUnprocessableEntity, r), nil)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	t.in.watches(t.process, r.GroupResource)
	next, info, ok := split(resp.Header.Get("Content-Type"), resp.Body)
	if !ok {
		return resp, nil
	}
	resp.Body = t.in.streams.open(t.process.ctx, &stream{resource: r.GroupResource, body: resp.Body, info: info}, next)
	return resp, nil
}

// withQuery is the request with another query.
func withQuery(req *http.Request, query url.Values) *http.Request {
	out := req.Clone(req.Context())
	out.URL.RawQuery = query.Encode()
	return out
}
