package check_test

import (
	"crypto/sha1" //nolint:gosec // the names of revisions
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/internal/catset"
)

// This file does the same for composite parents: a CatSet of three pods, whose revisions say which are their own.

// cats is a store with the CatSet cats, rolled out, of which two pods may be down at once.
type cats struct{ *world }

func newCats(t testing.TB, limits catset.Limits) cats {
	t.Helper()
	set := catset.New(namespace, "cats", limits, 3, "app:1")
	set.SetUID("cats-uid")
	set.SetGeneration(1)
	report(set, 1, 3, true)
	w := cats{worldOf(t,
		set, catRevision(1, "app:1", 0, 1, 2), cat(0, "app:1"), cat(1, "app:1"), cat(2, "app:1"), config("app:1"),
	)}
	return w
}

// report is what a controller says of a CatSet.
func report(set *unstructured.Unstructured, generation, ready int64, updated bool) {
	condition := map[string]any{"type": "Updated", "status": "True", "reason": "OnLatestRevision"}
	if !updated {
		condition = map[string]any{"type": "Updated", "status": "False", "reason": "RolloutProgressing", "message": "updating Pod cats-2"}
	}
	set.Object["status"] = map[string]any{
		"observedGeneration": generation, "replicas": int64(3), "readyReplicas": ready, "conditions": []any{condition},
	}
}

func catOwner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: catset.Kind.GroupVersion().String(), Kind: catset.Kind.Kind, Name: "cats", UID: "cats-uid", Controller: new(true),
	}}
}

// catRevision is a revision that says that some pods are its own.
func catRevision(number int64, image string, mine ...int) *unstructured.Unstructured {
	patch := map[string]any{"spec": map[string]any{"template": catset.New(namespace, "cats", "", 3, image).Object["spec"].(map[string]any)["template"]}}
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err)
	}
	sum := sha1.Sum(append([]byte("cats-uid"), data...)) //nolint:gosec // as above
	r := &unstructured.Unstructured{Object: map[string]any{"parentPatch": patch, "fieldPaths": []any{"spec.template"}, "revision": number}}
	r.SetGroupVersionKind(catset.Revisions.GroupVersion().WithKind("ControllerRevision"))
	r.SetNamespace(namespace)
	r.SetName("catsets.check.cairn.dev-" + hex.EncodeToString(sum[:]))
	r.SetUID(types.UID("revision-" + image))
	r.SetOwnerReferences(catOwner())
	own(r, mine...)
	return r
}

func own(r *unstructured.Unstructured, mine ...int) {
	var names []any
	for _, i := range mine {
		names = append(names, fmt.Sprintf("cats-%d", i))
	}
	r.Object["children"] = []any{map[string]any{"apiGroup": "", "kind": "Pod", "names": names}}
}

// answered returns what the hook wants under a name, as a controller writes it.
func answered[T any](image, name string) *T {
	for _, o := range catset.Answer(catset.New(namespace, "cats", "", 5, image)) {
		if o.GetName() != name {
			continue
		}
		applied, err := json.Marshal(o.Object)
		if err != nil {
			panic(err)
		}
		o.SetNamespace(namespace)
		o.SetAnnotations(map[string]string{"metacontroller.k8s.io/last-applied-configuration": string(applied)})
		o.SetOwnerReferences(catOwner())
		o.SetUID(types.UID(fmt.Sprintf("%s-%d", name, incarnation.Add(1))))
		out := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
			panic(err)
		}
		return out
	}
	panic("the hook does not want " + name)
}

