package sandbox

// This file runs etcd, with one member and no network: it listens on one unix socket in a directory that only this user
// can enter, and on no peer address at all.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// maxSocketPath is the longest path of a unix socket on Linux and macOS, whichever is less.
	maxSocketPath = 103
	// etcdStartTimeout covers the replay of a large write-ahead log on a slow disk.
	etcdStartTimeout = 30 * time.Second
	// etcdTick and etcdElection, in milliseconds, can be this short because there is nobody to lose an election to.
	etcdTick     = 20
	etcdElection = 200
)

// etcdServer is a running etcd.
type etcdServer struct {
	mu    sync.Mutex // for embed, which a restart replaces
	embed *embed.Etcd
	// socketDir is not empty when the socket had to go elsewhere than into the data directory.
	socketDir string
	// socket is what it listens on, and endpoint what a client dials.
	socket, endpoint string
}

// startEtcd starts etcd with its data in d and returns once it serves.
func startEtcd(ctx context.Context, d *dataDir) (_ *etcdServer, err error) {
	e := &etcdServer{}
	socket := filepath.Join(d.path, "etcd.sock")
	if len(socket) > maxSocketPath {
		if e.socketDir, err = shortTempDir(); err != nil {
			return nil, fmt.Errorf("directory for the socket of etcd: %w", err)
		}
		socket = filepath.Join(e.socketDir, "etcd.sock")
	}
	defer func() {
		if err != nil {
			e.removeSocket()
		}
	}()
	e.socket, e.endpoint = socket, "unix://"+socket
	if err := e.serve(ctx, d); err != nil {
		return nil, err
	}
	return e, nil
}

// serve runs etcd on the socket and returns once it answers.
func (e *etcdServer) serve(ctx context.Context, d *dataDir) error {
	cfg := embed.NewConfig()
	cfg.Name = "sandbox"
	cfg.Dir = d.etcd()
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: e.socket}}
	cfg.ListenPeerUrls = nil
	// Nobody dials what a single member advertises, but it must be there, and alike in both places.
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = etcdTick, etcdElection
	cfg.EnableGRPCGateway = false
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger())
	// Without fsync a crash of the machine may lose the cluster. That is of no account when it goes away anyway.
	cfg.UnsafeNoFsync = d.temporary

	running, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", d.etcd(), err)
	}
	e.mu.Lock()
	e.embed = running
	e.mu.Unlock()
	select {
	case <-running.Server.ReadyNotify():
		return nil
	case err = <-running.Err():
	case <-running.Server.StopNotify():
		err = errors.New("it stopped")
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(etcdStartTimeout):
		err = fmt.Errorf("not ready after %s", etcdStartTimeout)
	}
	running.Close()
	return fmt.Errorf("start etcd in %s: %w", d.etcd(), err)
}

// again stops etcd, calls meanwhile, and runs it again on the same socket and with the same data.
func (e *etcdServer) again(ctx context.Context, d *dataDir, meanwhile func()) error {
	e.running().Close()
	meanwhile()
	return e.serve(ctx, d)
}

func (e *etcdServer) running() *embed.Etcd {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.embed
}

// stop ends etcd. Requests in flight get a moment; the store is consistent either way.
func (e *etcdServer) stop(ctx context.Context) error {
	defer e.removeSocket()
	running, closed := e.running(), make(chan struct{})
	go func() {
		defer close(closed)
		running.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		running.Server.HardStop()
		return fmt.Errorf("stop etcd: %w", ctx.Err())
	}
}

// shortTempDir makes a directory of mode 0700 whose path leaves room for the name of a socket.
func shortTempDir() (string, error) {
	parent := os.TempDir()
	if len(parent) > maxSocketPath/2 {
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, temporaryPrefix)
}

func (e *etcdServer) removeSocket() {
	if e.socketDir != "" {
		_ = os.RemoveAll(e.socketDir)
	}
}
