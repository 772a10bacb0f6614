package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// A process can start a sandbox, stop it, and start it again with the state of the first. The manager lives as long as
// the sandbox, and the sandbox no longer than the manager.
func TestStartTwiceInOneProcess(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	// Too long a path for a unix socket, so that etcd's goes elsewhere.
	data := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20))
	enough := errors.New("enough")
	for round := range 2 {
		var called atomic.Int32
		giveUp := make(chan struct{})
		s, err := sandbox.Start(t.Context(), sandbox.Options{
			DataDir: data,
			Nodes:   1,
			Manager: func(ctx context.Context, cfg *rest.Config) error {
				called.Add(1)
				select {
				case <-giveUp:
					return enough
				case <-ctx.Done():
				}
				// The manager's last write, say the release of its lease, can still be made.
				_, err := clientFor(t, cfg).CoreV1().Namespaces().Get(context.WithoutCancel(ctx), "default", metav1.GetOptions{})
				return err
			},
		})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		maps := clientFor(t, s.Config()).CoreV1().ConfigMaps("default")
		if round == 0 {
			_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		} else {
			_, err = maps.Get(t.Context(), "kept", metav1.GetOptions{})
		}
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}

		var want error
		if round == 1 {
			close(giveUp)
			<-s.Done()
			want = enough
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("round %d: stop: %v", round, err)
		}
		<-s.Done()
		if !errors.Is(s.Err(), want) {
			t.Errorf("round %d: Err is %v, want %v", round, s.Err(), want)
		}
		if n := called.Load(); n != 1 {
			t.Errorf("round %d: the manager was called %d times", round, n)
		}
		if _, err := s.RunUpstream(t.Context(), sandbox.DaemonSet); !errors.Is(err, sandbox.ErrStopped) {
			t.Errorf("round %d: RunUpstream after Stop: %v, want ErrStopped", round, err)
		}
		if leaks := sandboxtest.Leaks(); leaks != "" {
			t.Errorf("round %d: goroutines that outlived the sandbox:\n%s", round, leaks)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("round %d: left behind: %v (%v)", round, left, err)
		}
	}
}
