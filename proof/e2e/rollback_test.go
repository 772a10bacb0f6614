package e2e

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/internal/cli"
	exit "github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/manager"
)

// This file lets rollouts fail: with nobody to look, and with a parent that is brought back.

// failing is an object whose rollouts have a deadline of four seconds.
type failing struct {
	*env

	// object is its kind and name.
	object string
	pods   func() map[string]corev1.Pod
	image  func(image string)
}

// code runs the real cairn, and returns its exit code and all that it printed.
func (f *failing) code(args ...string) (code int, out string) {
	f.Helper()
	var text bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &text, ErrOut: &text}
	code = cli.Main(f.Context(), append(args, "--kubeconfig", f.sandbox.Kubeconfig(), "--namespace", f.namespace), streams, "test")
	return code, text.String()
}

// ends waits until the rollout is over, as a pipeline does, and says how.
func (f *failing) ends(want int, texts ...string) {
	f.Helper()
	code, out := f.code("status", f.object, "--watch", "--timeout=1m")
	if code != want {
		f.Fatalf("exit code %d, want %d:\n%s", code, want, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			f.Errorf("cairn status says\n%s\nwithout %q", out, text)
		}
	}
}

func (f *failing) annotate(annotations ...string) {
	f.Helper()
	f.must(f.kubectl(append([]string{"annotate", "--overwrite", f.object}, annotations...)...))
}

// all waits until all pods have an image, and none other is left.
func (f *failing) all(image string) {
	f.Helper()
	f.eventually("all pods have "+image, func() error {
		pods := f.pods()
		maps.DeleteFunc(pods, func(_ string, pod corev1.Pod) bool { return pod.Spec.Containers[0].Image == image })
		if len(pods) > 0 {
			return errorf("%d have another one", len(pods))
		}
		return nil
	})
}

