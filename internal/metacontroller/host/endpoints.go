package host

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// This file looks up where the API servers are, which hooks may not call.

// endpointsFor is how long what was found is believed. An API server moves with its machine.
const endpointsFor = time.Minute

// endpoints are the API servers behind the Service kubernetes.
type endpoints struct {
	get   func(context.Context, string, metav1.GetOptions) (*discoveryv1.EndpointSlice, error)
	clock clock.PassiveClock

	mu    sync.Mutex
	found []string
	until time.Time
}

// list returns host:port of each. It returns an error if the API server does not say; a hook is not called then.
func (e *endpoints) list(ctx context.Context) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clock.Now().Before(e.until) {
		return e.found, nil
	}
	// Each API server writes its own address into the slice of this name.
	slice, err := e.get(ctx, "kubernetes", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // they are somewhere else
		slice = &discoveryv1.EndpointSlice{}
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("look up where the API server is: %w; grant the manager what deploy/roles/composite.yaml "+
			"grants in namespace default, or start it with --hook-allow-api-server", err)
	case err != nil:
		return nil, fmt.Errorf("look up where the API server is: %w", err)
	}
	e.found, e.until = nil, e.clock.Now().Add(endpointsFor)
	for _, endpoint := range slice.Endpoints {
		for _, address := range endpoint.Addresses {
			for _, port := range slice.Ports {
				if port.Port != nil {
					e.found = append(e.found, net.JoinHostPort(address, strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	return e.found, nil
}
