package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file writes histories, which are made by hand here, and compares them with what files remember.

// story builds a history write by write.
type story struct{ h check.History }

func (s *story) did(who string, resource kind, old, now client.Object) {
	key := check.Key{Resource: resource.group().WithVersion("v1"), Namespace: "ns"}
	e := check.Event{RV: uint64(len(s.h.Events) + 1), Old: old, New: now, Type: check.Modified}
	switch {
	case old == nil:
		e.Type = check.Added
	case now == nil:
		e.Type = check.Deleted
	}
	key.Name = e.Object().GetName()
	e.Key = key
	if who != "cluster" {
		e.By = &check.Entry{User: who}
	}
	s.h.Events = append(s.h.Events, e)
}

func kindWord(name string) kind {
	k, _ := kindNamed(name)
	return k
}

func with[T client.Object](o T, change func(T)) T {
	out := o.DeepCopyObject().(T)
	change(out)
	return out
}

// aRollout is a DaemonSet from its creation to the first pod of its second revision.
func aRollout() *check.History {
	s := &story{}
	s.h.Audited = true
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web", Generation: 1}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	s.did(UserName, kindWord("daemonset"), nil, ds)
	first := revision(1, "app:1")
	first.UID = "first"
	s.did("system:serviceaccount:cairn", kindWord("revision"), nil, first)
	a := pod("web-h1-a", "node-0", "app:1", 1)
	a.UID, a.Status.Conditions = "a", nil
	s.did("manager", kindWord("pod"), nil, a)
	ready := with(a, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &metav1.Time{}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	s.did("cluster", kindWord("pod"), a, ready)
	seen := with(ds, func(ds *appsv1.DaemonSet) {
		ds.Status = appsv1.DaemonSetStatus{NumberReady: 1, ObservedGeneration: 1, Conditions: []appsv1.DaemonSetCondition{{Type: "Updated"}}}
	})
	s.did("manager", kindWord("daemonset"), ds, seen)
	edited := with(seen, func(ds *appsv1.DaemonSet) {
		ds.Generation, ds.Spec.Template.Spec.Containers[0].Image, ds.Spec.MinReadySeconds = 2, "app:2", 3
	})
	s.did(UserName, kindWord("daemonset"), seen, edited)
	second := revision(2, "app:2")
	second.UID = "second"
	s.did("manager", kindWord("revision"), nil, second)
	going := with(ready, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
	s.did("manager", kindWord("pod"), ready, going)
	s.did("cluster", kindWord("pod"), going, nil)
	b := pod("web-h2-a", "node-0", "app:2", 2)
	b.UID = "b"
	s.did("manager", kindWord("pod"), nil, b)
	s.did("manager", kindWord("revision"), first, with(first, func(r *appsv1.ControllerRevision) {
		r.Revision = 3
		r.Annotations = map[string]string{"stamp": "7"} // says nothing to a person
	}))
	again := with(b, func(p *corev1.Pod) { p.UID = types.UID("c") })
	s.did("manager", kindWord("pod"), b, nil)
	s.did("manager", kindWord("pod"), nil, again)
	s.did(UserName, kindWord("pod"), again, with(again, func(p *corev1.Pod) { p.OwnerReferences, p.Labels["app"] = nil, "debug" }))
	return &s.h
}

func TestRenderLinear(t *testing.T) {
	const want = `user creates daemonset web: app:1
manager creates revision A of web: number 1, app:1
manager creates pod of web on node-0 at A: app:1
cluster changes pod of web on node-0 at A: ready, status.phase=Running
manager changes daemonset web: status.numberReady=1
user changes daemonset web: minReadySeconds=3, image=app:2
manager creates revision B of web: number 2, app:2
manager deletes pod of web on node-0 at A
cluster removes pod of web on node-0 at A
manager creates pod of web on node-0 at B: app:2
manager changes revision A of web: number=3
manager deletes pod of web on node-0 at B
manager creates pod of web on node-0 at B, number 2: app:2
user changes pod of web on node-0 at B, number 2: no longer of web, label app=debug
`
	if got := Render(aRollout(), Linear); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

func TestRenderPerObject(t *testing.T) {
	const want = `daemonset web
  user creates: app:1
  user changes: minReadySeconds=3, image=app:2
pod of web on node-0 at A
  manager creates: app:1
  manager deletes
pod of web on node-0 at B
  manager creates: app:2
  manager deletes
pod of web on node-0 at B, number 2
  manager creates: app:2
  user changes: no longer of web, label app=debug
revision A of web
  manager creates: number 1, app:1
  manager changes: number=3
revision B of web
  manager creates: number 2, app:2
`
	if got := Render(aRollout(), PerObject); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

func TestGoldenHistories(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bug.txt")
	const text = "# Why.\n\ncontrollers daemonset\n\nsettle # as it was\n\n-- web.yaml --\nkind: Pod\n-- here.history --\nold\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() *Script {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		s, err := Parse(name, f)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := aRollout()
	err := read().CompareGolden("here", h, Linear)
	if err == nil || !strings.Contains(err.Error(), "section here.history, line 1: it says\n\told\nand this time it was\n\tuser creates daemonset web: app:1\n") {
		t.Errorf("a history that differs: %v", err)
	}
	if err := read().CompareGolden("there", h, Linear); err != nil {
		t.Errorf("nothing is remembered for there: %v", err)
	}
	for _, stage := range []string{"here", "there"} {
		if err := UpdateGolden(name, stage, h, Linear); err != nil {
			t.Fatal(err)
		}
		if err := read().CompareGolden(stage, h, Linear); err != nil {
			t.Error(err)
		}
	}
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "old\n", Render(h, Linear), 1) + "-- there.history --\n" + Render(h, Linear)
	if string(after) != want {
		t.Errorf("the file is\n%s\nwant\n%s", after, want)
	}
}