func cat(i int, image string) *corev1.Pod {
	p := answered[corev1.Pod](image, fmt.Sprintf("cats-%d", i))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

func config(image string) *corev1.ConfigMap { return answered[corev1.ConfigMap](image, "cats-config") }

func (w cats) set(change func(*unstructured.Unstructured)) {
	set := get(w.world, catset.New("", "", "", 0, ""), "cats")
	change(set)
	w.put(set)
}

func (w cats) says(generation, ready int64, updated bool) {
	w.set(func(set *unstructured.Unstructured) { report(set, generation, ready, updated) })
}

// edit is a user who changes the spec.
func (w cats) edit(v any, path ...string) {
	w.as("user", func() {
		w.set(func(set *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(set.Object, v, append([]string{"spec"}, path...)...); err != nil {
				w.Fatal(err)
			}
			set.SetGeneration(set.GetGeneration() + 1)
		})
	})
}

func (w cats) image(image string) {
	w.edit([]any{map[string]any{"name": "main", "image": image}}, "template", "spec", "containers")
}

func (w cats) claims(image string, mine ...int) {
	r := get(w.world, catRevision(1, image), catRevision(1, image).GetName())
	own(r, mine...)
	w.put(r)
}

func (w cats) end(i int) {
	w.as("kubelet", func() { w.remove(&corev1.Pod{}, fmt.Sprintf("cats-%d", i)) })
}

// roll is one pod's way from app:1 to app:2, when the newer revision has it.
func (w cats) roll(i int) {
	w.mark(fmt.Sprintf("cats-%d", i))
	w.end(i)
	w.born(i, "app:2")
}

// born makes a pod, which serves after a while.
func (w cats) born(i int, image string) {
	p := cat(i, image)
	ready := p.Status
	p.Status = corev1.PodStatus{}
	w.put(p)
	w.as("kubelet", func() { w.pod(p.Name, func(p *corev1.Pod) { p.Status = ready }) })
}

// edited is the CatSet after an edit to app:2 that the controller has recorded.
func (w cats) edited() {
	w.image("app:2")
	w.put(catRevision(2, "app:2"))
	w.says(2, 3, false)
}

func TestCompositePromises(t *testing.T) {
	for _, p := range []struct {
		want, name string
		bad, good  func(w cats)
	}{
		{"P3", "a revision says first that a child is its own", func(w cats) {
			w.edited()
			w.mark("cats-2")
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"P3", "what is as it should be stays", func(w cats) { w.mark("cats-2") }, func(w cats) {
			w.edit(int64(2), "replicas")
			w.mark("cats-2")
		}},
		{"P3", "what somebody has changed need not", func(w cats) {
			w.as("user", func() { w.pod("cats-2", func(p *corev1.Pod) { p.Labels["more"] = "yes" }) })
			w.mark("cats-2")
		}, func(w cats) {
			w.as("user", func() { w.pod("cats-2", func(p *corev1.Pod) { p.Spec.Hostname = "other" }) })
			w.mark("cats-2")
		}},
		{"P3", "a field that no revision covers", func(w cats) {
			w.edit("new", "note")
			w.edit("", "note")
			w.edit("new", "note")
			w.as("user", func() {
				w.set(func(set *unstructured.Unstructured) { unstructured.RemoveNestedField(set.Object, "spec", "note") })
			})
			w.says(4, 3, true)
			w.mark("cats-2")
		}, func(w cats) {
			w.edit("new", "note")
			w.mark("cats-2")
		}},
		{"R1", "the budget", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.mark("cats-2")
			w.mark("cats-1")
			w.mark("cats-0")
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.mark("cats-2")
			w.mark("cats-1")
			w.end(2)
			w.born(2, "app:2")
			w.mark("cats-0")
		}},
		{"P4", "no child without a revision that says so", func(w cats) {
			w.edit(int64(4), "replicas")
			w.put(cat(3, "app:1"))
		}, func(w cats) {
			w.edit(int64(4), "replicas")
			w.claims("app:1", 0, 1, 2, 3)
			w.put(cat(3, "app:1"))
		}},
		{"W2", "a child of an old revision is what that asks for", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:2"))
		}, func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:1"))
		}},
		{"W2", "and no more than that", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			p := cat(0, "app:1")
			p.Annotations["metacontroller.k8s.io/last-applied-configuration"] = strings.Replace(
				p.Annotations["metacontroller.k8s.io/last-applied-configuration"], `"spec":{`, `"spec":{"nodeName":"n1",`, 1)
			w.put(p)
		}, func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:1"))
		}},
		{"P4", "a child of the newest is what is asked for", func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.mark("cats-2")
			w.end(2)
			w.put(cat(2, "app:1"))
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.roll(2)
		}},
		{"P4", "a child that is not rolled", func(w cats) {
			w.edited()
			w.as("user", func() { w.remove(&corev1.ConfigMap{}, "cats-config") })
			w.put(config("app:1"))
		}, func(w cats) {
			w.edited()
			w.put(again(w, config("app:2")))
		}},
		{"P5", "a lost child comes back as it was", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.says(2, 2, false)
			w.claims("app:2", 0)
			w.put(cat(0, "app:2"))
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0)
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.put(cat(0, "app:2"))
		}},
		{"H3", "a revision lets no child go", func(w cats) {
			w.edited()
			w.claims("app:1", 0, 1)
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.claims("app:1", 0, 1)
		}},
		{"H3", "a revision with a child stays", func(w cats) {
			w.edited()
			w.claims("app:2", 1, 2)
			w.remove(&unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.remove(&unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
		}},
		{"H4", "what it holds stays", func(w cats) {
			r := get(w.world, &unstructured.Unstructured{}, catRevision(1, "app:1").GetName())
			r.Object["parentPatch"] = catRevision(1, "app:9").Object["parentPatch"]
			w.as("user", func() { w.put(r) })
		}, func(w cats) { w.claims("app:1", 2, 1, 0) }},
		{"H5", "a name with a count is for names that are taken", func(w cats) {
			w.image("app:2")
			r := catRevision(2, "app:2")
			r.SetName(r.GetName()[:len(r.GetName())-1] + "x")
			w.put(r)
		}, func(w cats) {
			w.image("app:2")
			taken := catRevision(7, "app:2")
			taken.SetOwnerReferences(nil)
			w.as("user", func() { w.put(taken) })
			r := catRevision(2, "app:2")
			r.SetName(r.GetName()[:len(r.GetName())-1] + "x")
			r.SetUID("another")
			w.put(r)
		}},
		{"H2", "numbers rise", func(w cats) {
			w.image("app:2")
			w.put(catRevision(1, "app:2"))
		}, func(w cats) { w.edited() }},
		{"P2", "only what is asked for", func(w cats) {
			w.claims("app:1", 0, 1, 2, 3)
			p := cat(3, "app:1")
			w.put(p)
		}, func(w cats) {
			w.edit(int64(4), "replicas")
			w.claims("app:1", 0, 1, 2, 3)
			w.put(cat(3, "app:1"))
		}},
		{"P6", "deletes carry the UID", func(w cats) {
			w.edit(int64(2), "replicas")
			w.byName = true
			w.mark("cats-2")
		}, func(w cats) {
			w.edit(int64(2), "replicas")
			w.mark("cats-2")
		}},
		{"R4", "updated means that all are", func(w cats) {
			w.edited()
			w.claims("app:2", 1, 2)
			w.roll(2)
			w.roll(1)
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}, func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.roll(2)
			w.roll(1)
			w.roll(0)
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}},
		{"R4", "updated means that all serve", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			w.roll(2)
			w.roll(1)
			w.roll(0)
			w.put(again(w, config("app:2")))
			w.breaks("cats-0")
			w.says(2, 2, false)
			w.says(2, 2, true)
		}, func(w cats) {
			w.breaks("cats-0")
			w.says(1, 2, false)
		}},
		{"S1", "nothing below zero", func(w cats) { w.says(1, -1, true) }, func(w cats) { w.says(1, 3, true) }},
		{"S1", "no generation that is to come", func(w cats) { w.says(2, 3, true) }, func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
		}},
		{"S2", "generations rise", func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
			w.says(1, 3, true)
		}, func(w cats) {
			w.edit(int64(3), "replicas")
			w.says(2, 3, true)
		}},
	} {
		t.Run(p.want+" "+p.name, func(t *testing.T) {
			broken := newCats(t, catset.Together)
			p.bad(broken)
			if got := check.Check(broken.history(), catset.Kinds()...); len(got) != 1 || got[0].Invariant != p.want {
				t.Errorf("want one violation of %s, got %d:\n%s", p.want, len(got), story(got))
			}
			kept := newCats(t, catset.Together)
			p.good(kept)
			if got := check.Check(kept.history(), catset.Kinds()...); len(got) != 0 {
				t.Errorf("want none, got %d:\n%s", len(got), story(got))
			}
		})
	}
}

