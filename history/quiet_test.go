package history_test

// A pass that finds nothing new writes nothing (H8), asks nothing, and costs nothing for each stored revision: neither
// decoding nor encoding. The benchmark says what it does cost.

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

func TestSecondPassIsQuiet(t *testing.T) {
	for name, prepare := range map[string]func(*server){
		"after a create":   func(*server) {},
		"after a rollback": func(s *server) { mustPass(t, newLog(s), s.image("agent:2")); s.image("agent:1") },
		"after a handover": func(s *server) { s.mustCreate(revisionOf(t, s.parent(), "agent:1", 3)) },
		"after a handover that left two of one content": func(s *server) {
			o := revisionOf(t, s.parent(), "agent:1", 3)
			o.Data.Raw = with133(o.Data.Raw)
			s.mustCreate(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, agent("agent:1"))
			prepare(s)
			mustPass(t, newLog(s), s.parent())
			versions := fmt.Sprint(s.versions())
			s.Forget()
			for _, ds := range []*appsv1.DaemonSet{
				s.parent(),
				s.edit(func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds++ }), // the generation rises
			} {
				v, recorded := mustPass(t, newLog(s), ds)
				if v.Change != revision.NoChange || recorded.CollisionCount != nil || recorded.Update.Name != v.Update.Name {
					t.Errorf("%s: %s", v.Change, v.Reason)
				}
			}
			if fmt.Sprint(s.versions()) != versions || len(s.Calls("create", "patch", "delete", "dry-run", "get")) != 0 {
				t.Errorf("requests: %v", s.Calls())
			}
		})
	}
}

// A handover from the built-in controller stamps the one revision that the parent asks for, and does nothing else.
func TestHandover(t *testing.T) {
	ds := agent("agent:3")
	s := newServer(t, ds, revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:2", 2), revisionOf(t, ds, "agent:3", 3))
	v, recorded := mustPass(t, newLog(s), s.parent())
	writes := s.Writes()
	if v.Change != revision.NoChange || recorded.CollisionCount != nil || len(writes) != 1 || strings.Contains(writes[0].Body, `"revision"`) {
		t.Errorf("%s, wrote %v", v.Change, writes)
	}
}

func (s *server) mustCreate(o *appsv1.ControllerRevision) {
	s.t.Helper()
	if err := s.Raw.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) versions() map[string]string {
	out := map[string]string{}
	for name, o := range s.stored() {
		out[name] = o.ResourceVersion
	}
	return out
}

// counted is a log that counts how often content goes through the normalizer, which is what decoding a revision and
// looking at one closely both do. Its cache hands out its own objects.
func counted(t testing.TB, n int, ds *appsv1.DaemonSet) (*history.Log, *int) {
	t.Helper()
	calls := new(int)
	normalize := revision.Typed[appsv1.DaemonSet]()
	format := history.DaemonSet()
	format.Versioned = revision.StrategicMerge(func(tree map[string]any) (map[string]any, error) {
		*calls++
		return normalize(tree)
	}, revision.Path{"spec", "template"})
	s := newServer(t, ds)
	cache := sharing{Client: s}
	for i := range n {
		o := revisionOf(t, ds, fmt.Sprintf("agent:%d", i+1), int64(i+1))
		o.ResourceVersion = "1"
		if i == n-1 {
			o.Annotations = map[string]string{history.ParentUIDAnnotation: "agent-uid", history.ParentGenerationAnnotation: "1"}
		}
		cache.items = append(cache.items, *o)
	}
	return history.New(format, history.Options{Client: cache, Live: s, Indexed: true}), calls
}

func TestDecodedOnce(t *testing.T) {
	const n = 10
	ds := agent("agent:10")
	log, calls := counted(t, n, ds)
	mustPass(t, log, ds)
	if *calls != n {
		t.Errorf("the first pass normalized %d times for %d revisions", *calls, n)
	}
	*calls = 0
	for range 3 {
		if v, _ := mustPass(t, log, ds); v.Change != revision.NoChange {
			t.Fatalf("%s: %s", v.Change, v.Reason)
		}
	}
	if *calls != 0 {
		t.Errorf("passes without news normalized %d times", *calls)
	}
	// A change outside the template costs at most a look at the parent; one of the template also no look at the log.
	ds = ds.DeepCopy()
	ds.Generation++
	mustPass(t, log, ds)
	if *calls > 1 {
		t.Errorf("a change outside the template normalized %d times", *calls)
	}
	*calls = 0
	ds = ds.DeepCopy()
	ds.Generation++
	ds.Spec.Template.Spec.Containers[0].Image = "agent:11"
	resolve(t, log, ds)
	if *calls > 1 {
		t.Errorf("a change of the template normalized %d times", *calls)
	}
}

// If anything were marshalled in a pass without news, its allocations would grow with the template.
func TestCostIsIndependentOfTheTemplate(t *testing.T) {
	cost := func(containers int) float64 {
		ds := agent("agent:10")
		for i := range containers {
			ds.Spec.Template.Spec.Containers = append(ds.Spec.Template.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Image: "more"})
		}
		log, _ := counted(t, 10, ds)
		mustPass(t, log, ds)
		return testing.AllocsPerRun(20, func() { mustPass(t, log, ds) })
	}
	if small, large := cost(0), cost(100); large > small*1.1 {
		t.Errorf("a pass allocates %v times with a small template and %v times with a large one", small, large)
	}
}

// BenchmarkQuietPass is Claim and Resolve of a log of ten revisions in which nothing is new.
func BenchmarkQuietPass(b *testing.B) {
	ds := agent("agent:10")
	for i := range 20 {
		ds.Spec.Template.Spec.Containers = append(ds.Spec.Template.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Image: "more"})
	}
	log, calls := counted(b, 10, ds)
	mustPass(b, log, ds)
	*calls = 0
	b.ReportAllocs()
	for b.Loop() {
		entries, err := log.Claim(b.Context(), ds, matching)
		if err != nil {
			b.Fatal(err)
		}
		if v, err := log.Resolve(b.Context(), ds, entries); err != nil || v.Change != revision.NoChange {
			b.Fatal(v, err)
		}
	}
	b.ReportMetric(float64(*calls)/float64(b.N), "decodes/op")
}
