package sandbox

// This file takes the API server or etcd away under everything that talks to them, and brings them back.

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
)

// schedulerName is that of the component, in errors.
const schedulerName = "kube-scheduler"

// portPatience is how long the port of an API server that has ended may take to be free.
const portPatience = 10 * time.Second

// RestartAPIServer stops the API server, calls meanwhile, and starts another one on the same address and over the same
// data, as a kubelet does with a static pod. It returns when the new one is ready. All watches end, and those that
// begin again from before the restart are told that they are too late; requests meanwhile are refused by the kernel.
// Everything else in the sandbox goes on, and has to cope.
//
// The scheduler is stopped and started with it, because it ends its process when a pod was replaced by another one of
// the same name and the watch did not show both: in a cluster it is started again then, and here it would end the
// sandbox.
//
// Only one restart is under way at a time. When it fails, the sandbox ends.
func (s *Sandbox) RestartAPIServer(ctx context.Context, meanwhile func()) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	return s.withoutScheduler(ctx, func() error { return s.restartAPIServer(ctx, meanwhile) })
}

func (s *Sandbox) restartAPIServer(ctx context.Context, meanwhile func()) error {
	s.mu.Lock()
	api := s.api
	s.mu.Unlock()
	if err := stopAll(ctx, []*component{api}); err != nil {
		return s.broken("kube-apiserver", err)
	}
	meanwhile()
	server, err := s.anotherAPIServer(ctx)
	if err != nil {
		return s.broken("kube-apiserver", err)
	}
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		_ = server.abandon()
		return ErrStopped
	}
	s.api = startComponent(context.WithoutCancel(ctx), "kube-apiserver", server.run, s.fail)
	s.mu.Unlock()
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return s.broken("kube-apiserver", err)
	}
	return poll(ctx, "kube-apiserver to be ready again", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// anotherAPIServer builds one at the address of the first.
func (s *Sandbox) anotherAPIServer(ctx context.Context) (apiServer, error) {
	_, text, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	var listener *trackedListener
	soon, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	err = poll(soon, "the port to be free", func(ctx context.Context) (err error) {
		listener, err = listenAPI(ctx, port)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.newAPIServer(context.WithoutCancel(ctx), listener)
}

// RestartEtcd stops etcd, calls meanwhile, and starts it again with the same data, while the API server runs: its
// requests fail or wait, and it begins its own watches anew. RestartEtcd returns when etcd serves. The scheduler is
// stopped and started with it, as with the API server. Only one restart is under way at a time, except that of etcd in
// the meanwhile of the API server's. When it fails, the sandbox ends.
func (s *Sandbox) RestartEtcd(ctx context.Context, meanwhile func()) error {
	return s.withoutScheduler(ctx, func() error {
		if err := s.etcd.again(ctx, s.data, meanwhile); err != nil {
			return s.broken("etcd", err)
		}
		return nil
	})
}

// withoutScheduler calls f while no scheduler runs, and starts one afterwards if there was one before.
func (s *Sandbox) withoutScheduler(ctx context.Context, f func() error) error {
	s.mu.Lock()
	var stopped []*component
	s.clients = slices.DeleteFunc(s.clients, func(c *component) bool {
		if c.name != schedulerName {
			return false
		}
		stopped = append(stopped, c)
		return true
	})
	s.mu.Unlock()
	if err := stopAll(ctx, stopped); err != nil {
		return s.broken(schedulerName, err)
	}
	if err := f(); err != nil || len(stopped) == 0 {
		return err
	}
	_, err := s.launch(context.WithoutCancel(ctx), schedulerName, s.runScheduler)
	return err
}

// broken ends the sandbox: a part of it is gone.
func (s *Sandbox) broken(part string, err error) error {
	err = fmt.Errorf("restart %s: %w", part, err)
	s.fail(err)
	return err
}