// again gives an object the UID of what has its name.
func again(w cats, c *corev1.ConfigMap) *corev1.ConfigMap {
	c.UID = get(w.world, &corev1.ConfigMap{}, c.Name).UID
	return c
}

// What a controller holds back belongs to its revision for good.
func TestHeldBack(t *testing.T) {
	for _, test := range []struct {
		want string
		do   func(w cats)
	}{
		{"P3", func(w cats) {
			w.edited()
			w.mark("cats-0")
		}},
		{"", func(w cats) {
			w.edited()
			w.claims("app:2", 2)
			w.roll(2)
			w.as("user", func() { w.pod("cats-0", func(p *corev1.Pod) { p.Spec.Hostname = "other" }) })
			w.mark("cats-0")
			w.end(0)
			w.born(0, "app:1")
		}},
		{"W2", func(w cats) {
			w.edited()
			w.as("user", func() { w.mark("cats-0") })
			w.end(0)
			w.born(0, "app:2")
		}},
	} {
		w := newCats(t, catset.HeldBack)
		test.do(w)
		if got := invariants(check.Check(w.history(), catset.Kinds()...)); strings.Join(got, " ") != test.want {
			t.Errorf("want %q, got %v", test.want, got)
		}
	}
}

// Who writes a claim at the moment at which somebody else deletes the child could not know.
func TestAClaimThatCrossesADelete(t *testing.T) {
	w := newCats(t, catset.Together)
	w.edited()
	w.as("user", func() { w.mark("cats-0") })
	w.end(0)
	w.claims("app:2", 0) // the last that it wrote was before the delete
	w.put(cat(0, "app:2"))
	if got := check.Check(w.history(), catset.Kinds()...); len(got) != 0 {
		t.Errorf("want none, got:\n%s", story(got))
	}
}

