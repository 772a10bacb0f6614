package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is an in-memory API server. It is not safe for concurrent use: it serves one request at a time. Two servers
// that are made of the same options and get the same requests give the same answers.
type Server struct {
	now    func() time.Time
	random *rand.Rand
	tables map[schema.GroupVersionResource]*table
	kinds  map[schema.GroupVersionKind]*table
	order  []*table // as the kinds were given
	rv     uint64
	events []Event
	ending map[string]bool // namespaces that are being deleted

	garbage struct { // what the garbage collector has to do at one resource version
		at       uint64
		requests []Request
	}
}

// New returns an empty server.
func New(o Options) *Server {
	s := &Server{
		now:    o.Now,
		random: rand.New(rand.NewPCG(o.Seed, 0x63616972)), //nolint:gosec // a simulation is repeatable on purpose
		tables: map[schema.GroupVersionResource]*table{},
		kinds:  map[schema.GroupVersionKind]*table{},
		ending: map[string]bool{},
	}
	if s.now == nil {
		s.now = func() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }
	}
	kinds := o.Kinds
	if kinds == nil {
		kinds = BuiltIn()
	}
	for _, k := range kinds {
		t := newTable(k)
		s.tables[k.Resource], s.kinds[k.Kind] = t, t
		s.order = append(s.order, t)
	}
	return s
}

// Do serves one request.
func (s *Server) Do(r Request) Response {
	var answer Response
	t, served := s.tables[r.Resource]
	if !served {
		answer.Err = apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	} else {
		answer = s.serve(t, r)
	}
	answer.ResourceVersion = s.rv
	return answer
}

// Events returns the whole history so far, one event for each change, by resource version. The caller must not change
// it.
func (s *Server) Events() []Event { return slices.Clip(s.events) }

// ResourceVersion returns the resource version of the last change.
func (s *Server) ResourceVersion() uint64 { return s.rv }

// EndNamespace makes the server refuse to create anything in a namespace, as while the namespace is being deleted. What
// is in it stays until somebody deletes it.
func (s *Server) EndNamespace(name string) { s.ending[name] = true }

// serve sends a request to its verb.
func (s *Server) serve(t *table, r Request) Response {
	if err := t.kind.accepts(r); err != nil {
		return Response{Err: err}
	}
	switch r.Verb {
	case VerbGet:
		return one(s.get(t, r))
	case VerbList:
		return many(s.list(t, r))
	case VerbCreate:
		if r.Subresource == subresourceBinding {
			return one(s.bind(t, r))
		}
		return one(s.create(t, r))
	case VerbUpdate:
		return one(s.update(t, r))
	case VerbPatch:
		return one(s.patch(t, r))
	case VerbDelete:
		return one(s.remove(t, r))
	case VerbDeleteCollection:
		return many(s.removeAll(t, r))
	default:
		return Response{Err: apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)}
	}
}

func one(object client.Object, err error) Response     { return Response{Object: object, Err: err} }
func many(objects []client.Object, err error) Response { return Response{Items: objects, Err: err} }

// timestamp is now, as precise as the API.
func (s *Server) timestamp() metav1.Time { return metav1.NewTime(s.now().Truncate(time.Second)) }

// uid returns a UID that no object has.
func (s *Server) uid() types.UID {
	a, b := s.random.Uint64(), s.random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff))
}

// nameLetters are the characters of generated names: no vowels, no bad words.
const (
	nameLetters   = "bcdfghjklmnpqrstvwxz2456789"
	nameSuffix    = 5
	maxNamePrefix = 63 - nameSuffix
	nameAttempts  = 8
)

// generateName returns a name with a prefix.
func (s *Server) generateName(prefix string) string {
	if len(prefix) > maxNamePrefix {
		prefix = prefix[:maxNamePrefix]
	}
	suffix := make([]byte, nameSuffix)
	for i := range suffix {
		suffix[i] = nameLetters[s.random.IntN(len(nameLetters))]
	}
	return prefix + string(suffix)
}

// scope is the context that the rules of a kind want to see.
func scope(t *table, r Request) context.Context {
	ctx := request.WithNamespace(context.Background(), r.Namespace)
	return request.WithRequestInfo(ctx, t.info(r.Subresource))
}

// parseRV reads a resource version; the empty one is 0.
func parseRV(rv string) (uint64, error) {
	if rv == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version " + strconv.Quote(rv))
	}
	return n, nil
}

func formatRV(rv uint64) string { return strconv.FormatUint(rv, 10) }
