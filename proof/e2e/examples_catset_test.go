package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/examples/catset"
)

// This file tells the story of one CatSet: rolled, cut off in the middle, rolled back two revisions, and orphaned. What
// happens at each step is read by the commands that people have.

// cats is the CatSet of the examples, with five cats whose pods take a moment to be ready.
type cats struct {
	*example

	file string
}

func newCats(t *testing.T) *cats {
	t.Helper()
	c := &cats{example: newExample(t, "catset", catset.Hook())}
	b, err := os.ReadFile(manifest("catset", "catset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(
		"replicas: 3", "replicas: 5",
		"metadata: {labels: {app: nap}}", `metadata: {labels: {app: nap}, annotations: {sandbox.cairn.dev/ready-after: "200ms"}}`,
	).Replace(string(b))
	c.file = filepath.Join(t.TempDir(), "catset.yaml")
	must(t, os.WriteFile(c.file, []byte(changed), 0o600))
	return c
}

func (c *cats) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nap"}}
}

func (c *cats) pods() map[string]corev1.Pod {
	c.Helper()
	return c.podsOf(c.namespace, c.selector())
}

// image edits the template, as a person does.
func (c *cats) image(image string) {
	c.Helper()
	patch := `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "` + image + `"}]`
	c.must(c.kubectl("patch", "catset", "nap", "--type=json", "-p", patch))
}

// with returns the pods that have an image.
func (c *cats) with(image string) map[string]corev1.Pod {
	c.Helper()
	out := c.pods()
	maps.DeleteFunc(out, func(_ string, pod corev1.Pod) bool { return pod.Spec.Containers[0].Image != image })
	return out
}

// midway waits until some pods have an image, and not yet all, and returns them.
func (c *cats) midway(image string) (updated map[string]corev1.Pod) {
	c.Helper()
	c.eventually("wait until two pods have "+image, func() error {
		if updated = c.with(image); len(updated) < 2 {
			return errorf("%d have", len(updated))
		}
		return nil
	})
	if len(updated) > 4 {
		c.Fatalf("the rollout was too fast to be caught midway: %d pods", len(updated))
	}
	return updated
}

// rolledOut waits until kubectl says that the rollout is over, and looks whether it is.
func (c *cats) rolledOut(image string) map[string]corev1.Pod {
	c.Helper()
	c.eventually("wait until the CatSet is updated", func() error {
		var set struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration, ReadyReplicas int64
				Conditions                        []struct{ Type, Status, Reason, Message string }
			}
		}
		if err := c.parent("CatSet", "nap", &set); err != nil {
			return err
		}
		s := set.Status
		updated := ""
		for _, c := range s.Conditions {
			if c.Type == "Updated" {
				updated = c.Status
			}
		}
		if updated != "True" || s.ReadyReplicas != 5 || s.ObservedGeneration != set.Metadata.Generation {
			return errorf("status %+v", s)
		}
		return nil
	})
	pods := c.with(image)
	for name, pod := range pods {
		if !serving(&pod) {
			c.Errorf("Updated is true, and pod %s is not ready", name)
		}
	}
	if len(pods) != 5 {
		c.Errorf("Updated is true, and %d of 5 pods have %s", len(pods), image)
	}
	return pods
}

// reads fails the test unless cairn history says this of each revision, oldest first, such as "2: 5" for revision 2
// with five children, with a star at the current one, and kubectl lists the same.
func (c *cats) reads(when, want string) []row {
	c.Helper()
	rows := c.history("catset/nap")
	var got, names []string
	for _, r := range rows {
		star := map[bool]string{true: "*"}[r.Current]
		got = append(got, fmt.Sprintf("%d%s: %d", r.Number, star, r.Children))
		names = append(names, fmt.Sprintf("%s %d nap CatSet", r.Name, r.Number))
	}
	if said := strings.Join(got, ", "); said != want {
		c.Errorf("%s: cairn history says %s, want %s\n%s", when, said, want, c.cli("history", "catset/nap"))
	}
	var listed []string
	for line := range strings.Lines(c.must(c.kubectl("get", "controllerrevisions.metacontroller.k8s.io", "--no-headers"))) {
		f := strings.Fields(line) // name, parent, kind, revision, age
		if len(f) != 5 {
			c.Fatalf("kubectl says %q", line)
		}
		listed = append(listed, strings.Join([]string{f[0], f[3], f[1], f[2]}, " "))
	}
	slices.Sort(names)
	slices.Sort(listed)
	if !slices.Equal(names, listed) {
		c.Errorf("%s: cairn history lists %q, kubectl %q", when, names, listed)
	}
	return rows
}

// untouched fails the test unless all of these pods are still there.
func (c *cats) untouched(what string, before map[string]corev1.Pod) {
	c.Helper()
	now := c.pods()
	for name, pod := range before {
		if now[name].UID != pod.UID {
			c.Errorf("%s: pod %s was replaced, although it was what it had to be", what, name)
		}
	}
}

