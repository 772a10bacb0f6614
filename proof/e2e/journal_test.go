package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file runs examples/journal, an ordinary reconciler that package builder gives a history: of ConfigMaps, which
// have neither a status nor a generation, and of which nobody is told what is made from them.

const (
	journalDir = "../../examples/journal"
	// journalLimit is the limit in its main.go.
	journalLimit = 3
)

// journal is the program, and the namespace that it copies to.
type journal struct {
	*program

	target string
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	j := &journal{program: newProgram(t, journalDir)}
	j.target = sandboxtest.Namespace(t, j.sandbox)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: "settings"}, Data: map[string]string{"color": "red"}}
	o.Annotations = map[string]string{"example.com/copy-to": j.target}
	j.create(o)
	return j
}

// edit is an edit of the data by a person.
func (j *journal) edit(patch string) {
	j.Helper()
	j.must(j.kubectl("patch", "configmap/settings", "--type=merge", "-p", `{"data":`+patch+`}`))
}

// holds waits until the copy and the update revision hold just that, and returns the revisions.
func (j *journal) holds(want map[string]string) []appsv1.ControllerRevision {
	j.Helper()
	var out []appsv1.ControllerRevision
	j.eventually(fmt.Sprintf("copy and revision are %v", want), func() error {
		var o corev1.ConfigMap
		if err := j.Get(j.Context(), client.ObjectKey{Namespace: j.target, Name: "settings"}, &o); err != nil {
			return err
		}
		out = j.stored()
		if newest := newestOf(out); !maps.Equal(o.Data, want) || !maps.Equal(recordedData(j.T, newest), want) {
			return fmt.Errorf("the copy is %v, the newest revision %s", o.Data, newest.Data.Raw)
		}
		return nil
	})
	return out
}

func (j *journal) stored() []appsv1.ControllerRevision {
	j.Helper()
	return j.revisionsOf(j.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"configmap": "settings"}})
}

// newest is the highest number.
func (j *journal) newest() int64 {
	j.Helper()
	return newestOf(j.stored()).Revision
}

func newestOf(revisions []appsv1.ControllerRevision) (newest appsv1.ControllerRevision) {
	for _, r := range revisions {
		if r.Revision > newest.Revision {
			newest = r
		}
	}
	return newest
}

// recordedData is what a revision holds.
func recordedData(t *testing.T, r appsv1.ControllerRevision) map[string]string {
	t.Helper()
	if r.Name == "" {
		return nil
	}
	var o corev1.ConfigMap
	must(t, json.Unmarshal(r.Data.Raw, &o))
	return o.Data
}

// differ checks that no two revisions are equal or have one number.
func (j *journal) differ(revisions []appsv1.ControllerRevision) {
	j.Helper()
	numbers, contents := map[int64]string{}, map[string]string{}
	for _, r := range revisions {
		content := fmt.Sprint(recordedData(j.T, r))
		if other, ok := numbers[r.Revision]; ok {
			j.Errorf("%s and %s both have number %d", other, r.Name, r.Revision)
		}
		if other, ok := contents[content]; ok {
			j.Errorf("%s and %s both hold %s", other, r.Name, content)
		}
		numbers[r.Revision], contents[content] = r.Name, r.Name
	}
}

// Ten lines give a reconciler a history: each edit is a revision, the command line shows and undoes them, a revision
// that is lost comes back, and a process that is killed leaves neither two that are equal nor more than the limit.
func TestJournal(t *testing.T) {
	j := newJournal(t)
	kill := j.start()
	j.holds(map[string]string{"color": "red"})
	j.edit(`{"color":"green"}`)
	j.holds(map[string]string{"color": "green"})
	j.edit(`{"size":"1"}`) // a key more is no default
	j.holds(map[string]string{"color": "green", "size": "1"})

	history := j.cli("history", "configmap/settings")
	if !strings.Contains(history, "REVISION   CURRENT   AGE") || !strings.Contains(history, "\n3          *         ") ||
		strings.Count(history, "settings-") != 3 {
		t.Errorf("cairn history:\n%s", history)
	}
	if out := j.cli("diff", "configmap/settings"); !strings.Contains(out, "\n+  size: \"1\"") {
		t.Errorf("cairn diff:\n%s", out)
	}
	if out := j.cli("status", "configmap/settings"); !strings.Contains(out, "it is recorded as revision 3 (settings-") {
		t.Errorf("cairn status:\n%s", out)
	}
	j.cli("undo", "configmap/settings", "--to-revision", "1")
	revisions := j.holds(map[string]string{"color": "red"})
	j.differ(revisions)
	if out := j.cli("history", "configmap/settings"); !strings.Contains(out, "\n4          *         ") || len(revisions) != 3 {
		t.Errorf("after the undo %d revisions:\n%s", len(revisions), out)
	}

	// What the author watches revisions for.
	j.must(j.kubectl("delete", "controllerrevisions", "--all"))
	j.holds(map[string]string{"color": "red"})

	// It is killed while edits come in, and started again while they still do.
	shade := 0
	edit := func() map[string]string {
		shade++
		j.edit(fmt.Sprintf(`{"color":"shade-%d"}`, shade))
		return map[string]string{"color": fmt.Sprintf("shade-%d", shade)}
	}
	for range 2 * journalLimit {
		j.holds(edit())
	}
	for range 3 {
		before := j.newest()
		j.eventually("another edit is recorded", func() error {
			if edit(); j.newest() == before {
				return errors.New("none is")
			}
			return nil
		})
		kill()
		edit()
		kill = j.start()
	}
	last := edit()
	j.eventually("the limit holds", func() error {
		revisions := j.holds(last)
		if j.differ(revisions); len(revisions) != journalLimit+1 {
			return fmt.Errorf("there are %d revisions", len(revisions))
		}
		return nil
	})
	j.must(j.kubectl("delete", "configmap/settings"))
	j.eventually("the revisions are deleted with their parent", func() error {
		if left := j.revisionsOf(j.namespace, &metav1.LabelSelector{}); len(left) > 0 {
			return fmt.Errorf("there are %d", len(left))
		}
		return nil
	})
}

// The difference between the two programs is what docs/library.md shows, imports apart, and is ten lines.
func TestTheGuideShowsTheDifference(t *testing.T) {
	guide, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(guide), "\n```diff\n")
	shown, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatal("the guide shows no difference")
	}
	before, after := withoutImports(t, "before/main.go"), withoutImports(t, "main.go")
	added := 0
	for hunk := range strings.SplitSeq(shown, "\n@@\n") {
		var was, is strings.Builder
		for line := range strings.Lines(hunk + "\n") {
			sign, text := line[0], line[1:]
			if sign != '+' {
				was.WriteString(text)
			}
			if sign != '-' {
				is.WriteString(text)
			}
			if sign == '+' {
				added++
			}
		}
		if strings.Count(before, was.String()) != 1 {
			t.Errorf("before/main.go does not have, just once:\n%s", was.String())
		}
		before = strings.Replace(before, was.String(), is.String(), 1)
	}
	if before != after {
		t.Errorf("with the difference that the guide shows, before/main.go is not main.go but:\n%s", before)
	}
	if added > 10 {
		t.Errorf("%d lines, want 10 at most", added)
	}
}

// withoutImports returns a program of the example without what it imports.
func withoutImports(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(journalDir, file))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), "\nimport (\n")
	_, rest, ended := strings.Cut(rest, "\n)\n")
	if !found || !ended {
		t.Fatal(errors.New("no imports"))
	}
	return head + rest
}
