package watching

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the API server as one manager sees it.

// Server is an API server whose kinds come and go. Make one with [New], one for a manager.
type Server struct {
	// Cache holds unstructured objects of the kinds that are watched, and Metacontroller's own types. What it returns is
	// not copied and may not be changed. A kind is watched from the first GetInformer on, and as long as the context of
	// some GetInformer, [Server.Index] or [Events] for it has not ended.
	Cache cache.Cache
	// Client writes. Do not read with it: some kinds come from a cache. Live is the API reader.
	Client client.Client
	Live   client.Reader
	Mapper meta.RESTMapper
	// Authority says what is served and allowed. If it is nil, that is never checked.
	Authority Authority
	Clock     clock.WithTicker

	// indexing makes two controllers that start at once add an index once.
	indexing sync.Mutex
}

// Options are required, except HTTPClient, Account, Cache, Authority and Namespace.
type Options struct {
	Config *rest.Config
	// HTTPClient carries the requests. Nil is the manager's.
	HTTPClient *http.Client
	// Account is whose rights they have, for messages. Empty is the manager's.
	Account string
	Clock   clock.WithTicker
	// Authority is asked whether kinds can still be watched. Nil means that this is not checked.
	Authority Authority
	// Namespace, unless it is empty, is the only one that is watched.
	Namespace string
	// Begun is called when the manager starts, before all users of the cache, and Over when it has ended, after them.
	Begun func() error
	Over  func()
	// Cache is for tests, which run it themselves. Nil means one of our own.
	Cache cache.Cache
}

// New returns a server, whose cache mgr runs. It returns an error if mgr cannot take another cache. If the cache is its
// own, kinds may come and go, and client and mapper follow.
func New(mgr ctrl.Manager, o Options) (*Server, error) {
	if o.HTTPClient == nil && o.Cache == nil {
		o.HTTPClient = mgr.GetHTTPClient()
	}
	s := &Server{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper()}
	kinds, err := s.open(o, mgr.GetScheme(), nil)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(kinds); err != nil {
		return nil, fmt.Errorf("add a cache for hosted controllers: %w", err)
	}
	return s, nil
}

// As returns the same API server for another account, with a cache and a client of its own, and what runs that cache
// until a context ends. What is served, which everybody may know, it learns from s.
func (s *Server) As(o Options) (*Server, func(context.Context) error, error) {
	out := &Server{}
	kinds, err := out.open(o, s.Client.Scheme(), s.Mapper)
	if err != nil {
		return nil, nil, err
	}
	return out, kinds.Start, nil
}

// open makes cache and client. A given mapper is used for both.
func (s *Server) open(o Options, scheme *runtime.Scheme, mapper meta.RESTMapper) (*informers, error) {
	s.Authority, s.Clock = o.Authority, o.Clock
	if o.Cache == nil {
		renewed, err := newRenewed(o.Config, o.HTTPClient, scheme, mapper)
		if err != nil {
			return nil, err
		}
		s.Client, s.Live, s.Mapper = renewedClient{renewed}, renewedClient{renewed}, renewedMapper{renewed}
	}
	kinds, err := newInformers(o, scheme, s.Mapper)
	if err != nil {
		return nil, fmt.Errorf("make a cache for hosted controllers: %w", err)
	}
	s.Cache = kinds
	return kinds, nil
}

// HasStatus reports whether a resource has the status subresource; true if that cannot be found out.
func (s *Server) HasStatus(r Resource) (bool, error) { return s.hasSubresource(r, "status", true) }

// HasScale reports whether a resource has the scale subresource; false if that cannot be found out.
func (s *Server) HasScale(r Resource) (bool, error) { return s.hasSubresource(r, "scale", false) }

// hasSubresource reports whether a resource has one of that name; unknown is the answer if nobody can be asked. The
// error is a [meta.NoResourceMatchError] if the resource is not served.
func (s *Server) hasSubresource(r Resource, name string, unknown bool) (bool, error) {
	if s.Authority == nil {
		return unknown, nil
	}
	list, err := s.Authority.ServerResourcesForGroupVersion(r.Resource.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("find %s: %w", r, &meta.NoResourceMatchError{PartialResource: r.Resource})
	case err != nil:
		return false, fmt.Errorf("find out whether %s have a %s: %w", r, name, err)
	}
	for _, one := range list.APIResources {
		if one.Name == r.Resource.Resource+"/"+name {
			return true, nil
		}
	}
	return false, nil
}