func TestExampleCatSet(t *testing.T) {
	c := newCats(t)
	_, kill := c.host("composite")
	c.must(c.kubectl("apply", "-f", c.file))
	c.rolledOut("nginx:1.28")
	first := c.reads("at first", "1*: 5")
	c.budgetOf("nap", c.namespace, c.selector(), 5, 4, 6)

	// Rolled, and cut off in the middle.
	c.image("nginx:1.29")
	updated := c.midway("nginx:1.29")
	kill()
	middle := c.history("catset/nap")
	if len(middle) != 2 || middle[0].Children == 0 || middle[1].Children < 2 || !middle[1].Current {
		t.Errorf("midway cairn history says %+v", middle)
	}
	c.host("composite")
	second := c.rolledOut("nginx:1.29")
	c.untouched("a new manager", updated)
	c.reads("rolled once", "1: 0, 2*: 5")

	// Scaling is no rollout.
	c.scale(6)
	c.scale(5)
	c.untouched("scaling", second)
	c.reads("scaled", "1: 0, 2*: 5")

	c.image("nginx:1.30")
	c.rolledOut("nginx:1.30")
	for name, pod := range second {
		if c.pods()[name].UID == pod.UID {
			t.Errorf("pod %s was not replaced", name)
		}
	}
	c.reads("rolled twice", "1: 0, 2: 0, 3*: 5")

	// A look that finds nothing to do does nothing.
	idle := c.pods()
	c.looks("catset", "nap")
	c.sameVersions("an annotation of the CatSet", idle, c.pods())
	c.reads("annotated", "1: 0, 2: 0, 3*: 5")

	// What was recorded stays what it is.
	edit := []string{"patch", "controllerrevisions.metacontroller.k8s.io", first[0].Name, "--type=merge", "-p", `{"parentPatch": {"spec": {"template": null}}}`}
	if out, ok := c.kubectl(edit...); ok || !strings.Contains(out, "to go back to this revision use cairn undo") {
		t.Errorf("an edit of a revision was answered with %q", out)
	}

	// Back by two revisions.
	if out := c.cli("undo", "catset/nap", "--to-revision", "1"); !strings.Contains(out, "rolled back to revision 1") {
		t.Errorf("cairn undo says %q", out)
	}
	c.rolledOut("nginx:1.28")
	rows := c.reads("rolled back", "2: 0, 3: 0, 4*: 5")
	if rows[2].Name != first[0].Name {
		t.Errorf("revision 4 is %s, want that of revision 1, %s", rows[2].Name, first[0].Name)
	}

	// Undone in the middle: pods that the rollout has not reached are what they have to be.
	before := c.pods()
	c.image("broken:1")
	c.eventually("wait until the rollout is stuck", func() error {
		if n := len(c.with("broken:1")); n != 1 {
			return errorf("%d pods are broken", n)
		}
		return nil
	})
	c.says("RolloutWaiting", "Pod nap-4", `"Ready"`)
	c.cli("undo", "catset/nap")
	c.rolledOut("nginx:1.28")
	delete(before, "nap-4")
	c.untouched("an undo", before)
	c.reads("undone", "2: 0, 3: 0, 5: 0, 6*: 5")

	c.orphaned()
	t.Logf("the hook was asked %d times", c.calls.Load())
}

// scale waits until there are so many pods.
func (c *cats) scale(replicas int) {
	c.Helper()
	c.must(c.kubectl("scale", "catset", "nap", fmt.Sprintf("--replicas=%d", replicas)))
	c.eventually("wait until it is scaled", func() error {
		pods := c.pods()
		for name, pod := range pods {
			if !serving(&pod) {
				return errorf("pod %s is not ready", name)
			}
		}
		if len(pods) != replicas {
			return errorf("%d pods", len(pods))
		}
		return nil
	})
}

// says waits until condition, event and cairn status all say what the rollout waits for.
func (c *cats) says(reason string, words ...string) {
	c.Helper()
	tells := func(text string) error {
		for _, word := range append(words, reason) {
			if !strings.Contains(text, word) {
				return errorf("%s is not in %s", word, text)
			}
		}
		return nil
	}
	for what, command := range map[string][]string{
		"the condition": {"get", "catset", "nap", "-o", `jsonpath={range .status.conditions[?(@.type=="Updated")]}{.status} {.reason} {.message}`},
		"an event":      {"get", "events.events.k8s.io", "-o", `jsonpath={range .items[?(@.regarding.kind=="CatSet")]}{.reason} {.note}{"\n"}{end}`},
	} {
		c.eventually(what+" says why", func() error { return tells(c.must(c.kubectl(command...))) })
	}
	if err := tells(c.cli("status", "catset/nap")); err != nil {
		c.Errorf("cairn status: %v", err)
	}
}

// orphaned deletes the CatSet without its children, and makes it again.
func (c *cats) orphaned() {
	c.Helper()
	pods, rows := c.pods(), c.history("catset/nap")
	c.must(c.kubectl("delete", "catset", "nap", "--cascade=orphan"))
	for name, pod := range c.pods() {
		if metav1.GetControllerOf(&pod) != nil {
			c.Errorf("pod %s was adopted back by a CatSet that was being deleted", name)
		}
	}
	c.must(c.kubectl("apply", "-f", c.file))
	c.rolledOut("nginx:1.28")
	c.untouched("recreating the CatSet", pods)
	now := c.reads("recreated", "2: 0, 3: 0, 5: 0, 6*: 5") // kubectl lists them as those of a CatSet: they are adopted
	for i, r := range now {
		if r.Name != rows[i].Name {
			c.Errorf("revision %d is %s, was %s", r.Number, r.Name, rows[i].Name)
		}
	}
	for name, pod := range c.pods() {
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Kind != "CatSet" {
			c.Errorf("pod %s belongs to %v", name, owner)
		}
		if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
			c.Errorf("pod %s was restarted %d times", name, n)
		}
	}
}
