package sandbox

// This file takes the API server or etcd away under everything that talks to them, and brings them back.

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
)

// portPatience is how long the port of an API server that has ended may take to be free.
const portPatience = 10 * time.Second

// RestartAPIServer stops the API server, calls meanwhile, and starts another one on the same address and over the same
// data, as a kubelet does with a static pod. It returns when the new one is ready. All watches end, and those that begin
// again from before the restart are told that they are too late; requests meanwhile are refused by the kernel. Everything
// else in the sandbox goes on, and has to cope.
//
// Only one restart is under way at a time. When it fails, the sandbox ends.
func (s *Sandbox) RestartAPIServer(ctx context.Context, meanwhile func()) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
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
		_ = server.listener.Close()
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
func (s *Sandbox) anotherAPIServer(ctx context.Context) (*apiServer, error) {
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
	server, err := newAPIServer(context.WithoutCancel(ctx), listener, s.pki, s.etcd.endpoint, s.options.Requests)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return server, nil
}

// RestartEtcd stops etcd, calls meanwhile, and starts it again with the same data, while the API server runs: its requests
// fail or wait, and it begins its own watches anew. RestartEtcd returns when etcd serves. Only one restart is under way at a
// time, except that of etcd in the meanwhile of the API server's. When it fails, the sandbox ends.
func (s *Sandbox) RestartEtcd(ctx context.Context, meanwhile func()) error {
	if err := s.etcd.again(ctx, s.data, meanwhile); err != nil {
		return s.broken("etcd", err)
	}
	return nil
}

// broken ends the sandbox: a part of it is gone.
func (s *Sandbox) broken(part string, err error) error {
	err = fmt.Errorf("restart %s: %w", part, err)
	s.fail(err)
	return err
}
