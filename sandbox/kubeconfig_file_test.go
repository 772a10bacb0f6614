package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func adminOf(server, cert string) *rest.Config {
	return &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte(cert), KeyData: []byte("key")}}
}

func take(t *testing.T, path string, cfg *rest.Config) *kubeconfigFile {
	t.Helper()
	f, err := takeKubeconfig(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.release() })
	return f
}

// TestOneKubeconfigOneSandbox: a file is refused while the sandbox that wrote it runs, and taken over when it does not.
func TestOneKubeconfigOneSandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "config")
	first := take(t, path, adminOf("https://first", "a"))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = takeKubeconfig(path, adminOf("https://second", "b"))
	if !errors.Is(err, ErrKubeconfig) || !strings.Contains(err.Error(), path+" is that of a sandbox that runs; stop it, or choose another path") {
		t.Errorf("the second: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file of the first was changed (%v):\n%s", err, after)
	}

	// It was killed: nobody removed the file.
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	second := take(t, path, adminOf("https://second", "b"))
	if first.ours() || !second.ours() {
		t.Errorf("the file is the first's: %v, the second's: %v", first.ours(), second.ours())
	}
	if err := first.remove(); err != nil || !second.ours() {
		t.Errorf("the first removed what is the second's (%v)", err)
	}
	if err := second.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second left its file: %v", err)
	}
	// The second one still holds the file that it removed; that is no reason to refuse a new one.
	take(t, path, adminOf("https://third", "c"))
}

// TestKubeconfigOfSomebodyElse is left alone, at the start and at the end.
func TestKubeconfigOfSomebodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	const theirs = "apiVersion: v1\nkind: Config\nclusters:\n- name: prod\n  cluster: {server: https://prod}\n"
	f := take(t, path, adminOf("https://ours", "a"))
	if err := os.WriteFile(path, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(); err != nil {
		t.Fatal(err)
	}
	if err := f.release(); err != nil {
		t.Fatal(err)
	}
	if _, err := takeKubeconfig(path, adminOf("https://ours", "a")); !errors.Is(err, ErrKubeconfig) {
		t.Errorf("it is overwritten: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != theirs {
		t.Errorf("now it is (%v)\n%s", err, got)
	}
}

// TestKubeconfigWithANamespace: what kubectl config writes into the file does not make it somebody else's.
func TestKubeconfigWithANamespace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	f := take(t, path, adminOf("https://ours", "a"))
	is, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	is.Contexts[contextName].Namespace = "shop"
	if err := clientcmd.WriteToFile(*is, path); err != nil {
		t.Fatal(err)
	}
	if _, err := takeKubeconfig(path, adminOf("https://second", "b")); !errors.Is(err, ErrKubeconfig) {
		t.Errorf("the second: %v", err)
	}
	if err := f.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
