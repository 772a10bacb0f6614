package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/rollback"
)

// This file hands DaemonSets over between the upstream controller and cairn, idle and in the middle of a rollout.

// threeRevisions makes a DaemonSet with three revisions under the controller in charge.
func (e *env) threeRevisions(name string) *appsv1.DaemonSet {
	e.Helper()
	ds := e.daemonSet(name, "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](10) })
	e.create(ds)
	e.rolledOut(ds)
	for _, image := range []string{"app:2", "app:3"} {
		e.image(ds, image)
		e.rolledOut(ds)
	}
	if got := len(e.revisions(ds)); got != 3 {
		e.Fatalf("%d revisions, want 3", got)
	}
	return ds
}

// stamped waits until cairn has looked at the log of ds.
func (e *env) stamped(ds *appsv1.DaemonSet) {
	e.Helper()
	e.eventually("wait for cairn's stamp", func() error {
		for _, r := range e.revisions(ds) {
			if r.Annotations[history.ParentUIDAnnotation] == string(ds.UID) {
				return nil
			}
		}
		return fmt.Errorf("no revision carries it")
	})
}

func TestHandoverFromUpstreamAndBackTouchesNothing(t *testing.T) {
	e := newEnv(t)
	stop := e.upstream()
	ds := e.threeRevisions("idle")
	stop()
	pods, revisions := e.pods(ds), e.revisions(ds)

	stop = e.cairn()
	e.stamped(ds)
	e.settled(ds)
	stop()
	e.sameVersions("upstream to cairn", pods, e.pods(ds))
	e.onlyStamped("upstream to cairn", revisions, e.revisions(ds))

	stop = e.upstream()
	e.settled(ds)
	stop()
	e.sameVersions("cairn to upstream", pods, e.pods(ds))
	e.onlyStamped("cairn to upstream", revisions, e.revisions(ds))
}

func TestHandoverToUpstreamOfAHistoryThatCairnWrote(t *testing.T) {
	e := newEnv(t)
	stop := e.cairn()
	ds := e.threeRevisions("native")
	e.image(ds, "app:1") // a rollback, so that an old revision was renumbered
	e.rolledOut(ds)
	stop()
	pods, revisions := e.pods(ds), e.revisions(ds)

	stop = e.upstream()
	e.settled(ds)
	stop()
	e.sameVersions("cairn to upstream", pods, e.pods(ds))
	e.onlyStamped("cairn to upstream", revisions, e.revisions(ds))

	stop = e.cairn()
	e.settled(ds)
	stop()
	e.sameVersions("upstream to cairn", pods, e.pods(ds))
	e.onlyStamped("upstream to cairn", revisions, e.revisions(ds))
}

// TestHandoverBackLeavesNoCondition runs the commands that docs/workloads.md has for the way back. They remove
// cairn's conditions, and nothing else.
func TestHandoverBackLeavesNoCondition(t *testing.T) {
	e := newEnv(t)
	ds, set := e.daemonSet("web", "app:1"), e.statefulSet("db", setReplicas(1))
	both := []client.Object{ds, set}
	for _, o := range both {
		o.SetAnnotations(map[string]string{rollback.ProgressDeadlineAnnotation: "1h"})
		e.create(o)
	}
	stopDaemons, stopSets := e.cairn(), e.statefulCairn()
	e.rolledOut(ds)
	e.setRolledOut(set)
	e.eventually("wait for the conditions", func() error { return e.conditionsAre("LastGood Stalled Updated", "LastGood Stalled Updated") })
	stopDaemons()
	stopSets()
	others := []byte(`{"status":{"conditions":[{"type":"HistoryHealthy","status":"True"},{"type":"Theirs","status":"True"}]}}`)
	for _, o := range both {
		must(t, e.Status().Patch(t.Context(), o, client.RawPatch(types.StrategicMergePatchType, others)))
		must(t, e.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+rollback.NoteAnnotation+`":"{}"}}}`))))
	}
	e.upstream()
	e.statefulUpstream()
	e.wayBack()
	must(t, e.conditionsAre("Theirs", "Theirs"))
	e.reload(ds)
	e.reloadSet(set)
	for _, o := range both {
		if noted, ok := o.GetAnnotations()[rollback.NoteAnnotation]; ok {
			t.Errorf("%T still says that it was rolled back: %s", o, noted)
		}
	}
}

