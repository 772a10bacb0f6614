package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/check/lab"
	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file has parents of several kinds whose selectors overlap, and people who move pods about below them.

// overlapEvents is how many things people do.
const overlapEvents = 200

// overlapLabels are what the pods of people, and those that they relabel, carry. All selectors match the second.
var overlapLabels = []map[string]string{
	{"app": "x", "tier": "none"},
	{"app": "x", "tier": "a"},
	{"app": "y", "tier": "a"},
}

// crowd is a namespace in which everything is recorded.
type crowd struct {
	*env

	lab     *lab.Lab
	chance  *rand.Rand
	parents []client.Object
	kinds   []check.Kind
	done    map[string]int // what people did
}

// TestOverlappingSelectors: parents whose selectors overlap share no pod and take none from each other, whatever people do,
// and once people stop, so do they.
func TestOverlappingSelectors(t *testing.T) {
	for name, c := range map[string]struct {
		seed    uint64
		parents func(*env) []client.Object
		kinds   []check.Kind
		scopes  []check.Scope
	}{
		"two ReplicaSets and a StatefulSet": {
			seed: 1,
			parents: func(e *env) []client.Object {
				wide, narrow, db := e.replicaSet("wide", 3), e.replicaSet("narrow", 2), e.statefulSet("db")
				wide.Spec.Selector, wide.Spec.Template.Labels = selecting("x", ""), overlapLabels[0]
				narrow.Spec.Selector, narrow.Spec.Template.Labels = selecting("x", "a"), overlapLabels[1]
				db.Spec.Selector, db.Spec.Template.Labels = selecting("x", "a"), overlapLabels[1]
				return []client.Object{wide, narrow, db}
			},
			kinds:  []check.Kind{parents.ReplicaSet(), parents.StatefulSet()},
			scopes: append(parents.StatefulSet().Scopes(), parents.ReplicaSet().Scopes()[0]),
		},
		"two ReplicationControllers and a DaemonSet": {
			seed: 2,
			parents: func(e *env) []client.Object {
				wide, narrow, agent := e.replicationController("wide", 3), e.replicationController("narrow", 2), e.daemonSet("agent", "app:1")
				wide.Spec.Selector, wide.Spec.Template.Labels = map[string]string{"app": "x"}, overlapLabels[0]
				narrow.Spec.Selector, narrow.Spec.Template.Labels = overlapLabels[1], overlapLabels[1]
				agent.Spec.Selector, agent.Spec.Template.Labels = selecting("x", ""), overlapLabels[0]
				return []client.Object{wide, narrow, agent}
			},
			kinds:  []check.Kind{parents.ReplicationController(), parents.DaemonSet()},
			scopes: append(parents.DaemonSet().Scopes(), parents.ReplicationController().Scopes()[0]),
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t, "cairn", c.scopes)
			e := newEnv(t)
			e.namespace = l.Namespace
			e.cairnWith(func(cfg *rest.Config) { cfg.Wrap(l.Wire.Wrap) }, manager.Options{Controllers: sandbox.Kinds(), AskServer: true})
			w := &crowd{
				env: e, lab: l, parents: c.parents(e), kinds: c.kinds, done: map[string]int{},
				chance: rand.New(rand.NewPCG(c.seed, 0)),
			}
			for _, o := range w.parents {
				e.create(o)
			}
			for range overlapEvents {
				w.interfere()
			}
			w.calm()
			w.resync()
			w.resync()
			w.quietResync()
			w.judge()
		})
	}
}

func selecting(app, tier string) *metav1.LabelSelector {
	if tier == "" {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app, "tier": tier}}
}