func TestCompositeAtRest(t *testing.T) {
	for _, test := range []struct {
		want []string
		name string
		do   func(w cats)
	}{
		{nil, "nothing to do", func(cats) {}},
		{nil, "a rollout", func(w cats) {
			w.edited()
			w.claims("app:2", 0, 1, 2)
			for i := range 3 {
				w.roll(i)
			}
			w.put(again(w, config("app:2")))
			w.says(2, 3, true)
		}},
		{[]string{"C1"}, "a child is missing", func(w cats) {
			w.as("user", func() { w.remove(&corev1.Pod{}, "cats-1") })
			w.set(func(set *unstructured.Unstructured) {
				report(set, 1, 2, false)
				set.Object["status"].(map[string]any)["replicas"] = int64(2)
			})
		}},
		{nil, "a name is taken", func(w cats) {
			w.as("user", func() { w.remove(&corev1.Pod{}, "cats-1") })
			other := cat(1, "app:1")
			other.OwnerReferences = nil
			w.as("user", func() { w.put(other) })
			w.set(func(set *unstructured.Unstructured) {
				report(set, 1, 2, false)
				set.Object["status"].(map[string]any)["replicas"] = int64(2)
			})
		}},
		{[]string{"C1"}, "a rollout has stopped", func(w cats) {
			w.edited()
			w.put(again(w, config("app:2")))
		}},
		{[]string{"R4"}, "it says that it is over", func(w cats) {
			w.breaks("cats-0")
			w.set(func(set *unstructured.Unstructured) { report(set, 1, 2, true) })
		}},
		{[]string{"S1"}, "it counts wrong", func(w cats) { w.says(1, 2, true) }},
		{[]string{"C1"}, "an edit was not seen", func(w cats) { w.edit(int64(3), "replicas") }},
		{[]string{"H1"}, "two revisions hold the same", func(w cats) {
			r := catRevision(2, "app:1")
			r.SetName("another")
			r.SetUID("another")
			w.as("user", func() { w.put(r) })
		}},
		{[]string{"H9"}, "too many revisions", func(w cats) {
			for i := range catset.Limit + 1 {
				w.as("user", func() { w.put(catRevision(int64(i+2), fmt.Sprintf("app:%d", i+2))) })
			}
		}},
		{[]string{"X1"}, "of a parent that is gone", func(w cats) {
			again := get(w.world, catset.New("", "", "", 0, ""), "cats")
			again.SetUID("new-uid")
			w.as("user", func() { w.remove(again, "cats"); w.put(again) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newCats(t, catset.Together)
			test.do(w)
			if got := invariants(check.Rest(w.history(), w.rv, catset.Kinds()...)); !slices.Contains(append(got, ""), strings.Join(test.want, "")) || len(got) > 0 != (test.want != nil) {
				t.Errorf("want %v, got %v:\n%s", test.want, got, story(check.Rest(w.history(), w.rv, catset.Kinds()...)))
			}
		})
	}
}

// invariants are those that are broken, each once.
func invariants(violations []check.Violation) []string {
	var out []string
	for _, v := range violations {
		out = append(out, v.Invariant)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestHooksOfCatSets(t *testing.T) {
	note := func(w cats, image, question string, failed bool) {
		sent := get(w.world, catset.New("", "", "", 0, ""), "cats")
		version := sent.GetResourceVersion()
		sent = catset.New(namespace, "cats", catset.Together, 3, image)
		sent.SetResourceVersion(version)
		w.notes = append(w.notes, check.Note{RV: w.rv, Parent: "cats-uid", Question: question, Sent: sent, Failed: failed})
	}
	for _, test := range []struct {
		want, name string
		do         func(w cats)
	}{
		{"W1", "one of two questions of a pass failed", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "q", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "it was asked again", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "q", false)
			note(w, "app:1", "q", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "something else was asked since", func(w cats) {
			note(w, "app:1", "q", true)
			note(w, "app:2", "other", false)
			w.claims("app:2", 2)
			w.mark("cats-2")
		}},
		{"", "the parent of an old revision", func(w cats) { note(w, "app:1", "q", false) }},
		{"W2", "a parent that never was", func(w cats) { note(w, "app:7", "q", false) }},
	} {
		t.Run(test.want+" "+test.name, func(t *testing.T) {
			w := newCats(t, catset.Together)
			w.edited()
			test.do(w)
			if got := invariants(check.Check(w.history(), catset.Kinds()...)); strings.Join(got, " ") != test.want {
				t.Errorf("want %q, got %v", test.want, got)
			}
		})
	}
}