// wayBack runs the commands of docs/workloads.md in the namespace of a test.
func (e *env) wayBack() {
	e.Helper()
	const first = "```sh\nfor kind in daemonsets statefulsets"
	page, err := os.ReadFile("../../docs/workloads.md")
	must(e, err)
	_, script, found := strings.Cut(string(page), first)
	script, _, ends := strings.Cut(first[len("```sh\n"):]+script, "```")
	if !found || !ends {
		e.Fatal("the page has no commands for the way back")
	}
	root, err := filepath.Abs("../..")
	must(e, err)
	binaries(e.T)
	cmd := exec.CommandContext(e.Context(), "bash", "-euo", "pipefail", "-c", strings.Replace(script, "-A", "-n "+e.namespace, 1))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.sandbox.Kubeconfig(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		e.Fatalf("%v\n%s", err, out)
	}
}

// conditionsAre compares the types of the conditions of the DaemonSet web and the StatefulSet db.
func (e *env) conditionsAre(ofDaemonSet, ofStatefulSet string) error {
	ds, set := &appsv1.DaemonSet{}, &appsv1.StatefulSet{}
	must(e, e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: "web"}, ds))
	must(e, e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: "db"}, set))
	var a, b []string
	for _, c := range ds.Status.Conditions {
		a = append(a, string(c.Type))
	}
	for _, c := range set.Status.Conditions {
		b = append(b, string(c.Type))
	}
	slices.Sort(a)
	slices.Sort(b)
	if got, want := strings.Join(a, " ")+", "+strings.Join(b, " "), ofDaemonSet+", "+ofStatefulSet; got != want {
		return errorf("conditions %s, want %s", got, want)
	}
	return nil
}

func TestHandoverInTheMiddleOfARollout(t *testing.T) {
	for _, test := range []struct {
		name          string
		first, second func(*env) func()
	}{
		{"upstream to cairn", (*env).upstream, (*env).cairn},
		{"cairn to upstream", (*env).cairn, (*env).upstream},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEnv(t)
			stop := test.first(e)
			ds := e.daemonSet("midway", "app:1", func(ds *appsv1.DaemonSet) {
				ds.Spec.Template.Annotations = map[string]string{"sandbox.cairn.dev/ready-after": "300ms"}
			})
			e.create(ds)
			e.rolledOut(ds)
			e.budget(ds, nodes-1, nodes)
			before := e.pods(ds)

			e.image(ds, "app:2")
			e.eventually("wait until two pods are updated", func() error {
				if n := e.running(ds, "app:2"); n < 2 {
					return fmt.Errorf("%d are", n)
				}
				return nil
			})
			stop()
			half := e.pods(ds)
			if n := e.running(ds, "app:1"); n == 0 {
				t.Fatal("the rollout was over before the handover")
			}

			test.second(e)
			e.rolledOut(ds)
			e.images(ds, "app:2")
			after := e.pods(ds)
			for name, pod := range half {
				if pod.Spec.Containers[0].Image == "app:2" && after[name].UID != pod.UID {
					t.Errorf("pod %s conformed already and was replaced", name)
				}
			}
			for name := range before {
				if after[name].UID == before[name].UID {
					t.Errorf("pod %s was not replaced", name)
				}
			}
			if got := len(e.revisions(ds)); got != 2 {
				t.Errorf("%d revisions, want 2", got)
			}
		})
	}
}

// running counts the pods of ds with that image.
func (e *env) running(ds *appsv1.DaemonSet, image string) (n int) {
	e.Helper()
	for _, pod := range e.pods(ds) {
		if pod.Spec.Containers[0].Image == image {
			n++
		}
	}
	return n
}