// interfere does one thing, to whatever is there at the moment. What is gone or changed by then is left alone.
func (w *crowd) interfere() {
	w.Helper()
	as := overlapLabels[w.chance.IntN(len(overlapLabels))]
	what := []string{"create", "create", "relabel", "relabel", "orphan", "delete", "scale"}[w.chance.IntN(7)]
	var err error
	switch what {
	case "create":
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "stray-", Labels: as}}
		pod.Spec = appTemplate("", "app:1").Spec
		err = w.Create(w.Context(), pod)
	case "scale":
		if parent := w.parents[w.chance.IntN(2)]; parent.GetName() != "agent" {
			w.rescale(parent, w.chance.Int32N(5))
		}
	default:
		pods := w.all()
		if len(pods) == 0 {
			return
		}
		pod := &pods[w.chance.IntN(len(pods))]
		switch what {
		case "relabel":
			err = w.merge(pod, fmt.Sprintf(`{"metadata":{"labels":{"app":%q,"tier":%q}}}`, as["app"], as["tier"]))
		case "orphan":
			err = w.merge(pod, fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"ownerReferences":[]}}`, pod.ResourceVersion))
		case "delete":
			err = w.Delete(w.Context(), pod)
		}
	}
	if err == nil {
		w.done[what]++
	}
}

func (w *crowd) merge(pod *corev1.Pod, body string) error {
	return w.Patch(w.Context(), pod, client.RawPatch(types.MergePatchType, []byte(body)))
}

// all returns the pods that are not going, in the order of their names.
func (w *crowd) all() []corev1.Pod {
	w.Helper()
	pods := w.podsOf(w.namespace, &metav1.LabelSelector{})
	out := make([]corev1.Pod, 0, len(pods))
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		out = append(out, pods[name])
	}
	return out
}

// calm waits until every parent has what it asks for, and nobody else has anything to do. A name of the StatefulSet's that
// belongs to somebody else stays taken until a person gives it back.
func (w *crowd) calm() {
	w.Helper()
	w.eventually("wait until all have what they ask for", func() error {
		for _, pod := range w.all() {
			ref := metav1.GetControllerOf(&pod)
			if strings.HasPrefix(pod.Name, "db-") && (ref == nil || ref.Name != "db") {
				if err := client.IgnoreNotFound(w.Delete(w.Context(), &pod)); err != nil {
					return err
				}
				return errorf("%s was somebody else's", pod.Name)
			}
			if !serving(&pod) {
				return errorf("%s is not ready", pod.Name)
			}
		}
		for _, o := range w.parents {
			if err := w.reached(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// reached returns an error unless the parent has, and says that it has, as many pods as it asks for.
func (w *crowd) reached(o client.Object) error {
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	var want, replicas, ready int32
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		want, replicas, ready = *o.Spec.Replicas, o.Status.Replicas, o.Status.ReadyReplicas
	case *corev1.ReplicationController:
		want, replicas, ready = *o.Spec.Replicas, o.Status.Replicas, o.Status.ReadyReplicas
	case *appsv1.StatefulSet:
		want, replicas, ready = *o.Spec.Replicas, o.Status.Replicas, o.Status.ReadyReplicas
	case *appsv1.DaemonSet:
		want, replicas, ready = nodes, o.Status.CurrentNumberScheduled, o.Status.NumberReady
	}
	owned := int32(0)
	for _, pod := range w.all() {
		if metav1.IsControlledBy(&pod, o) {
			owned++
		}
	}
	if owned != want || replicas != want || ready != want {
		return errorf("%s wants %d, has %d, and says %d, of which %d are ready", o.GetName(), want, owned, replicas, ready)
	}
	return nil
}

// resync makes every controller look at its parent once more, and waits until it did: it says so in the status.
func (w *crowd) resync() {
	w.Helper()
	for _, o := range w.parents {
		body := `{"spec":{"revisionHistoryLimit":%d}}`
		switch o.(type) {
		case *appsv1.ReplicaSet, *corev1.ReplicationController:
			body = `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":%d}}}}` // of pods that are made later
		}
		body = fmt.Sprintf(body, 20+o.GetGeneration())
		if err := w.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			w.Fatal(err)
		}
		w.eventually("wait until "+o.GetName()+" was looked at", func() error {
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if observed := observedGeneration(o); observed != o.GetGeneration() {
				return errorf("observed %d of %d", observed, o.GetGeneration())
			}
			return nil
		})
	}
}

func observedGeneration(o client.Object) int64 {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return o.Status.ObservedGeneration
	case *corev1.ReplicationController:
		return o.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		return o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		return o.Status.ObservedGeneration
	}
	return -1
}

// requests returns what the controllers asked the API server to write so far, refused or not.
func (w *crowd) requests() []check.Entry {
	return slices.DeleteFunc(w.lab.Wire.Entries(), func(e check.Entry) bool { return e.Namespace != w.namespace })
}

