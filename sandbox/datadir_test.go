package sandbox

// These tests check what Start refuses before it starts anything. They call the functions that refuse, because the
// process's sandbox may be running.

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestOpenDataDirRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string) string // returns the path to open
		want    error
	}{
		{"a path below a file", func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "file"), "")
			return filepath.Join(dir, "file", "data")
		}, ErrDataDirUnusable},
		{"a directory with other files", func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "thesis.txt"), "")
			return dir
		}, ErrDataDirUnusable},
		{"another Kubernetes version", func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "version.json"), `{"format":1,"kubernetes":"v1.35.0"}`)
			return dir
		}, ErrDataDirVersion},
		{"another format", func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "version.json"), `{"format":99,"kubernetes":"`+KubernetesVersion+`"}`)
			return dir
		}, ErrDataDirVersion},
		{"a damaged version file", func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "version.json"), `{`)
			return dir
		}, ErrDataDirUnusable},
		{"a directory in use", func(t *testing.T, dir string) string {
			t.Helper()
			d, err := openDataDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.close() })
			return dir
		}, ErrDataDirLocked},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := test.prepare(t, t.TempDir())
			before := filesIn(t, filepath.Dir(path))
			_, err := openDataDir(path)
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ";") {
				t.Errorf("%q is not one line that says what to do", err)
			}
			if after := filesIn(t, filepath.Dir(path)); after != before {
				t.Errorf("the refused directory changed from %s to %s", before, after)
			}
		})
	}
}

func TestDataDirKeepsAuthorityAndIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "data")
	var before string
	for round := range 2 {
		d, err := openDataDir(path)
		if err != nil {
			t.Fatal(err)
		}
		if d.fresh != (round == 0) {
			t.Errorf("round %d: fresh is %v", round, d.fresh)
		}
		keys, err := openPKI(d.pki())
		if err != nil {
			t.Fatal(err)
		}
		sa, err := os.ReadFile(keys.saKeyFile())
		if err != nil {
			t.Fatal(err)
		}
		now := string(keys.caPEM) + string(sa)
		if round == 1 && now != before {
			t.Error("the authority or the service-account key changed")
		}
		before = now
		if err := d.close(); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(path, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s; others can reach it", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAbandonedTemporaryDirectoriesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	open := func() *dataDir {
		t.Helper()
		d, err := openDataDir("")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	old := time.Now().Add(-time.Hour)
	used, abandoned := open(), open()
	for _, d := range []*dataDir{used, abandoned} {
		if err := os.Chtimes(d.lockFile(), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := abandoned.lock.Close(); err != nil { // as if the process had been killed
		t.Fatal(err)
	}
	last := open()
	if _, err := os.Stat(abandoned.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the abandoned directory is still there (%v)", err)
	}
	for _, d := range []*dataDir{used, last} {
		if _, err := os.Stat(d.version()); err != nil {
			t.Errorf("a directory in use was removed: %v", err)
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}
	if left := filesIn(t, os.TempDir()); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func TestBusyPort(t *testing.T) {
	l, err := listenAPI(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = listenAPI(t.Context(), l.port)
	if !errors.Is(err, ErrPortInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("error %v, want ErrPortInUse with the address", err)
	}
}

func TestKubeconfigOfOtherClustersIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	cfg := &rest.Config{Host: "https://127.0.0.1:1"}
	for range 2 { // one of ours is replaced
		f, err := takeKubeconfig(path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.release(); err != nil {
			t.Fatal(err)
		}
	}
	for _, foreign := range []string{
		"apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {server: 'https://x'}}]\n",
		"apiVersion: v1\nkind: Config\nclusters: [{name: production, cluster: {}}, {name: cairn-sandbox, cluster: {}}]\n",
		"a shopping list",
	} {
		write(t, path, foreign)
		if _, err := takeKubeconfig(path, cfg); !errors.Is(err, ErrKubeconfig) {
			t.Errorf("over %q: error %v, want ErrKubeconfig", foreign, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != foreign {
			t.Errorf("%q became %q (%v)", foreign, got, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Nodes: -2}, {Nodes: maxNodes + 1}, {Port: -1}, {Port: 65536}, {Upstream: []string{"deployment"}}, {Replaced: []string{"Pod"}}} {
		if err := o.check(); !errors.Is(err, ErrInvalidOptions) {
			t.Errorf("%+v: error %v, want ErrInvalidOptions", o, err)
		}
	}
	o := Options{Replaced: []string{DaemonSet, StatefulSet}, Upstream: []string{StatefulSet}}
	if got := strings.Join(o.upstreamKinds(), " "); got != "cronjob replicaset replicationcontroller statefulset" {
		t.Errorf("kinds left to upstream: %s", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func filesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}
