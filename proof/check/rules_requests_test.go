package check_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file is about names that are taken, failures that are repeated, and hooks that fail.

// hashed is a revision under the name that its data and the collision count give it, "" for none.
func hashed(number int64, image, count string) *appsv1.ControllerRevision {
	r := revision("web", "web-uid", number, "x", image)
	var collisions *int32
	if n, err := strconv.ParseInt(count, 10, 32); err == nil {
		collisions = new(int32(n))
	}
	var data appsv1.DaemonSet
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		panic(err)
	}
	hash := controller.ComputeHash(&data.Spec.Template, collisions)
	r.Name, r.UID, r.Labels["controller-revision-hash"] = "web-"+hash, types.UID("uid-"+hash), hash
	return r
}

func (w *world) collide(count int32) {
	w.ds(func(ds *appsv1.DaemonSet) { ds.Status.CollisionCount = &count })
}

func TestTheCollisionCount(t *testing.T) {
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"", "past a stranger", func(w *world) {
			stranger := hashed(0, "app:2", "")
			stranger.OwnerReferences = nil
			w.as("user", func() { w.put(stranger) })
			w.edit("app:2")
			w.put(hashed(2, "app:2", "1"))
			w.collide(1)
		}},
		{"H5", "past its own revision", func(w *world) {
			w.edit("app:2")
			w.put(hashed(2, "app:2", ""))
			w.put(hashed(3, "app:2", "1"))
			w.collide(1)
		}},
		{"H5", "past a name that nobody had", func(w *world) {
			w.edit("app:2")
			w.put(hashed(2, "app:2", "1"))
			w.collide(1)
		}},
		{"H5", "past its own that was going", func(w *world) {
			w.edit("app:2")
			w.put(hashed(2, "app:2", ""))
			w.as("user", func() {
				going := hashed(2, "app:2", "")
				going.DeletionTimestamp = new(metav1.NewTime(start))
				w.put(going)
			})
			w.put(hashed(3, "app:2", "1"))
			w.collide(1)
		}},
		{"H5", "past two names of which one was taken", func(w *world) {
			stranger := hashed(0, "app:2", "")
			stranger.OwnerReferences = nil
			w.as("user", func() { w.put(stranger) })
			w.edit("app:2")
			w.put(hashed(2, "app:2", "2"))
			w.collide(2)
		}},
		{"", "of names that follow another rule", func(w *world) {
			second(w)
			w.collide(1)
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) { alone(t, test.want, test.do) })
	}
}

func TestFailuresAreRepeatedAfterAPause(t *testing.T) {
	for _, test := range []struct {
		want  string
		code  int
		every time.Duration
	}{
		{"", 403, 100 * time.Millisecond},
		{"A3", 403, time.Millisecond},
		{"A3", 500, 0},
		{"", 409, 0}, // an answer, not a failure
	} {
		w := newWorld(t)
		h := w.history()
		var entries []check.Entry
		for i := range 200 {
			entries = append(entries, check.Entry{
				User: manager, Verb: "create", Resource: "pods", Namespace: namespace, Name: "web-1", Code: test.code,
				At: start.Add(time.Duration(i) * test.every), Pass: pass("a", fmt.Sprint(i)),
			})
		}
		h.Attach(entries, func(e *check.Entry) bool { return e.User == manager })
		got := check.Check(h, parents.DaemonSet())
		if (len(got) == 1 && got[0].Invariant == test.want) != (test.want != "") || len(got) > 1 {
			t.Errorf("%d every %s: want one violation of %q, got:\n%s", test.code, test.every, test.want, story(got))
		}
	}
}

func TestHooks(t *testing.T) {
	asked := func(w *world, image string) check.Note {
		return check.Note{RV: w.rv, Parent: "web-uid", Revision: "web-h1", Sent: daemonSet("web", "web-uid", image)}
	}
	again := func(w *world, image string) *corev1.Pod {
		w.as("user", func() { w.mark("web-n1-h1"); w.remove(&corev1.Pod{}, "web-n1-h1") })
		return pod("web", "web-uid", "n1", "h1", image)
	}
	for _, test := range []struct {
		want, name string
		do         func(w *world)
	}{
		{"W1", "a delete after a failure", func(w *world) {
			second(w)
			w.notes = append(w.notes, check.Note{RV: w.rv, Parent: "web-uid", Failed: true})
			w.mark("web-n1-h1")
		}},
		{"", "a delete after an answer", func(w *world) {
			second(w)
			w.notes = append(w.notes, check.Note{RV: w.rv, Parent: "web-uid", Failed: true}, check.Note{RV: w.rv, Parent: "web-uid"})
			w.mark("web-n1-h1")
		}},
		{"W1", "a delete in a pass with a failure and an answer", func(w *world) {
			second(w)
			p := pass("a", "1")
			w.notes = append(w.notes,
				check.Note{RV: w.rv, Pass: p, Parent: "web-uid", Failed: true}, check.Note{RV: w.rv, Pass: p, Parent: "web-uid"})
			w.in(p, func() { w.mark("web-n1-h1") })
		}},
		{"", "a delete in another pass than the failure", func(w *world) {
			second(w)
			w.notes = append(w.notes, check.Note{RV: w.rv, Pass: pass("a", "1"), Parent: "web-uid", Failed: true})
			w.in(pass("a", "2"), func() { w.mark("web-n1-h1") })
		}},
		{"", "a user's delete after a failure", func(w *world) {
			w.notes = append(w.notes, check.Note{RV: w.rv, Parent: "web-uid", Failed: true})
			w.as("user", func() { w.mark("web-n1-h1") })
		}},
		{"", "the restored parent", func(w *world) { w.notes = append(w.notes, asked(w, "app:1")) }},
		{"W2", "the live parent instead of the restored one", func(w *world) { w.notes = append(w.notes, asked(w, "app:2")) }},
		{"", "a child that the hook asked for", func(w *world) {
			child := again(w, "app:1")
			n := asked(w, "app:1")
			wanted := child.DeepCopy()
			wanted.UID, wanted.Status = "", corev1.PodStatus{}
			n.Children = append(n.Children, wanted)
			w.notes = append(w.notes, n)
			w.put(child)
		}},
		{"W2", "a child that differs from what the hook asked for", func(w *world) {
			child := again(w, "app:1")
			n := asked(w, "app:1")
			wanted := child.DeepCopy()
			wanted.UID, wanted.Status = "", corev1.PodStatus{}
			wanted.Labels["tier"] = "back"
			n.Children = append(n.Children, wanted)
			w.notes = append(w.notes, n)
			w.put(child)
		}},
		{"W2", "a child that the hook did not ask for", func(w *world) {
			child := again(w, "app:1")
			w.notes = append(w.notes, asked(w, "app:1"))
			w.put(child)
		}},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) { alone(t, test.want, test.do) })
	}
}

func TestViolationsSayHowToSeeThemAgain(t *testing.T) {
	w := newWorld(t)
	from := w.rv
	w.mark("web-n1-h1")
	w.edit("app:2")
	h := w.history()
	h.Replay = "make sim SEED=7"
	all := check.Check(h, parents.DaemonSet())
	all = append(all, check.Rest(h, w.rv, parents.DaemonSet())...)
	all = append(all, check.Quiet(h, from, w.rv, parents.DaemonSet())...)
	if len(all) < 3 {
		t.Fatalf("only %d violations:\n%s", len(all), story(all))
	}
	for _, v := range all {
		if !strings.HasSuffix(v.String(), "\n    again: make sim SEED=7") {
			t.Errorf("it does not end with how to replay it: %s", v)
		}
	}
}
