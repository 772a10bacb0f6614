package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is the stage itself: its namespace, its user, and what it saw.

const (
	// patience bounds one wait.
	patience = time.Minute
	// poll is the pause between two looks at a condition.
	poll = 20 * time.Millisecond
)

// StageName is the stage's name in scripts.
const StageName = "sandbox"

// Stage implements [scenario.Stage].
type Stage struct {
	host      *Host
	namespace string
	client    client.Client
	kinds     []check.Kind
	managers  []*manager
	wire      *recording.Wire
	alone     bool
	synced    uint64
	// failed is the error of a manager that ended by itself.
	failed atomic.Pointer[error]
}

// Open gives a script a stage. It waits while another script changes the nodes, or until all others are done if this
// one does. Close has to be called.
func (h *Host) Open(ctx context.Context, script *scenario.Script) (*Stage, error) {
	s := &Stage{host: h, wire: &recording.Wire{User: "scenario"}, alone: Alone(script)}
	if s.alone {
		h.nodes.Lock()
	} else {
		h.nodes.RLock()
	}
	if err := s.open(ctx, script); err != nil {
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // what is open is closed even if ctx has ended
	}
	return s, nil
}

// Alone reports whether a script has to play alone, because it wants other nodes than there are.
func Alone(script *scenario.Script) bool {
	return slices.ContainsFunc(script.Steps, func(step scenario.Step) bool {
		return step.Verb == "nodes" && !slices.Equal(step.Args, []string{strconv.Itoa(Nodes)})
	})
}

func (s *Stage) open(ctx context.Context, script *scenario.Script) (err error) {
	if s.kinds, err = script.Kinds(); err != nil {
		return err
	}
	if err := s.makeNamespace(ctx, script.Name); err != nil {
		return err
	}
	cfg := rest.CopyConfig(s.host.admin)
	cfg.UserAgent = scenario.UserName
	cfg.Wrap(s.wire.Wrap)
	if s.client, err = client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	return s.addManagers(ctx, script.Controllers)
}

// makeNamespace creates a namespace in which pods can be created at once.
func (s *Stage) makeNamespace(ctx context.Context, script string) error {
	ns, err := s.host.user.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "scenario-", Annotations: map[string]string{"sandbox.cairn.dev/scenario": script},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	s.namespace = ns.Name
	return s.Until(ctx, "the default service account of namespace "+ns.Name, func(ctx context.Context) error {
		_, err := s.host.user.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// Close kills the managers and takes the pods away; nodes hold only so many. The namespace stays with the sandbox: its
// deletion asks for every resource that there is, which takes longer than most scripts do.
func (s *Stage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range s.managers {
		m.Stop()
	}
	var errs []error
	if s.namespace != "" {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		errs = append(errs, s.host.user.CoreV1().Pods(s.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}))
	}
	if !s.alone {
		s.host.nodes.RUnlock()
		return errors.Join(errs...)
	}
	errs = append(errs, s.host.sandbox.ScaleNodes(ctx, Nodes))
	s.host.nodes.Unlock()
	return errors.Join(errs...)
}

// Name implements [scenario.Stage].
func (*Stage) Name() string { return StageName }

// Client implements [scenario.Stage].
func (s *Stage) Client() client.Client { return s.client }

// Namespace implements [scenario.Stage].
func (s *Stage) Namespace() string { return s.namespace }

// Nodes implements [scenario.Stage].
func (s *Stage) Nodes(ctx context.Context, n int) error {
	if !s.alone && n == Nodes {
		return nil
	}
	return s.host.sandbox.ScaleNodes(ctx, n)
}

// Until implements [scenario.Stage].
func (s *Stage) Until(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if failed := s.failed.Load(); failed != nil {
			return false, *failed
		}
		err := f(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("wait for %s: %w", what, errors.Join(err, last))
}

// Sync implements [scenario.Stage].
func (s *Stage) Sync(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, err := s.host.sync(ctx)
	s.synced = at
	return at, err
}

// History implements [scenario.Stage].
func (s *Stage) History() (*check.History, error) {
	h, err := s.host.recorder.HistoryOf(s.namespace, s.synced)
	if err != nil {
		return nil, err
	}
	h.Attach(s.wire.Entries(), func(e *check.Entry) bool { return e.UserAgent != scenario.UserName })
	return h, nil
}
