package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/sandbox"
)

// This file runs examples that are programs of modules of their own, each under the role that stands beside it.

// program is one of them, and where it runs.
type program struct {
	*env

	name, binary, kubeconfig string
}

// newProgram builds the program in dir, and installs its role and other files of its folder config.
func newProgram(t *testing.T, dir string, files ...string) *program {
	t.Helper()
	p := &program{env: newEnv(t), name: filepath.Base(dir)}
	p.binary = filepath.Join(t.TempDir(), p.name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range append(files, "role.yaml") {
		text, err := os.ReadFile(filepath.Join(dir, "config", file))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(text, &o.Object))
		p.create(o)
		t.Cleanup(func() { _ = p.Delete(context.Background(), o) })
	}
	p.kubeconfig = p.account()
	return p
}

// account returns the credentials of a service account that has the role.
func (p *program) account() string {
	p.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + p.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.namespace, Name: p.name}},
	}
	p.create(account)
	p.create(binding)
	p.Cleanup(func() { _ = p.Delete(context.Background(), binding) })
	cfg, err := p.sandbox.ServiceAccountConfig(p.Context(), p.namespace, account.Name)
	if err != nil {
		p.Fatal(err)
	}
	out := filepath.Join(p.TempDir(), "kubeconfig")
	content, err := sandbox.KubeconfigOf(cfg)
	if err != nil {
		p.Fatal(err)
	}
	must(p, os.WriteFile(out, content, 0o600))
	return out
}

// start runs the program until kill ends it as SIGKILL does, or the test ends.
func (p *program) start() (kill func()) {
	p.Helper()
	run := exec.CommandContext(context.WithoutCancel(p.Context()), p.binary) // the test's ends before its cleanup
	run.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	must(p, run.Start())
	ended := make(chan struct{})
	go func() {
		_ = run.Wait() // that it was killed
		close(ended)
	}()
	stopped := false
	kill = func() {
		if stopped {
			return
		}
		stopped = true
		if err := run.Process.Kill(); errors.Is(err, os.ErrProcessDone) {
			p.Errorf("the program ended by itself:\n%s", out.String())
		}
		<-ended
		if p.Failed() {
			p.Logf("the program said:\n%s", out.String())
		}
	}
	p.Cleanup(kill)
	return kill
}
