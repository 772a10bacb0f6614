package hook

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// This file says where a webhook is, as spec.hooks.*.webhook of the controllers does.

// DefaultTimeout is how long a hook may take if it does not say.
const DefaultTimeout = 10 * time.Second

// Webhook is the address of a hook and how to talk to it.
type Webhook struct {
	// URL is the address. If it is empty, Service and Path are.
	URL     string
	Service *Service
	Path    string
	// Timeout bounds a call, from the first byte to the last. Zero or less is [DefaultTimeout].
	Timeout time.Duration
	// ETag makes calls conditional: the hook may answer 304 or 412 to say that its answer is what it was. How long
	// Metacontroller would keep answers has no meaning here: an answer is kept for the revision that it was given for.
	ETag bool
	// Strict says whether answers with unknown or duplicate fields are refused. Nil leaves it to the version: V2 does.
	Strict *bool
	// Endpoint is what this webhook says about certificates and credentials.
	Endpoint Endpoint
}

// Service is a webhook's address within the cluster.
type Service struct {
	Name, Namespace string
	// Port is 80 if it is 0. Protocol is http or https, http if it is empty.
	Port     int32
	Protocol string
}

// address returns the URL of the webhook.
func (w *Webhook) address() (*url.URL, error) {
	text := w.URL
	if text == "" {
		var err error
		if text, err = w.serviceAddress(); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error of net/url repeats the text, which may hold a password.
		return nil, errors.New("the webhook's URL cannot be read")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("the webhook's URL %s is not of the form http://host/path or https://host/path", shown(u))
	}
	return u, nil
}

func (w *Webhook) serviceAddress() (string, error) {
	s := w.Service
	if s == nil || w.Path == "" {
		return "", errors.New("the webhook has neither a url nor both a service and a path")
	}
	for _, label := range []string{s.Name, s.Namespace} {
		if len(validation.IsDNS1123Label(label)) > 0 {
			return "", fmt.Errorf("the webhook's service has %s as its name or namespace", short(label))
		}
	}
	protocol, port := s.Protocol, s.Port
	if protocol == "" {
		protocol = "http"
	}
	if port == 0 {
		port = 80
	}
	host := net.JoinHostPort(s.Name+"."+s.Namespace, strconv.Itoa(int(port)))
	return protocol + "://" + host + "/" + strings.TrimPrefix(w.Path, "/"), nil
}

func (w *Webhook) timeout() time.Duration {
	if w.Timeout <= 0 {
		return DefaultTimeout
	}
	return w.Timeout
}

// strict says how the answers of a hook of version v are read.
func (w *Webhook) strict(v Version) bool {
	if w.Strict != nil {
		return *w.Strict
	}
	return v == V2
}

// EndpointConfig is what a controller says about all hooks at a host.
type EndpointConfig struct {
	Endpoint
	// Host is a name or address, with a port unless it is that of the URL's scheme. Case does not matter.
	Host string
}

// endpoint returns what holds for a call to u: what the webhook says itself, and if it says nothing at all, the first
// entry for the host. The two are never mixed: a webhook that brings its own CA must not get credentials that it did not
// ask for.
func (w *Webhook) endpoint(u *url.URL, configs []EndpointConfig) Endpoint {
	if w.Endpoint != (Endpoint{}) {
		return w.Endpoint
	}
	at := withPort(u.Host, u.Scheme)
	for _, c := range configs {
		if strings.EqualFold(withPort(c.Host, u.Scheme), at) {
			return c.Endpoint
		}
	}
	return Endpoint{}
}

// withPort returns host:port, with the scheme's port if there is none.
func withPort(host, scheme string) string {
	u := url.URL{Host: host}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
