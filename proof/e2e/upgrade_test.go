package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file upgrades the manager, and goes back, while it rolls out and at rest.

// previous is the commit of the manager that is upgraded. It becomes the tag of the previous release, once there is
// one.
const previous = "43aba88fdfe0757cc4a369f8e73d20c9bfb7cc10"

// before builds the previous manager and returns a folder with bin/cairn.
func before(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if run(root, "git", "rev-parse", "--is-shallow-repository") == "true" {
		t.Skip("a shallow clone does not have the previous release")
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	run(root, "git", "archive", "--output="+archive, previous)
	run(dir, "tar", "-xf", archive)
	run(dir, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join("bin", "cairn"), "./cmd/cairn")
	return dir
}

// upgraded is a DaemonSet, a StatefulSet and a parent of a CompositeController, with five pods each.
type upgraded struct {
	*cats

	// now is the folder of today's manager.
	now        string
	kubeconfig string
	ds         *appsv1.DaemonSet
	set        *appsv1.StatefulSet
}

// runs runs the manager that is in a folder, for the namespace of the test, until the returned function kills it.
func (u *upgraded) runs(root string) (kill func()) {
	u.Helper()
	flags := []string{
		"--controllers=statefulset,composite", "--leader-elect=false", "--watch-namespace=" + u.namespace, "--hook-allow-address=127.0.0.0/8",
	}
	if root == u.now { // the previous one has no accounts
		flags = append(flags, "--hosted-identity=shared")
	}
	p := u.manager(root, u.kubeconfig, flags...)
	return func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if u.Failed() {
			u.Logf("the manager in %s said:\n%s", root, p.text())
		}
	}
}

// all returns the pods of all three, by kind and name.
func (u *upgraded) all() map[string]corev1.Pod {
	u.Helper()
	out := map[string]corev1.Pod{}
	for kind, pods := range map[string]map[string]corev1.Pod{
		"ds": u.podsOf(u.namespace, u.ds.Spec.Selector), "set": u.podsOf(u.namespace, u.set.Spec.Selector), "cat": u.pods(),
	} {
		for name, pod := range pods {
			out[kind+" "+name] = pod
		}
	}
	return out
}

// roll edits all three, and waits until each has two pods with the image, and not all five.
func (u *upgraded) roll(image string) {
	u.Helper()
	u.env.image(u.ds, image)
	u.editSet(u.set, setImage(image))
	u.image(image)
	u.eventually("wait until two pods of each have "+image, func() error {
		have := map[string]int{}
		for name, pod := range u.all() {
			if pod.Spec.Containers[0].Image == image {
				have[strings.Fields(name)[0]]++
			}
		}
		for _, kind := range []string{"ds", "set", "cat"} {
			if have[kind] < 2 {
				return errorf("%v", have)
			}
		}
		return nil
	})
}

// finished waits until all three are rolled out.
func (u *upgraded) finished(image string) {
	u.Helper()
	u.env.rolledOut(u.ds)
	u.setRolledOut(u.set)
	u.rolledOut(image)
}

// TestUpgrade: what the previous manager has left in mid-rollout the new one finishes, and the other way round, as if
// nothing had happened: no pod is replaced twice, and each edit is one revision. At rest no child is touched.
func TestUpgrade(t *testing.T) {
	u := &upgraded{cats: newCats(t)} // this test runs in parallel from here on, so the build holds up no other one
	old := before(t)
	binaries(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Roles(t.Context(), u.sandbox.Config(), []string{"daemonset", "statefulset", "composite"}, true); err != nil {
		t.Fatal(err)
	}
	cfg, err := u.sandbox.ServiceAccountConfig(t.Context(), deploy.Namespace, deploy.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	u.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(kubeconfigOf(cfg), u.kubeconfig))

	u.now = root
	// As the previous one knows it: with all rights of the manager.
	const controller = "compositecontroller/catset-controller"
	u.must(u.kubectl("annotate", controller, cairn.ServiceAccountAnnotation+"-"))
	roles := filepath.Join(t.TempDir(), "roles.yaml")
	must(t, os.WriteFile(roles, []byte(u.cli("roles", controller)), 0o600))
	u.must(u.kubectl("apply", "-f", roles))
	kill := u.runs(old)
	slow := map[string]string{"sandbox.cairn.dev/ready-after": "500ms"}
	u.ds = u.daemonSet("agent", "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.Template.Annotations = slow })
	u.set = u.statefulSet("db", setReplicas(nodes), func(set *appsv1.StatefulSet) { set.Spec.Template.Annotations = slow })
	u.create(u.ds)
	u.create(u.set)
	u.must(u.kubectl("apply", "-f", u.file))
	u.finished("nginx:1.28")
	for n, to := range []struct{ name, root, image string }{
		{"upgrade", root, "app:2"}, {"back", old, "app:3"}, {"upgrade again", root, "app:4"},
	} {
		first := u.all()
		u.roll(to.image)
		kill()
		half := u.all()
		kill = u.runs(to.root)
		u.finished(to.image)
		last := u.all()
		replaced := 0
		for name, pod := range half {
			switch {
			case pod.Spec.Containers[0].Image == to.image && last[name].UID != pod.UID:
				t.Errorf("%s: %s was updated already, and was replaced again", to.name, name)
			case pod.Spec.Containers[0].Image != to.image:
				replaced++
			}
		}
		if replaced == 0 {
			t.Errorf("%s: the rollouts were over before", to.name)
		}
		if len(last) != len(first) {
			t.Errorf("%s: there were %d pods, and there are %d", to.name, len(first), len(last))
		}
		if ds, set := u.revisions(u.ds), u.revisionsOf(u.namespace, u.set.Spec.Selector); len(ds) != n+2 || len(set) != n+2 {
			t.Errorf("%s: %d and %d revisions after edit %d", to.name, len(ds), len(set), n+1)
		}
		u.restsUnder(to.name, &kill, map[string]string{root: old, old: root}[to.root], to.root)
	}
	kill()
}

// restsUnder runs managers in turn while there is nothing to do, and fails the test if a pod is written to.
func (u *upgraded) restsUnder(what string, kill *func(), roots ...string) {
	u.Helper()
	pods := u.all()
	for _, root := range roots {
		(*kill)()
		*kill = u.runs(root)
		u.settled(u.ds)
		u.setSettled(u.set)
		u.looks("catset", "nap")
	}
	if now := u.all(); !maps.EqualFunc(pods, now, func(a, b corev1.Pod) bool { return a.ResourceVersion == b.ResourceVersion && a.UID == b.UID }) {
		u.sameVersions(what+", at rest", pods, now)
	}
}
