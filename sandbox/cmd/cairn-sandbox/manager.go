package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file runs cairn's manager in the sandbox, under the roles that are shipped, for every kind that cairn has a
// controller for and that is not left to upstream: in this process, or as it is installed.

// installedHere is --installed without a value: the program beside this one.
const installedHere = "cairn"

// useManager has the manager run in this process, or, if installed names its program, as a process of its own. Webhooks
// of composite controllers may be on this machine: where else.
func useManager(o *sandbox.Options, installed string) {
	o.Replaced = sandbox.Kinds()
	ours := slices.DeleteFunc(manager.Names(), func(name string) bool { return slices.Contains(o.Upstream, name) })
	o.Manager = func(ctx context.Context, admin *rest.Config) error {
		if err := install.CRDs(ctx, admin); err != nil {
			return err
		}
		cfg, err := install.Roles(ctx, admin, ours, true)
		if err != nil {
			return err
		}
		if installed != "" {
			return runInstalled(ctx, admin, installed, ours)
		}
		cfg.QPS = -1 // the API server's priority and fairness rules
		return manager.Run(ctx, manager.Options{
			Config:                 cfg,
			Controllers:            ours,
			AskServer:              true,
			HookAllow:              []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			MetricsBindAddress:     manager.Off,
			HealthProbeBindAddress: manager.Off,
			Logger:                 klog.Background(),
		})
	}
}

// tokenFor is how long the token of an installed manager is good. A kubelet would bring a new one in time.
const tokenFor = 30 * 24 * time.Hour

// runInstalled runs a program with what a pod of the Deployment has: the service account's token, leader election,
// metrics over TLS. Its log goes to the sandbox's.
func runInstalled(ctx context.Context, admin *rest.Config, program string, controllers []string) error {
	if program == installedHere {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		program = filepath.Join(filepath.Dir(self), installedHere)
	}
	if err := install.Apply(ctx, admin, deploy.Metrics()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cairn-installed-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeToken(ctx, admin, kubeconfig); err != nil {
		return fmt.Errorf("credentials of the manager: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "manager",
		"--controllers="+strings.Join(controllers, ","), "--kubeconfig="+kubeconfig, "--leader-elect-namespace="+deploy.Namespace,
		"--metrics-secure", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0",
		"--hook-allow-address=127.0.0.0/8,::1/128", "--hosted-identity=shared")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	cmd.Stdout, cmd.Stderr = logged{}, logged{}
	if err := cmd.Run(); ctx.Err() == nil { // to end by a signal counts as an error
		return fmt.Errorf("%s manager: %w", program, err)
	}
	return nil
}

// writeToken writes a kubeconfig with a token of the manager's service account.
func writeToken(ctx context.Context, admin *rest.Config, file string) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenFor.Seconds()))}}
	token, err := client.CoreV1().ServiceAccounts(deploy.Namespace).CreateToken(ctx, deploy.ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	content, err := sandbox.KubeconfigOf(&rest.Config{
		Host: admin.Host, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// logged writes the lines of the manager to the log.
type logged struct{}

func (logged) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		klog.Background().WithName("manager").Info(strings.TrimSuffix(line, "\n"))
	}
	return len(p), nil
}
