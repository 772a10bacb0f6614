package hook

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// This file makes connections. Nothing of the manager's own transport is used, so that no token, certificate or cookie
// of the manager can reach a hook.

// wire sends requests of one hook with one set of certificates, directly or through a proxy. A direct connection is
// never made to an address that the guard refuses. A proxy is the operator's choice and may have any address, so it has
// connections of its own: a hook must not have the proxy's address just because we dial it.
type wire struct {
	guard           *Guard
	proxy           func(*http.Request) (*url.URL, error)
	direct, proxied *http.Transport
}

func newWire(guard *Guard, proxy func(*http.Request) (*url.URL, error), config *tls.Config) *wire {
	w := &wire{guard: guard, proxy: proxy}
	w.direct = newTransport(&net.Dialer{Timeout: dialTimeout, Resolver: guard.Resolver, ControlContext: guard.control}, config)
	w.proxied = newTransport(&net.Dialer{Timeout: dialTimeout, Resolver: guard.Resolver}, config)
	w.proxied.Proxy = proxy
	return w
}

const dialTimeout = 10 * time.Second

func newTransport(dialer *net.Dialer, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:     dialer.DialContext,
		TLSClientConfig: config,
		// A custom dialer switches HTTP/2 off unless one asks for it.
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    32, // one for each worker and revision
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        32 << 10, // what fits is sent without a buffer of its own for each call
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// RoundTrip sends one request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := w.proxy(r)
	if err != nil { // its text has the proxy's address, which may hold a password
		err = errors.New("the proxy that the environment names for it has no address that can be read")
	}
	if err == nil && via == nil {
		return w.direct.RoundTrip(r)
	}
	if err == nil {
		err = w.guard.checkProxied(r.Context(), r.URL)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return w.proxied.RoundTrip(r)
}

// CloseIdleConnections ends what is not in use.
func (w *wire) CloseIdleConnections() {
	w.direct.CloseIdleConnections()
	w.proxied.CloseIdleConnections()
}
