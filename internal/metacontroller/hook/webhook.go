package hook

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file says where a webhook is, and with which certificates and credentials it is called.

// addressOf returns the URL of a webhook.
func addressOf(w *v1alpha1.Webhook) (*url.URL, error) {
	if w == nil {
		w = &v1alpha1.Webhook{}
	}
	text := ptr.Deref(w.URL, "")
	if text == "" {
		var err error
		if text, err = serviceAddress(w); err != nil {
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

func serviceAddress(w *v1alpha1.Webhook) (string, error) {
	s, path := w.Service, ptr.Deref(w.Path, "")
	if s == nil || path == "" {
		return "", errors.New("the webhook has neither a url nor both a service and a path")
	}
	for _, label := range []string{s.Name, s.Namespace} {
		if len(validation.IsDNS1123Label(label)) > 0 {
			return "", fmt.Errorf("the webhook's service has %s as its name or namespace", short(label))
		}
	}
	port := ptr.Deref(s.Port, 0)
	if port == 0 {
		port = v1alpha1.DefaultServicePort
	}
	host := net.JoinHostPort(s.Name+"."+s.Namespace, strconv.Itoa(int(port)))
	return or(s.Protocol, v1alpha1.DefaultServiceProtocol) + "://" + host + "/" + strings.TrimPrefix(path, "/"), nil
}

// endpointOf returns what holds for a call to u: the webhook's own settings, and if it has none at all, the first entry
// for the host. The two are never mixed: a webhook that brings its own CA must not get credentials that it did not ask
// for. An empty field counts as a setting, and reading it reports what is missing.
func endpointOf(w *v1alpha1.Webhook, u *url.URL, configs []v1alpha1.EndpointConfig) v1alpha1.EndpointConfig {
	own := v1alpha1.EndpointConfig{CABundle: w.CABundle, ClientTLS: w.ClientTLS, Authorization: w.Authorization, BasicAuth: w.BasicAuth}
	if own != (v1alpha1.EndpointConfig{}) {
		return own
	}
	at := withPort(u.Host, u.Scheme)
	for _, c := range configs {
		if strings.EqualFold(withPort(c.Host, u.Scheme), at) {
			return c
		}
	}
	return v1alpha1.EndpointConfig{}
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