// quietResync is the third resync: all that is written is that each parent was looked at, and nothing is written later. Events
// do not count: of many at once the last are sent as one, ten seconds after what they report.
func (w *crowd) quietResync() {
	w.Helper()
	before := len(w.requests())
	w.resync()
	w.lab.Sync() // it takes two seconds, in which somebody who goes on would be seen
	said := map[string]bool{}
	for _, e := range w.requests()[before:] {
		if e.Resource == "events" {
			continue
		}
		if e.Subresource != "status" || said[e.Name] {
			w.Errorf("written in the third resync or after it: %s %s %s/%s: %d", e.Verb, e.Resource, e.Name, e.Subresource, e.Code)
		}
		said[e.Name] = true
	}
	if len(said) != len(w.parents) {
		w.Errorf("%d of %d parents were looked at", len(said), len(w.parents))
	}
}

// moves is what happened to the owner of one pod.
type moves struct {
	born, orphaned, relabelled int // by people
	adopted, released          int // by controllers
}

// judge looks at every write there was. A pod has at most one controller, nobody takes it from somebody else, and it moves
// only when a person moved it.
func (w *crowd) judge() {
	w.Helper()
	h := w.lab.History()
	pods := map[types.UID]*moves{}
	adopters := map[string]int{}
	released := 0
	for _, e := range h.Events {
		if e.Key.Resource.Resource != "pods" || e.New == nil {
			continue
		}
		m := pods[e.New.GetUID()]
		if m == nil {
			m = &moves{}
			pods[e.New.GetUID()] = m
		}
		was, is := w.controller(e.Old), w.controller(e.New)
		switch ours := e.By != nil; {
		case was != "" && is != "" && was != is:
			w.Errorf("taken from %s by %s: %s", was, is, e)
		case e.Old == nil && is == "" && !ours:
			m.born++
		case ours && e.Old != nil && was == "" && is != "":
			m.adopted++
			adopters[is]++
		case ours && was != "" && is == "":
			m.released++
			released++
		case !ours && was != "" && is == "":
			m.orphaned++
		case !ours && e.Old != nil && !labels.Equals(e.Old.GetLabels(), e.New.GetLabels()):
			m.relabelled++
		}
		// Both insist on the version that was read, so that the labels are those that were judged.
		if e.By != nil && was != is && e.Old != nil && (is != "" && !w.selects(is, e.New) || was != "" && w.selects(was, e.New)) {
			w.Errorf("its labels say otherwise: %s", e)
		}
		if m.adopted > m.born+m.orphaned+m.relabelled || m.released > m.relabelled {
			w.Errorf("it changes its owner, and nobody asked: %+v: %s", *m, e)
		}
	}
	// The other promises are about parents that nobody meddles with: labels are content, and a pod that a person deletes is
	// unavailable before the controller can know.
	w.lab.Silent(slices.DeleteFunc(check.Check(h, w.kinds...), func(v check.Violation) bool {
		return !slices.Contains([]string{"H6", "O1", "O3", "O4", "O5", "P6", "X1"}, v.Invariant)
	}))
	w.Logf("people: %v; %d writes by controllers, adopted %v, released %d", w.done, len(w.requests()), adopters, released)
	// Nobody fights where nothing happens.
	if len(adopters) < 2 || released < 5 || len(w.done) < 5 {
		w.Errorf("people did %v, adopted were %v, released %d: that is too little to tell", w.done, adopters, released)
	}
}

// selects reports whether the selector of the parent of that kind and name matches a pod.
func (w *crowd) selects(name string, pod client.Object) bool {
	w.Helper()
	for _, o := range w.parents {
		var selector *metav1.LabelSelector
		var kind string
		switch o := o.(type) {
		case *appsv1.ReplicaSet:
			kind, selector = "ReplicaSet", o.Spec.Selector
		case *corev1.ReplicationController:
			kind, selector = "ReplicationController", &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
		case *appsv1.StatefulSet:
			kind, selector = "StatefulSet", o.Spec.Selector
		case *appsv1.DaemonSet:
			kind, selector = "DaemonSet", o.Spec.Selector
		}
		if kind+" "+o.GetName() == name {
			return labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(pod.GetLabels()))
		}
	}
	w.Errorf("%s is controlled by %s, which is none of the parents", pod.GetName(), name)
	return false
}

// controller returns the name of the one controller of a pod, empty if there is none.
func (w *crowd) controller(o client.Object) string {
	w.Helper()
	if o == nil {
		return ""
	}
	name := ""
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			if name != "" {
				w.Errorf("%s has two controllers: %v", o.GetName(), o.GetOwnerReferences())
			}
			name = ref.Kind + " " + ref.Name
		}
	}
	return name
}
