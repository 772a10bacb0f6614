package statefulset

// Which event wakes which StatefulSet. The routing of child events is tested in ownership; here is what this controller
// adds: claims and pods of others, by their names; and what is forgotten of a set that is gone.

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

func TestClaimEvents(t *testing.T) {
	sets := []client.Object{
		web(data(retain, retain)),
		web(data(retain, retain), func(set *appsv1.StatefulSet) { set.Name = "web-0" }),
		web(func(set *appsv1.StatefulSet) { set.Name = "plain" }),
		web(data(retain, retain), func(set *appsv1.StatefulSet) { set.Namespace = "other" }),
	}
	w := newWorld(t, sets...)
	named := func(name string) claimOption { return func(c *corev1.PersistentVolumeClaim) { c.Name = name } }
	for name, c := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"it comes":               {nil, claim(7), []string{"default/web"}},
		"it goes":                {claim(7), nil, []string{"default/web"}},
		"it is to go":            {claim(7), claim(7, claimGoing), []string{"default/web"}},
		"its owners change":      {claim(7), claim(7, ownedBy(setRef)), []string{"default/web"}},
		"it is bound":            {claim(7), claim(7, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), []string{}},
		"it is another one":      {claim(7), claim(7, func(c *corev1.PersistentVolumeClaim) { c.UID = "again" }), []string{"default/web"}},
		"of a set with a number": {nil, claim(7, named("data-web-0-3")), []string{"default/web-0"}},
		"of no pod":              {nil, claim(7, named("data-web-x")), []string{}},
		"of no template":         {nil, claim(7, named("logs-web-0")), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fakeserver.Woken(t.Context(), w.r.claimEvents(), c.before, c.after)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodEventsByName(t *testing.T) {
	w := newWorld(t, web(), web(func(set *appsv1.StatefulSet) { set.Namespace = "other" }))
	foreign := func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{foreignRef} }
	named := func(name string) podOption { return func(p *corev1.Pod) { foreign(p); p.Name = name } }
	for name, c := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"another's goes":   {pod(0, "a", foreign), nil, []string{"default/web"}},
		"nobody's goes":    {pod(0, "a", func(p *corev1.Pod) { p.OwnerReferences = nil }), nil, []string{"default/web"}},
		"its own goes":     {pod(0, "a"), nil, []string{}},
		"another's comes":  {nil, pod(0, "a", foreign), []string{}},
		"no ordinal":       {pod(0, "a", named("web-00")), nil, []string{}},
		"not asked for":    {pod(0, "a", named("web-99")), nil, []string{}},
		"of no set":        {pod(0, "a", named("db-0")), nil, []string{}},
		"without a number": {pod(0, "a", named("web")), nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fakeserver.Woken(t.Context(), podEvents{handler.Funcs{}, w.r.Client}, c.before, c.after)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// store is an informer's store as far as the consistency store looks at it.
type store struct{ version string }

func (s *store) LastStoreSyncResourceVersion() string { return s.version }

func (*store) GetByKey(string) (any, bool, error) { return nil, false, nil }

// TestOwnWrites: a pass waits until the caches show what the last one wrote (kubernetes#129795), and reads nothing
// else; a set of the same name inherits nothing (X1).
func TestOwnWrites(t *testing.T) {
	for _, behind := range []schema.GroupResource{podResource, claimResource, history.AppsResource, statefulSetResource} {
		t.Run(behind.String(), func(t *testing.T) {
			stores := map[schema.GroupResource]ownership.Store{}
			for _, r := range []schema.GroupResource{podResource, claimResource, history.AppsResource, statefulSetResource} {
				stores[r] = &store{version: "99999"}
			}
			late := &store{version: "1"}
			stores[behind] = late
			w := worldOf(t, fakeserver.New(t, web(data(remove, remove))), nil, stores)
			w.mustReconcile()
			w.Forget()
			if result := w.mustReconcile(); result.RequeueAfter != pass.UnseenRetry || len(w.Calls()) != 1 {
				t.Errorf("result %+v with %v", result, w.Calls())
			}
			late.version = "99999"
			if w.mustReconcile(); len(w.Calls("list")) == 0 {
				t.Error("the pass is still waiting")
			}
			late.version = "1"
			w.edit(replicas(2))
			w.edit(image("web:2"))
			w.settle()
			w.mustReconcile()
			w.r.Forget(w.set().UID)
			w.Forget()
			if w.mustReconcile(); len(w.Calls("list")) == 0 {
				t.Error("what was forgotten is waited for")
			}
		})
	}
}

// TestOldReads: a pass that rests on an old read writes nothing but what it can prove, and is repeated soon.
func TestOldReads(t *testing.T) {
	t.Run("of a pod that is there", func(t *testing.T) {
		s := fakeserver.New(t, between(t, nil, pod(0, "b"))...)
		w := worldOf(t, s, fakeserver.New(t, between(t, nil)...).Raw, nil)
		w.mustReconcile()
		if got := w.events.Events("SuccessfulCreate"); len(got) != 0 || len(w.pods()) != 1 {
			t.Errorf("events %v", got)
		}
	})
	t.Run("of a pod that goes", func(t *testing.T) {
		s := fakeserver.New(t, between(t, nil, pod(0, "b", terminating))...)
		w := worldOf(t, s, fakeserver.New(t, between(t, nil)...).Raw, nil)
		if result := w.mustReconcile(); result.RequeueAfter != pass.StaleRetry || len(w.events.Events()) != 0 {
			t.Errorf("result %+v, events %v", result, w.events.Events())
		}
	})
}
