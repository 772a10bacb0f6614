// Package cluster is the stage of a scenario on a real API server: a sandbox, in which every script has a namespace of
// its own, managers in this process behind an injector of faults, and a recorder that sees every write.
//
// What may not come in: an assertion. What a script expects is decided in package scenario, what is a broken promise in
// package check.
package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// Nodes is how many nodes a sandbox for scenarios has, and a script that says nothing about nodes.
const Nodes = 3

// Host lets scripts play in one sandbox, several at once. A script that wants other nodes than there are plays alone.
type Host struct {
	sandbox  *sandbox.Sandbox
	admin    *rest.Config // without limits
	user     kubernetes.Interface
	recorder *recording.Recorder
	nodes    sync.RWMutex // held for writing by the one that changes nodes

	mu         sync.Mutex
	identities map[string]*rest.Config // by the names of the controllers
	next       *moment                 // the sync that whoever asks now joins; nil if there is none yet

	syncing sync.Mutex // held during a sync
}

// moment is a sync that several stages wait for.
type moment struct {
	done chan struct{}
	at   uint64
	err  error
}

// NewHost begins to record what scripts will do in a sandbox, which has [Nodes] nodes. Close ends that.
func NewHost(ctx context.Context, s *sandbox.Sandbox, scripts []*scenario.Script) (*Host, error) {
	h := &Host{sandbox: s, admin: s.Config(), identities: map[string]*rest.Config{}}
	h.admin.QPS = -1
	var err error
	if h.user, err = kubernetes.NewForConfig(h.admin); err != nil {
		return nil, err
	}
	clean, err := dynamic.NewForConfig(h.admin)
	if err != nil {
		return nil, err
	}
	all := &scenario.Script{}
	for _, script := range scripts {
		all.Controllers = append(all.Controllers, script.Controllers...)
	}
	scopes, err := all.Scopes()
	if err != nil {
		return nil, err
	}
	if h.recorder, err = recording.Record(ctx, clean, []string{metav1.NamespaceAll}, scopes); err != nil {
		return nil, fmt.Errorf("record the sandbox: %w", err)
	}
	return h, nil
}

// Close ends the recording. No stage may be in use.
func (h *Host) Close() { h.recorder.Stop() }

// identity returns a configuration with the rights that are shipped for the controllers. They are applied once.
func (h *Host) identity(ctx context.Context, controllers []string) (*rest.Config, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.Join(controllers, " ")
	if h.identities[key] == nil {
		cfg, err := install.Roles(ctx, h.admin, controllers, true)
		if err != nil {
			return nil, fmt.Errorf("give %v their roles: %w", controllers, err)
		}
		cfg.QPS = -1
		h.identities[key] = cfg
	}
	return rest.CopyConfig(h.identities[key]), nil
}

// sync is one sync of the recorder for all that ask before it begins.
func (h *Host) sync(ctx context.Context) (uint64, error) {
	h.mu.Lock()
	m := h.next
	first := m == nil
	if first {
		m = &moment{done: make(chan struct{})}
		h.next = m
	}
	h.mu.Unlock()
	if first {
		h.syncing.Lock() // until the one before is over, more may join
		h.mu.Lock()
		h.next = nil
		h.mu.Unlock()
		// The others must not fail because the first one gives up.
		syncing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		m.at, m.err = h.recorder.Sync(syncing)
		cancel()
		h.syncing.Unlock()
		close(m.done)
	}
	select {
	case <-m.done:
		return m.at, m.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
