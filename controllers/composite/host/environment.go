package host

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/controllers/composite/hook"
)

// This file holds what all hosted controllers of a manager share.

// Environment is what all hosted controllers of a manager share. Make one with [NewEnvironment].
type Environment struct {
	// Cache holds unstructured objects of the kinds that are watched, and Metacontroller's own types. What it returns is not
	// copied and may not be changed.
	Cache cache.Cache
	// Client writes. Reads go to the API server: so does Live.
	Client client.Client
	Live   client.Reader
	Mapper meta.RESTMapper
	// Recorder sends events about controllers and parents.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Encoder, Memory, Metrics, Guard and Secrets are those of all hooks.
	Encoder *hook.Encoder
	Memory  *hook.Memory
	Metrics *hook.Metrics
	Guard   *hook.Guard
	Secrets hook.Secrets
	// Workers is how many parents each hosted controller works on at once.
	Workers int
}

// Resource is a resource that a controller names, as the API server serves it.
type Resource struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Namespaced is the scope.
	Namespaced bool
}
