package e2e

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file lets the manager of a test be a process, as it is where it is installed: make installed. Its requests pass
// a proxy, which does to them what the test does to those of a manager in its own process.

// programVariable names a cairn program, such as that of an image.
const programVariable = "CAIRN_E2E_PROGRAM"

// process runs a program with the credentials of cfg until the returned function is called or the test ends.
func (e *env) process(program string, cfg *rest.Config, o manager.Options) (stop func()) {
	e.Helper()
	kubeconfig := filepath.Join(e.TempDir(), "kubeconfig")
	content, err := sandbox.KubeconfigOf(&rest.Config{Host: e.proxy(cfg)})
	if err != nil {
		e.Fatal(err)
	}
	must(e, os.WriteFile(kubeconfig, content, 0o600))
	cmd := exec.CommandContext(context.WithoutCancel(e.Context()), program, "manager", "--kubeconfig="+kubeconfig, "--leader-elect=false",
		"--metrics-bind-address=off", "--health-probe-bind-address=off", "--controllers="+strings.Join(o.Controllers, ","),
		"--ask-server="+strconv.FormatBool(o.AskServer))
	if !o.NamedAccounts {
		cmd.Args = append(cmd.Args, "--hosted-identity=shared")
	}
	for _, prefix := range o.HookAllow {
		cmd.Args = append(cmd.Args, "--hook-allow-address="+prefix.String())
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(e, cmd.Start())
	stop = sync.OnceFunc(func() {
		if err := end(cmd, 20*time.Second); err != nil || e.Failed() {
			e.Errorf("%s ended with %v; it said:\n%s", strings.Join(cmd.Args, " "), err, said.String())
		}
	})
	e.Cleanup(stop)
	return stop
}

// proxy hands the requests that it gets to the API server of cfg, through its transport, until the test ends.
func (e *env) proxy(cfg *rest.Config) (address string) {
	e.Helper()
	forward, err := sandbox.Forward(cfg)
	if err != nil {
		e.Fatal(err)
	}
	server := httptest.NewServer(forward)
	e.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
