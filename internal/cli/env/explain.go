package env

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// This file replaces errors of libraries that do not name the thing to correct.

// unitless finds a duration without a unit in an error of package time.
var unitless = regexp.MustCompile(`missing unit in duration "?(\d+)`)

// Explain returns an error for [Report] that names the thing to correct, and err itself if it already does. The exit
// code follows from err.
func (e *Env) Explain(err error) error {
	switch duration := unitless.FindStringSubmatch(err.Error()); {
	case clientcmd.IsContextNotFound(err):
		return e.noContext(err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server rejected the credentials of %s; they may have expired: %w", e.context(), err)
	case duration != nil:
		return fmt.Errorf("%w; write %ss for %s seconds", err, duration[1], duration[1])
	}
	return err
}

// noContext is the error about a context that the kubeconfig lacks.
func (e *Env) noContext(err error) error {
	raw, unread := e.Cluster.ToRawKubeConfigLoader().RawConfig()
	if unread != nil {
		return err
	}
	known := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	if known == "" {
		known = "none"
	}
	return fmt.Errorf("the kubeconfig has no %s; available: %s", e.context(), known)
}

// context names the context that the flags or the kubeconfig choose.
func (e *Env) context() string {
	name := *e.Cluster.Context
	if raw, err := e.Cluster.ToRawKubeConfigLoader().RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return "this pod" // a kubeconfig has a current context
	}
	return fmt.Sprintf("context %q", name)
}