// story is the same for every kind. replaced is how many pods a rollout that does not start has replaced.
func (f *failing) story() {
	f.Helper()
	f.ends(exit.OK)
	f.annotate("cairn.dev/progress-deadline=4s")
	f.healthIs("Current Healthy")

	// Without an undo it stays as it is, and everybody is told.
	f.image("app:broken")
	f.ends(exit.Broken, "ProgressDeadlineExceeded: no progress for 4s: ", "ErrImagePull")
	stalled := `jsonpath={.status.conditions[?(@.type=="Stalled")].status} {.status.conditions[?(@.type=="Stalled")].reason}`
	if out := f.must(f.kubectl("get", f.object, "-o", stalled)); out != "True ProgressDeadlineExceeded" {
		f.Errorf("the condition Stalled is %q", out)
	}
	f.healthIs("Failed Degraded")

	// Asked for later, it is done now.
	f.annotate("cairn.dev/on-deadline=undo")
	f.all("app:1")
	const why = "failed: no progress for 4s: "
	f.ends(exit.Broken, "rolled back: revision 2 ", why, "; back to revision 1 ")
	code, out := f.code("history", f.object)
	if code != exit.OK || !strings.Contains(out, "\n2          failed ") || !strings.Contains(out, "\n3          * ") || !strings.Contains(out, why) {
		f.Errorf("cairn history: exit code %d\n%s", code, out)
	}
	f.eventually("the way back is complete", func() error {
		if _, out := f.code("status", f.object); !strings.Contains(out, "OnLatestRevision") {
			return errorf("%s", out)
		}
		return nil
	})

	f.healthIs("Failed Degraded") // what was asked for has not come about

	// Somebody wants it once more: it is not fought over.
	f.image("app:broken")
	f.eventually("it is not undone twice", func() error {
		code, out := f.code("status", f.object)
		if code != exit.Broken || !strings.Contains(out, "; not rolled back: revision ") || !strings.Contains(out, "was asked for again after it was rolled back") {
			return errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})

	// The next edit is a rollout like any other, and what succeeds costs nothing.
	f.image("app:2")
	f.ends(exit.OK)
	f.all("app:2")
	f.healthIs("Current Healthy")

	// What Helm would take back is not undone, unless somebody says so.
	f.annotate("meta.helm.sh/release-name=web")
	f.image("app:also-broken")
	f.eventually("it is not undone", func() error {
		code, out := f.code("status", f.object)
		if code != exit.Broken || !strings.Contains(out, `; not rolled back: it belongs to Helm release "web", which would revert a rollback`) {
			return errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	f.annotate("cairn.dev/on-deadline=undo-anyway")
	f.all("app:2")
	f.ends(exit.Broken, "; back to revision ")
}

func TestRollback(t *testing.T) {
	t.Run("DaemonSet", func(t *testing.T) {
		e := newEnv(t)
		e.cairn()
		ds := e.daemonSet("web", "app:1")
		e.create(ds)
		f := &failing{env: e, object: "ds/web", pods: func() map[string]corev1.Pod { return e.podsOf(e.namespace, ds.Spec.Selector) }}
		f.image = func(image string) { f.must(f.kubectl("set", "image", f.object, "main="+image)) }
		f.story()
	})
	t.Run("StatefulSet", func(t *testing.T) {
		e := newEnv(t)
		e.statefulCairn()
		set := e.statefulSet("web")
		e.create(set)
		f := &failing{env: e, object: "sts/web", pods: func() map[string]corev1.Pod { return e.podsOf(e.namespace, set.Spec.Selector) }}
		f.image = func(image string) { f.must(f.kubectl("set", "image", f.object, "main="+image)) }
		f.story()
	})
	t.Run("CatSet", func(t *testing.T) {
		c := newCats(t)
		roles := filepath.Join(t.TempDir(), "roles.yaml")
		must(t, os.WriteFile(roles, []byte(c.cli("roles", "compositecontroller/catset-controller", "--allow=undo")), 0o600))
		c.must(c.kubectl("apply", "-f", roles))
		c.warns = []string{"ProgressDeadlineExceeded", "AutomaticRollback", "NotRolledBack"}
		c.host("composite")
		b, err := os.ReadFile(c.file)
		must(t, err)
		must(t, os.WriteFile(c.file, bytes.ReplaceAll(b, []byte("nginx:1.28"), []byte("app:1")), 0o600)) // one revision, not two
		c.must(c.kubectl("apply", "-f", c.file))
		f := &failing{env: c.env, object: "catset/nap", pods: c.pods, image: c.image}
		f.all("app:1")
		f.story()
	})
}

// broughtBack is the story of a Fleet: of a controller that somebody else has made, under the role that stands beside
// it.
func (f *fleet) broughtBack() {
	f.Helper()
	f.create(f.running("app:1", 3))
	f.are("web-0=app:1 web-1=app:1 web-2=app:1")
	(&failing{env: f.env, object: "fleet/web", image: f.image, pods: func() map[string]corev1.Pod {
		return f.podsOf(f.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "web"}})
	}}).story()
}

// TestADeadlineForAll tests the manager's default, with a quota that admits no pod: the revision is not the cause, so
// nothing is rolled back.
func TestADeadlineForAll(t *testing.T) {
	e := newEnv(t)
	e.cairnWith(func(*rest.Config) {}, manager.Options{AskServer: true, ProgressDeadline: 4e9})
	ds := e.daemonSet("web", "app:1", func(ds *appsv1.DaemonSet) {
		ds.Annotations = map[string]string{"cairn.dev/on-deadline": "undo"}
	})
	e.create(ds)
	e.rolledOut(ds)
	none := e.quota("none", 1)
	e.image(ds, "app:2")
	f := &failing{env: e, object: "ds/web"}
	f.ends(exit.Broken, "exceeded quota: none")
	f.eventually("the reason is shown", func() error {
		if _, out := f.code("status", f.object); !strings.Contains(out, "not rolled back: no child was created from revision ") {
			return errorf("%s", out)
		}
		return nil
	})
	must(t, e.Delete(t.Context(), none))
	e.rolledOut(ds)
	if note, ok := ds.Annotations["cairn.dev/rolled-back"]; ok {
		t.Errorf("it was rolled back: %s", note)
	}
	f.ends(exit.OK)
}
