package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/inspect"
	exit "github.com/cairn-dev/cairn/internal/cli/env"
)

// This file asks the command line about parents of CompositeControllers. It is the API server that answers, with
// schemas, defaults, discovery and roles.

// TestACompositeParentGoesBack: a history is shown and explained, and going back restores what the revision holds and
// nothing else.
func TestACompositeParentGoesBack(t *testing.T) {
	p := newPet(t, "PetSet", "petsets", "Namespaced", "{fieldPaths: [spec.template]}", `
spec: {replicas: 2, selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	first := p.record(1)
	p.patch(`{"metadata":{"annotations":{"kubernetes.io/change-cause":"milk"}},"spec":{"replicas":5,"template":{"text":"2","milk":true}}}`)
	second := p.record(2)

	p.says(exit.OK, "history petset/nap", "petset.inspect.example.com/nap\n", "1  0", first.Name+"  <none>", "2  *  0", second.Name+"  milk")
	p.says(exit.OK, "history petsets.inspect.example.com nap --revision 1", "with revision #1", "    color: black\n", `    text: "1"`)
	p.says(exit.OK, "history petset/nap -o name", "controllerrevision.metacontroller.k8s.io/"+first.Name)
	p.says(exit.OK, "diff petset/nap", "--- revision 1", `-    text: "1"`, `+    milk: true`)
	p.says(exit.OK, "diff petset/nap --revision 2", "nothing differs")
	p.says(exit.Failed, "history petset/nap --revision 3", "it has: 1 ("+first.Name)

	p.says(exit.OK, "undo petset/nap --dry-run=server", "(server dry run)", "-    milk: true", `+    text: "1"`)
	if got := p.field("spec", "template", "text"); got != "2" {
		t.Fatalf("a dry run made the text %v", got)
	}
	p.says(exit.OK, "undo petset/nap", "rolled back to revision 1 ("+first.Name)
	if got := fmt.Sprint(p.field("spec", "template"), p.field("spec", "replicas")); got != "map[color:black text:1] 5" {
		t.Errorf("after the undo: %s", got)
	}
	p.says(exit.OK, "history petset/nap", "has not renumbered yet")
	p.says(exit.OK, "undo petset/nap --to-revision 1", "skipped rollback (current spec.template already matches revision 1)")

	// What the controller does then.
	first.Revision = 3
	must(t, p.Update(t.Context(), first))
	p.says(exit.OK, "history petset/nap", "3  *  0")
	p.says(exit.OK, "undo petset/nap --to-revision "+second.Name, "rolled back to revision 2")
	if got := fmt.Sprint(p.field("spec", "template")); got != "map[color:black milk:true text:2]" {
		t.Errorf("after the second undo: %s", got)
	}
}

// TestADefaultIsNoChange: going back to a revision from before a default was added to the schema changes nothing, and
// nobody is told that it did.
func TestADefaultIsNoChange(t *testing.T) {
	p := newPet(t, "PetSet", "petsets", "Namespaced", "{fieldPaths: [spec.template]}", `
spec: {selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	before := p.parent.DeepCopy()
	unstructured.RemoveNestedField(before.Object, "spec", "template", "color")
	old := p.taken(before, 1)
	old.Annotations = nil // it was not taken from this very generation
	p.create(old)
	p.says(exit.OK, "undo petset/nap", "skipped rollback (current spec.template already matches revision 1)")
	if got := p.field("metadata", "generation"); got != int64(1) {
		t.Errorf("the spec was written: generation %v", got)
	}
}

// TestAScaleGoesBackToo: where all of spec is recorded, somebody who undoes is told about the number of replicas. The
// parent is in no namespace; its revisions are.
func TestAScaleGoesBackToo(t *testing.T) {
	p := newPet(t, "Zoo", "zoos", "Cluster", "{namespace: NAMESPACE}", `
spec: {replicas: 2, selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	p.record(1)
	p.patch(`{"spec":{"replicas":5}}`)
	p.record(2)
	p.says(exit.OK, "history zoo/nap", "zoo.inspect.example.com/nap\n", "1  0", "2  *  0")
	const warning = "The scale is part of revision 1"
	p.says(exit.OK, "undo zoo/nap --dry-run=server", warning, "spec.replicas goes from 5 to 2.")
	p.says(exit.OK, "undo zoo/nap", warning)
	if got := p.field("spec", "replicas"); got != int64(2) {
		t.Errorf("%v replicas", got)
	}
}

// TestWhatARolloutWaitsFor: the children that a rollout waits for are named with the check that they fail.
func TestWhatARolloutWaitsFor(t *testing.T) {
	p := newPet(t, "PetSet", "petsets", "Namespaced", "{fieldPaths: [spec.template]}", `
spec: {replicas: 3, selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	p.record(1, "nap-2", "nap-1")
	p.patch(`{"spec":{"template":{"text":"2"}}}`)
	p.record(2, "nap-0", "nap-1")
	p.pod("nap-0", "nowhere")
	p.pod("nap-1", "linux")
	p.eventually("wait until one pod is ready and the other one refused", func() error {
		stdout, stderr, _ := p.cairn("status", "petset/nap")
		for _, want := range []string{"2/3 children updated, 1/3 available", "Pod nap-0  2  it is not scheduled: Unschedulable: 0/5 nodes"} {
			if !strings.Contains(squeezed(stdout), want) {
				return errorf("no %q in\n%s%s", want, stderr, stdout)
			}
		}
		return nil
	})
	p.says(exit.Unfinished, "status petset/nap",
		"run by CompositeController "+p.controller.Name, "Its controller has not reported on it yet",
		"1  1  0", "2  *  2  1", "Pod nap-2  1  it does not exist")
	status := p.parent.DeepCopy()
	status.Object["status"] = map[string]any{
		"observedGeneration": p.parent.GetGeneration(),
		"conditions":         []any{map[string]any{"type": "Updated", "status": "False", "reason": "RolloutWaiting", "message": "missing child Pod nap-2"}},
	}
	must(t, p.Status().Update(t.Context(), status))
	p.says(exit.Unfinished, "status petset/nap", "Updated  False  RolloutWaiting  missing child Pod nap-2")
	p.says(exit.Unfinished, "status petset/nap -o json", `"complete": false`)
}

// TestAnUndoOfAnOldReadIsRefused: the API server refuses a plan that was made for another spec.
func TestAnUndoOfAnOldReadIsRefused(t *testing.T) {
	p := newPet(t, "PetSet", "petsets", "Namespaced", "{fieldPaths: [spec.template]}", `
spec: {selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	p.record(1)
	p.patch(`{"spec":{"template":{"text":"2"}}}`)
	p.record(2)
	i := inspect.New(p.WithWatch)
	plan, err := i.PlanUndo(t.Context(), p.parent, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.patch(`{"spec":{"template":{"text":"3"}}}`)
	var changed *inspect.ChangedError
	if _, err := i.Apply(t.Context(), plan, false); !errors.As(err, &changed) || changed.Gone {
		t.Errorf("got %v", err)
	}
	if got := p.field("spec", "template", "text"); got != "3" {
		t.Errorf("the text is %v", got)
	}
}

// TestNobodysParent: an object that no CompositeController has as a parent has no history, and whoever may not look for
// the controller hears that.
func TestNobodysParent(t *testing.T) {
	p := newPet(t, "PetSet", "petsets", "Namespaced", "{fieldPaths: [spec.template]}", `
spec: {selector: {matchLabels: {app: nap}}, template: {text: "1"}}
`)
	p.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: cats}
rules: [{apiGroups: [inspect.example.com], resources: [petsets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: cats}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cats}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: cat-lover}]
`, p.namespace))
	p.eventually("wait until the role counts", func() error {
		_, stderr, code := p.cairn("history", "petset/nap", "--as=cat-lover")
		if code != exit.Failed || !strings.Contains(stderr, "find the CompositeController of petset.inspect.example.com: compositecontrollers.metacontroller.k8s.io is forbidden") {
			return errorf("%d: %s", code, stderr)
		}
		return nil
	})
	must(t, p.Delete(t.Context(), p.controller))
	for _, verb := range []string{"history", "diff", "undo"} {
		p.says(exit.Failed, verb+" petset/nap", "petset.inspect.example.com has no history; to record later edits")
	}
	p.says(exit.Unfinished, "status petset/nap", "petset.inspect.example.com/nap is in progress: no controller has reported on it yet")
}
