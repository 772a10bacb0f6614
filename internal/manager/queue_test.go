package manager

import (
	"net/http"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/controllers/recorder"
	"github.com/cairn-dev/cairn/internal/queue"
)

// TestQueues: every controller has a queue that ends, or the manager may not. Those that run others are looked at in
// package host, which gives them theirs. See docs/design/pass.md.
func TestQueues(t *testing.T) {
	want := made(queue.New)
	for _, name := range Names() {
		if name == composite.Name || name == decorator.Name || name == recorder.Name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			mgr := newLooking(t)
			if err := Add(t.Context(), mgr, Options{Controllers: []string{name}}); err != nil {
				t.Fatal(err)
			}
			if len(mgr.controllers) != 1 {
				t.Fatalf("it has added the controllers %v", mgr.controllers)
			}
			// The type of a controller is internal, and its fields are not.
			field := reflect.ValueOf(mgr.controllers[0]).Elem().FieldByName("NewQueue")
			if newQueue, ok := reflect.TypeAssert[newQueue](field); !ok || made(newQueue) != want {
				t.Error("its queue is none of package queue")
			}
		})
	}
}

type newQueue = func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue.Queue

// made returns the type of the queues that f makes.
func made(f newQueue) reflect.Type {
	q := f("", workqueue.DefaultTypedItemBasedRateLimiter[reconcile.Request]())
	q.ShutDown()
	return reflect.TypeOf(q)
}

// looking is a manager that keeps what it is given, and has no API server.
type looking struct {
	ctrl.Manager

	controllers []controller.Controller
}

func newLooking(t *testing.T) *looking {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme), nil
		},
		Metrics:                server.Options{BindAddress: Off},
		HealthProbeBindAddress: Off,
		Controller:             config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &looking{Manager: mgr}
}

func (m *looking) Add(r ctrlmanager.Runnable) error {
	if c, ok := r.(controller.Controller); ok {
		m.controllers = append(m.controllers, c)
	}
	return m.Manager.Add(r)
}
