package builder

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file is places: what their children are called, and which child is at which.

// byRevision is a sound controller whose pods are named by revision, and whose parents want these places.
func byRevision(t *testing.T, s Strategy, places ...string) *reconciler[*appsv1.ReplicaSet] {
	t.Helper()
	c := sound()
	c.Owns[0] = c.Owns[0].NamedByRevision()
	c.Strategy = func(*appsv1.ReplicaSet) Strategy { return s }
	c.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) {
		var out []client.Object
		for _, place := range places {
			out = append(out, named(place))
		}
		return out, nil
	}
	return reconcilerOf(t, c)
}

func shop() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
}

// A name shows place and revision, is valid, and belongs to one place only, however long those are.
func TestNameAt(t *testing.T) {
	if got := nameAt("web-0", "abc"); got != "web-0-abc" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, last := range []string{"", "a", "b", "a.b", "x-y.z"} {
		place := strings.TrimSuffix(strings.Repeat("long-name.", 24)+last, ".")
		name := nameAt(place, "7bc8986495")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || !strings.HasSuffix(name, "-7bc8986495") {
			t.Errorf("%s (%d): %v", name, len(name), problems)
		}
		if seen[name] {
			t.Errorf("%s is the name at two places", name)
		}
		seen[name] = true
	}
}

// A child says at which place it is, and what the author has copied from another child says nothing.
func TestWhatIsMadeSaysItsPlace(t *testing.T) {
	copied := named("web-0")
	copied.SetAnnotations(map[string]string{PlaceAnnotation: "elsewhere", "note": "kept"})
	made := byRevision(t, Strategy{}).made(shop(), want{0, copied}, "abc")
	if made.GetName() != "web-0-abc" || placeOf(made) != "web-0" || made.GetAnnotations()["note"] != "kept" || made.GetLabels()[HashLabel] != "abc" {
		t.Errorf("%s at %s: %v", made.GetName(), placeOf(made), made)
	}
	plain := reconcilerOf(t, sound()).made(shop(), want{0, copied}, "abc")
	if plain.GetName() != "web-0" || placeOf(plain) != "web-0" || copied.GetAnnotations()[PlaceAnnotation] != "elsewhere" {
		t.Errorf("%s at %s, and what the author returned is at %s", plain.GetName(), placeOf(plain), placeOf(copied))
	}
	if bare := reconcilerOf(t, sound()).made(shop(), want{0, named("web-0")}, "abc"); bare.GetAnnotations() != nil {
		t.Errorf("%v", bare.GetAnnotations())
	}
}

// at is a child of a revision at a place, under a name.
func at(place, name, hash string) client.Object {
	o := named(name)
	o.SetNamespace("shop")
	o.SetLabels(map[string]string{HashLabel: hash})
	o.SetUID(types.UID(name + hash))
	if place != "" {
		o.SetAnnotations(map[string]string{PlaceAnnotation: place})
	}
	return o
}

func terminating(o client.Object) client.Object {
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	return o
}

