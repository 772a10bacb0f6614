package builder

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	m.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return m
}

// sound is a controller with nothing wrong with it.
func sound() Controller[*appsv1.ReplicaSet] {
	return Controller[*appsv1.ReplicaSet]{
		Parent:   &appsv1.ReplicaSet{},
		Versions: []string{"spec.template"},
		Owns:     []Rule{Rolled(&corev1.Pod{}, nil), Applied(&corev1.Service{})},
		Children: func(*appsv1.ReplicaSet) ([]client.Object, error) { return nil, nil },
	}
}

func TestWhatIsRefusedBeforeItStarts(t *testing.T) {
	if _, err := sound().describe(clientgoscheme.Scheme, mapper()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Controller[*appsv1.ReplicaSet])
		want  string
	}{
		"a path that the type does not have": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{"spec.templates"} },
			`Versions: "spec.templates": v1.ReplicaSetSpec has no field templates`,
		},
		"a path with an index": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{"spec.template.spec.containers.0"} }, "is a slice, which has no fields",
		},
		"a path of the status": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{"spec.template", "status.replicas"} }, "status is not desired state",
		},
		"a path of what the API server keeps": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{"metadata.name"} }, "only labels and annotations are desired state",
		},
		"fewer workers than none": {func(c *Controller[*appsv1.ReplicaSet]) { c.Workers = -1 }, "Workers is -1"},
		"an empty path": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{""} }, "must name at least one field",
		},
		"no path": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = nil }, "needs at least one field path",
		},
		"a path inside another one": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Versions = []string{"spec.template", "spec"} }, "lies inside",
		},
		"no parent":   {func(c *Controller[*appsv1.ReplicaSet]) { c.Parent = nil }, "Parent is not set"},
		"no function": {func(c *Controller[*appsv1.ReplicaSet]) { c.Children = nil }, "Children is not set"},
		"no kinds":    {func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = nil }, "Owns is empty"},
		"an empty rule": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = []Rule{{}} }, "Owns[0] is not a valid rule: make it with builder.Rolled",
		},
		"a kind twice": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = append(c.Owns, Applied(&corev1.Pod{})) }, "Owns[2]: Pod is listed twice",
		},
		"an applied kind that is named by revision": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns[1] = c.Owns[1].NamedByRevision() },
			"Owns[1]: Service is applied, and NamedByRevision is for kinds that are rolled",
		},
		"a kind that is not served": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = []Rule{Rolled(&corev1.ConfigMap{}, nil)} }, "the API server does not serve",
		},
		"a kind that the scheme does not know": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = []Rule{Rolled(&unstructured.Unstructured{}, nil)} }, "set apiVersion and kind",
		},
		"a workload that would be taken down with its pods": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = []Rule{Rolled(&appsv1.StatefulSet{}, nil)} },
			"Owns[0]: a StatefulSet rolls its own pods",
		},
		"a kind in no namespace": {
			func(c *Controller[*appsv1.ReplicaSet]) { c.Owns = []Rule{Rolled(&corev1.Node{}, nil)} }, "Node is in no namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			controller := sound()
			c.spoil(&controller)
			if _, err := controller.describe(clientgoscheme.Scheme, mapper()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// Revisions are in the namespace of their parent.
func TestParentsInNoNamespaceAreRefused(t *testing.T) {
	c := Controller[*corev1.Node]{
		Parent: &corev1.Node{}, Versions: []string{"spec.taints"}, Owns: sound().Owns,
		Children: func(*corev1.Node) ([]client.Object, error) { return nil, nil },
	}
	_, err := c.describe(clientgoscheme.Scheme, mapper())
	if want := "field Parent: Node is in no namespace, which is not supported yet"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// All that is wrong is said at once.
func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := Controller[*appsv1.ReplicaSet]{Parent: &appsv1.ReplicaSet{}, Versions: []string{"spec.x"}}.describe(clientgoscheme.Scheme, mapper())
	for _, want := range []string{"spec.x", "Children", "Owns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

// The type by which two snapshots are compared is the parent's own, so that two templates that differ are
// different.
func TestSnapshotsAreComparedByTheParentsType(t *testing.T) {
	d, err := sound().describe(clientgoscheme.Scheme, mapper())
	if err != nil {
		t.Fatal(err)
	}
	of := func(image string) string {
		rs := &appsv1.ReplicaSet{}
		rs.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		s, err := d.target.Snapshot(rs)
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Data())
	}
	if of("app:1") == of("app:2") || !strings.Contains(of("app:1"), "app:1") {
		t.Errorf("%s and %s", of("app:1"), of("app:2"))
	}
}

// reconcilerOf is a controller that is set up but for what talks to the API server.
func reconcilerOf(t *testing.T, c Controller[*appsv1.ReplicaSet]) *reconciler[*appsv1.ReplicaSet] {
	t.Helper()
	d, err := c.describe(clientgoscheme.Scheme, mapper())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &reconciler[*appsv1.ReplicaSet]{described: d, author: c, scheme: scheme, applied: &applier{}}
}

// The selector matches what gets the labels, whatever the author says.
func TestTheSelectorMatchesItsLabels(t *testing.T) {
	c := sound()
	parent := &appsv1.ReplicaSet{}
	parent.Name, parent.Namespace = strings.Repeat("long.", 40)+"web", "shop"
	for range 2 {
		r := reconcilerOf(t, c)
		selector, err := r.selector(parent)
		made := r.made(parent, want{0, named("web-0")}, "abc")
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(made.GetLabels())) || made.GetLabels()[HashLabel] != "abc" || made.GetNamespace() != "shop" {
			t.Errorf("%v does not match %v: %v", selector, made.GetLabels(), err)
		}
		c.Labels = func(*appsv1.ReplicaSet) map[string]string { return map[string]string{"app": "web"} }
	}
}

// What cannot be wanted is refused, and no orphan is adopted that is not wanted.
func TestWantedChildren(t *testing.T) {
	parent := &appsv1.ReplicaSet{}
	parent.Namespace = "shop"
	elsewhere := named("web-0")
	elsewhere.SetNamespace("other")
	for name, c := range map[string]struct {
		children []client.Object
		want     string
	}{
		"one twice":         {[]client.Object{named("web-0"), named("web-0")}, "Pod web-0 is wanted twice"},
		"no name":           {[]client.Object{named("")}, "has no name"},
		"another namespace": {[]client.Object{elsewhere}, "is in namespace other"},
		"another kind":      {[]client.Object{&corev1.ConfigMap{}}, "it is a ConfigMap, which is not among the kinds"},
		"nil":               {[]client.Object{nil}, "it is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			controller := sound()
			controller.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) { return c.children, nil }
			_, err := reconcilerOf(t, controller).wantedOf(parent)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	controller := sound()
	controller.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) { return []client.Object{named("web-0")}, nil }
	r := reconcilerOf(t, controller)
	if err := r.adoptable(parent, 0, named("web-0")); err != nil {
		t.Error(err)
	}
	if r.adoptable(parent, 0, named("hers")) == nil {
		t.Error("an orphan is adopted that would be deleted at once")
	}
}

func TestReady(t *testing.T) {
	now := time.Now()
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	pod.Status.Conditions[0].LastTransitionTime.Time = now.Add(-3 * time.Second)
	c := sound()
	c.Owns[0] = c.Owns[0].MinReady(func(client.Object) time.Duration { return 10 * time.Second })
	parent := &appsv1.ReplicaSet{}
	got := reconcilerOf(t, c).judge(0, pod, parent, now)
	if !got.ready || got.available || got.left != 7*time.Second {
		t.Errorf("%+v", got)
	}
	if got := reconcilerOf(t, sound()).judge(0, pod, parent, now); !got.available {
		t.Errorf("%+v", got)
	}
	if got := reconcilerOf(t, sound()).judge(0, &corev1.Pod{}, parent, now); got.ready {
		t.Errorf("%+v", got)
	}
}

// What the author is given of a child is a copy: the other one is the cache's.
func TestReadyIsGivenACopy(t *testing.T) {
	rule := Rolled(&corev1.Pod{}, func(pod *corev1.Pod) (time.Time, string) {
		pod.Labels["seen"] = "yes"
		return time.Time{}, ""
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	if rule.ready(pod); len(pod.Labels) > 0 {
		t.Errorf("the child in the cache was changed: %v", pod.Labels)
	}
}

// One kind has one history in a manager: each of two would count what the other one records.
func TestOneHistoryOfAKind(t *testing.T) {
	m := func() ctrl.Manager {
		mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
			Scheme: clientgoscheme.Scheme, MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return mgr
	}
	one, two := m(), m()
	kind := schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	if err := errors.Join(claimKind(one, kind), claimKind(two, kind), claimKind(one, schema.GroupKind{Kind: "Pod"})); err != nil {
		t.Fatal(err)
	}
	_, attached := Attach(t.Context(), one, &appsv1.ReplicaSet{}, "spec.template")
	for _, err := range []error{sound().Setup(t.Context(), one), attached} {
		if err == nil || !strings.Contains(err.Error(), "ReplicaSet has a history in this manager already") {
			t.Error(err)
		}
	}
}
