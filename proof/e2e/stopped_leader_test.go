package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file stops the leading process in the middle of its work and lets it go on when another one leads, as a machine
// that sleeps or swaps does.

// written holds, in the order in which the API server answered, who wrote what, for the users that are followed.
var written struct {
	sync.Mutex

	follow map[string]bool
	who    []string
	what   []string
}

// note is told of every request that the API server answers. Leases are how managers find out who leads, and events
// tell people of what was done before. A request of which a stopped process has sent only a part fails with 500 when
// the process ends, and writes nothing.
func note(r sandbox.Request) {
	switch {
	case r.Verb == "get", r.Verb == "list", r.Verb == "watch", r.Resource == "", r.Resource == "leases", r.Resource == "events":
		return
	case r.Code >= http.StatusInternalServerError:
		return
	}
	written.Lock()
	defer written.Unlock()
	if written.follow[r.User] {
		written.who = append(written.who, r.User)
		written.what = append(written.what, fmt.Sprintf("%s %s %s/%s %d", r.Verb, r.Resource, r.Name, r.Subresource, r.Code))
	}
}

// writes returns how often user wrote, and what it wrote after the first write of then.
func writes(user, then string) (count int, late []string) {
	written.Lock()
	defer written.Unlock()
	begun := false
	for i, who := range written.who {
		switch who {
		case then:
			begun = true
		case user:
			count++
			if begun {
				late = append(late, written.what[i])
			}
		}
	}
	return count, late
}

// as writes a kubeconfig for an administrator of that name, and has its writes followed.
func (e *env) as(user string) string {
	e.Helper()
	written.Lock()
	if written.follow == nil {
		written.follow = map[string]bool{}
	}
	written.follow[user] = true
	written.Unlock()
	cfg, err := e.sandbox.ConfigFor(user, "system:masters")
	if err != nil {
		e.Fatal(err)
	}
	out := kubeconfigOf(cfg)
	out.AuthInfos["manager"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	path := filepath.Join(e.TempDir(), "kubeconfig")
	must(e, clientcmd.WriteToFile(out, path))
	return path
}

// TestStoppedLeaderWritesNoMore: a leader that is stopped in the middle of a rollout, and goes on when another one
// leads, writes nothing beside it, and ends. Pods are deleted meanwhile; the budget holds.
func TestStoppedLeaderWritesNoMore(t *testing.T) {
	const first, second = "stopped-manager", "next-manager"
	const count = 8      // so that there is work in hand at every moment
	e := newLonelyEnv(t) // its managers are processes
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	binaries(t)
	must(t, install.Apply(t.Context(), e.sandbox.Config(), deploy.Identity()))
	short := []string{"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"}
	old := e.manager(root, e.as(first), short...)
	var sets []*appsv1.DaemonSet
	for i := range count {
		ds := e.daemonSet(fmt.Sprintf("web-%d", i), "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 1 })
		e.create(ds)
		sets = append(sets, ds)
	}
	for _, ds := range sets {
		e.rolledOut(ds)
		e.budget(ds, nodes-2, nodes) // one that is replaced, one that somebody deletes
	}
	leader := e.holder()
	next := e.manager(root, e.as(second), short...)

	for _, ds := range sets {
		e.image(ds, "app:2")
	}
	e.eventually("wait for the rollout to be under way", func() error {
		e.reload(sets[count-1])
		if s := sets[count-1].Status; s.UpdatedNumberScheduled == 0 {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	must(t, old.cmd.Process.Signal(syscall.SIGSTOP))
	for _, ds := range sets {
		e.deleteOne(ds)
	}
	e.eventually("wait until the next manager leads and writes", func() error {
		if n, _ := writes(second, ""); n == 0 || e.holder() == leader {
			return fmt.Errorf("%s holds the lease, the next manager has made %d writes", e.holder(), n)
		}
		return nil
	})
	must(t, old.cmd.Process.Signal(syscall.SIGCONT))

	ended := make(chan error, 1)
	go func() { ended <- old.cmd.Wait() }()
	select {
	case err := <-ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
			t.Errorf("the stopped manager ended with %v, want exit code 1\n%s", err, old.text())
		}
	case <-time.After(time.Minute):
		t.Errorf("the stopped manager still runs\n%s", old.text())
	}
	for _, ds := range sets {
		e.rolledOut(ds)
	}
	n, late := writes(first, second)
	if n == 0 || len(late) > 0 {
		t.Errorf("of %d writes the stopped manager made %d beside the next one:\n%s", n, len(late), strings.Join(late, "\n"))
	}
	if err := end(next.cmd, 20*time.Second); err != nil {
		t.Errorf("next manager: %v\n%s", err, next.text())
	}
}

// deleteOne deletes some pod of ds.
func (e *env) deleteOne(ds *appsv1.DaemonSet) {
	e.Helper()
	for _, pod := range e.pods(ds) {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		must(e, client.IgnoreNotFound(e.Delete(e.Context(), o, client.Preconditions{UID: new(pod.UID)})))
		return
	}
}