// placed are the facts of a parent with these children, going from revision 1 to revision 2, beside what others have.
func placed(t *testing.T, r *reconciler[*appsv1.ReplicaSet], children []client.Object, others ...client.Object) facts {
	t.Helper()
	parent := shop()
	wants, err := r.wantedOf(parent)
	if err != nil {
		t.Fatal(err)
	}
	strategy, err := r.strategyOf(parent)
	if err != nil {
		t.Fatal(err)
	}
	f := facts{strategy: strategy, update: "2", older: "1"}
	r.sort(&observed{children: [][]client.Object{children, nil}, now: time.Unix(100, 0)}, parent, &f, wants, wants)
	shown := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(others...).Build()
	r.Controller = &pass.Controller{Config: pass.Config{Cache: shown}}
	if err := r.conflicting(t.Context(), "shop", &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func ready(o client.Object) client.Object {
	o.(*corev1.Pod).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return o
}

// The annotation says where a child is. What it is called does not matter: a duplicate of its revision may have named
// it, or the rule may not have been named by revision then.
func TestPlacesOfChildren(t *testing.T) {
	surge, both := Strategy{MaxSurge: 1}, Strategy{MaxSurge: 1, MaxUnavailable: 1}
	for name, c := range map[string]struct {
		strategy Strategy
		children []client.Object
		others   []client.Object
		want     string
	}{
		"by its annotation":                {surge, []client.Object{ready(at("web-0", "web-0-1", "1"))}, nil, "+web-0-2:2"},
		"relabelled":                       {surge, []client.Object{ready(at("web-0", "web-0-7", "2"))}, nil, ""},
		"from before the rule was changed": {surge, []client.Object{ready(at("", "web-0", "1"))}, nil, "+web-0-2:2"},
		"not wanted":                       {surge, []client.Object{ready(at("web-0", "web-0-2", "2")), ready(at("web-1", "web-1-2", "2"))}, nil, "-web-1-2"},
		"somebody else has the name": {
			surge, []client.Object{ready(at("web-0", "web-0-1", "1"))}, []client.Object{at("", "web-0-2", "")}, "",
		},
		"somebody else has the name of what is missing": {both, nil, []client.Object{at("", "web-0-2", "")}, ""},
		"the name of the older one is not free": {
			Strategy{MaxSurge: 1, Partition: 1}, []client.Object{terminating(at("web-0", "web-0-1", "1"))}, nil, "",
		},
		"the update revision's is": {both, []client.Object{terminating(at("web-0", "web-0-1", "1"))}, nil, "+web-0-2:2"},
		// Of two revisions with one content the other one was deleted, its children were relabelled, and another content has
		// its hash.
		"a child of another revision has the name": {
			surge, []client.Object{ready(at("web-0", "web-0-2", "1"))}, nil, "+" + nameAt("web-0-2", revision.Hash([]byte("web-0-21"), nil)) + ":2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := byRevision(t, c.strategy, "web-0")
			if got := makePlan(placed(t, r, c.children, c.others...)).does(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The counters are of places: two children of one are not two, and it is updated once it has no other.
func TestCountersOfASurge(t *testing.T) {
	p := makePlan(picture(Strategy{MaxSurge: 2}, "1,2 1-,2- 2 1,2~"))
	if p.current != 4 || p.ready != 3 || p.available != 3 || p.updated != 1 {
		t.Errorf("current %d, ready %d, available %d, updated %d", p.current, p.ready, p.available, p.updated)
	}
	if !strings.HasPrefix(p.blocker, "c1-2: ") {
		t.Errorf("it waits for %q", p.blocker)
	}
}

// Two kinds may have places of one name: what is decided about one is not done to the other.
func TestTwoKindsWithOneName(t *testing.T) {
	c := sound()
	c.Owns = []Rule{Rolled(&corev1.Pod{}, nil), Rolled(&corev1.Service{}, nil)}
	c.Children = func(*appsv1.ReplicaSet) ([]client.Object, error) {
		return []client.Object{named("web-0"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}}, nil
	}
	r, pod := reconcilerOf(t, c), at("", "web-0", "1")
	f := placed(t, r, []client.Object{ready(pod)})
	if p := makePlan(f); p.does() != "+web-0:2" || p.rollout.Waiting[0].Unit != "Pod web-0" {
		t.Errorf("%q, and %v", p.does(), p.rollout)
	}
	f.places[1].children = []*owned{{object: f.places[1].update, rule: 1, revision: "2", ready: true, available: true}}
	if p := makePlan(f); len(p.Deletes) != 1 || p.Deletes[0].child.object != pod {
		t.Errorf("it deletes %v", p.Deletes)
	}
}

// Places that are never checked show nothing while there is no place of a kind that is.
func TestUnproven(t *testing.T) {
	for _, c := range []struct {
		owns  []Rule
		wants []client.Object
		want  bool
	}{
		{[]Rule{Rolled(&corev1.Pod{}, nil), Rolled(&corev1.Service{}, nil)}, []client.Object{named("web-0"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, false},
		{[]Rule{Rolled(&corev1.Pod{}, nil), Rolled(&corev1.Service{}, nil)}, []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, true},
		{[]Rule{Rolled(&corev1.Service{}, nil)}, []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, false},
	} {
		author := sound()
		author.Owns, author.Children = c.owns, func(*appsv1.ReplicaSet) ([]client.Object, error) { return c.wants, nil }
		if f := placed(t, reconcilerOf(t, author), nil); f.unproven != c.want {
			t.Errorf("%v: %t", c.wants, f.unproven)
		}
	}
}

// An orphan is adopted at a place that is wanted, and only if it was at that place before it was one.
func TestOrphansOfPlaces(t *testing.T) {
	r := byRevision(t, Strategy{}, "web-0")
	if err := r.adoptable(shop(), 0, at("web-0", "web-0-1", "1")); err != nil {
		t.Error(err)
	}
	for _, orphan := range []client.Object{at("web-1", "web-0", "1"), at("", "web-0", "1"), at("", "web-0-1", "1")} {
		if r.adoptable(shop(), 0, orphan) == nil {
			t.Errorf("%s is adopted", orphan.GetName())
		}
	}
}

func TestStrategiesThatCannotBeMeant(t *testing.T) {
	for name, c := range map[string]struct {
		strategy Strategy
		want     string
	}{
		"MaxUnavailable": {Strategy{MaxUnavailable: -1}, "MaxUnavailable -1"},
		"MaxSurge":       {Strategy{MaxSurge: -2}, "MaxSurge -2"},
		"Partition":      {Strategy{Partition: -3}, "Partition -3"},
		"surge without a second name": {
			Strategy{MaxSurge: 1}, "MaxSurge 1, which needs a second name for a Pod at the same place: add NamedByRevision to its rule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			author := sound()
			author.Strategy = func(*appsv1.ReplicaSet) Strategy { return c.strategy }
			_, err := reconcilerOf(t, author).strategyOf(shop())
			if refused, ok := err.(*pass.RefusedError); !ok || refused.Reason != "InvalidStrategy" || !strings.Contains(err.Error(), c.want) { //nolint:errorlint // as it is returned
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, err := byRevision(t, Strategy{MaxSurge: 1}).strategyOf(shop()); err != nil {
		t.Error(err)
	}
}
