// Package recorder measures what it costs to record ConfigMaps by a HistoryPolicy: for each that there is, and for each
// edit.
//
//	make bench BENCH=Recorder
//
// What may not come in: edits that come faster than a person's or a controller's, but for the one that is about them.
package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// counted is what the sandbox counts in.
var counted = lab.NewLedger()

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{Nodes: sandbox.NoNodes, Requests: counted.Request})
	lab.RemoveBuilt()
	os.Exit(code)
}

const (
	// writers is how many ConfigMaps are created at once.
	writers = 16
	// pause is the time between two edits.
	pause = 20 * time.Millisecond
	// patience is how long anything may take.
	patience = 10 * time.Minute
	// restFor is how long nobody does anything.
	restFor = 5 * time.Second
)

// shelf is ConfigMaps in a namespace, and the revisions of them as they appear.
type shelf struct {
	testing.TB

	client    kubernetes.Interface
	policies  dynamic.ResourceInterface
	namespace string
	size      int

	mu sync.Mutex
	// seen is when the revision with that number of that ConfigMap appeared.
	seen map[string]time.Time
	// deleted is how many of them are gone.
	deleted int
}

// policy records the ConfigMaps of one namespace, which are labeled with its name, as the policy is.
const policy = `
apiVersion: cairn.dev/v1alpha1
kind: HistoryPolicy
metadata: {name: %[1]s}
spec:
  resource: {apiVersion: v1, resource: configmaps}
  selector: {matchLabels: {bench: %[1]s}}
`

// newShelf creates so many ConfigMaps with so many bytes of data each.
func newShelf(tb testing.TB, size, bytes int) *shelf {
	tb.Helper()
	s := sandboxtest.Get(tb)
	cfg := s.Config()
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if err := install.CRDs(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
	out := &shelf{
		TB: tb, client: client, policies: dynamic.NewForConfigOrDie(cfg).Resource(v1alpha1.SchemeGroupVersion.WithResource("historypolicies")),
		namespace: sandboxtest.Namespace(tb, s), size: size, seen: map[string]time.Time{},
	}
	if err := install.Apply(tb.Context(), cfg, fmt.Sprintf(policy, out.namespace)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { // a kind has one policy
		if err := out.policies.Delete(context.WithoutCancel(tb.Context()), out.namespace, metav1.DeleteOptions{}); err != nil {
			tb.Error(err)
		}
	})
	var group errgroup.Group
	group.SetLimit(writers)
	for n := range size {
		group.Go(func() error {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(n), Labels: map[string]string{"bench": out.namespace}}, Data: map[string]string{"n": "0", "filler": strings.Repeat("x", bytes)}}
			_, err := client.CoreV1().ConfigMaps(out.namespace).Create(tb.Context(), o, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	out.watch(metadata.NewForConfigOrDie(cfg))
	return out
}

func name(n int) string { return fmt.Sprintf("map-%05d", n) }

// watch notes when revisions appear.
func (s *shelf) watch(client metadata.Interface) {
	resource := client.Resource(appsv1.SchemeGroupVersion.WithResource("controllerrevisions")).Namespace(s.namespace)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	lw := &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		WatchFuncWithContext: resource.Watch,
	}
	informer := cache.NewSharedIndexInformer(lw, &metav1.PartialObjectMetadata{}, 0, nil)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen[m.Name] = time.Now()
		}
	}, DeleteFunc: func(any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deleted++
	}})
	if err != nil {
		s.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	s.Cleanup(stop)
	if !cache.WaitForCacheSync(s.Context().Done(), informer.HasSynced) {
		s.Fatal(s.Context().Err())
	}
}

// revisions waits until there are so many, and returns when each appeared.
func (s *shelf) revisions(want int) map[string]time.Time {
	s.Helper()
	var out map[string]time.Time
	err := wait.PollUntilContextTimeout(s.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out = s.seen
		return len(s.seen) >= want, nil
	})
	if err != nil {
		s.Fatalf("%d of %d revisions: %v", len(out), want, err)
	}
	return out
}

// start runs the recorder.
func (s *shelf) start() *lab.Process {
	s.Helper()
	cfg, err := sandboxtest.Get(s).ConfigFor(lab.Subject, "system:masters")
	if err != nil {
		s.Fatal(err)
	}
	return lab.Start(s, cfg, lab.Build(s, lab.Cairn), "manager", "--controllers=recorder", "--hosted-identity=shared", "--leader-elect=false",
		"--metrics-bind-address=off", "--health-probe-bind-address=off")
}

// cost is what something took.
type cost struct {
	lab.Tally

	wall, cpu time.Duration
	peak      int64
	// latencies are from the response to an edit until its revision appeared, sorted.
	latencies []time.Duration
}

func (s *shelf) measure(p *lab.Process, do func() []time.Duration) cost {
	before, cpu, start := counted.Read(), p.CPU(), time.Now()
	latencies := do()
	s.until(50*time.Millisecond, "the counts, which are written last", s.counted)
	slices.Sort(latencies)
	return cost{Tally: counted.Since(before), wall: time.Since(start), cpu: p.CPU() - cpu, peak: p.Peak(), latencies: latencies}
}

// counted reports whether the status of the policy counts all revisions.
func (s *shelf) counted() bool {
	o, err := s.policies.Get(s.Context(), s.namespace, metav1.GetOptions{})
	if err != nil {
		return false
	}
	n, _, err := unstructured.NestedInt64(o.Object, "status", "revisions")
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && n == int64(len(s.seen)-s.deleted)
}

// edit edits so many ConfigMaps, one after the other, each once, and waits until each edit is recorded.
func (s *shelf) edit(edits, round int) []time.Duration {
	s.Helper()
	done := len(s.revisions(0))
	var out []time.Duration
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := range edits {
		<-tick.C
		s.patch(n*s.size/edits, fmt.Sprint(round))
		answered := time.Now()
		out = append(out, s.recorded(done+n+1, answered))
	}
	return out
}

// patch edits one ConfigMap.
func (s *shelf) patch(n int, value string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"data":{"n":"%s"}}`, value)
	_, err := s.client.CoreV1().ConfigMaps(s.namespace).Patch(s.Context(), name(n), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// recorded waits for one revision more.
func (s *shelf) recorded(want int, since time.Time) time.Duration {
	s.Helper()
	s.until(200*time.Microsecond, fmt.Sprintf("revision %d", want), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.seen) >= want
	})
	return time.Since(since)
}

func (s *shelf) until(every time.Duration, what string, done func() bool) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), every, patience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		s.Fatalf("wait for %s: %v", what, err)
	}
}

// TestCostOfAnEdit: an edit costs few requests, and nothing costs none, however many objects there are.
func TestCostOfAnEdit(t *testing.T) {
	const size, edits, most = 60, 20, 3.0
	s := newShelf(t, size, 0)
	p := s.start()
	s.measure(p, func() []time.Duration { s.revisions(size); return nil })
	c := s.measure(p, func() []time.Duration { return s.edit(edits, 1) })
	t.Log(c.Tally)
	if got := float64(c.Total()-c.Requests["patch historypolicies/status"]) / edits; got > most || got < 1 {
		t.Errorf("%.2f requests for each edit, want 1 to %.0f: %s", got, most, c.Tally)
	}
	if len(c.Refused) > 0 {
		t.Errorf("some requests were refused: %v", c.Refused)
	}
	rest := s.measure(p, func() []time.Duration { <-time.After(restFor); return nil })
	if n := rest.Total(); n > 0 {
		t.Errorf("%d requests although nothing was edited: %s", n, rest.Tally)
	}
}

// BenchmarkRecorder records ConfigMaps that are there, and edits of them.
func BenchmarkRecorder(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				const edits = 500
				s := newShelf(b, size, 0)
				p := s.start()
				first := s.measure(p, func() []time.Duration { s.revisions(size); return nil })
				edit := s.measure(p, func() []time.Duration { return s.edit(edits, 1) })
				rest := s.measure(p, func() []time.Duration { <-time.After(restFor); return nil })
				b.Logf("%d ConfigMaps: first %.1f s, CPU %.2f s, %.2f requests each, %d MiB; edits: %.2f requests, CPU %.2f ms each, "+
					"recorded after %s (median), %s (99 of 100), %d MiB; at rest %d requests", size, first.wall.Seconds(), first.cpu.Seconds(),
					float64(first.Total())/float64(size), first.peak>>20, float64(edit.Total())/edits, 1000*edit.cpu.Seconds()/edits,
					edit.latencies[edits/2].Round(100*time.Microsecond), edit.latencies[edits*99/100].Round(100*time.Microsecond), edit.peak>>20, rest.Total())
				b.ReportMetric(float64(edit.Total())/edits, "requests/edit")
				b.ReportMetric(float64(edit.latencies[edits/2].Microseconds())/1000, "ms/edit")
				b.ReportMetric(float64(edit.peak>>20), "MiB")
				p.Stop()
			}
		})
	}
}

// BenchmarkRecorderLarge records a few ConfigMaps near the API server's limit, which are edited again and again.
func BenchmarkRecorderLarge(b *testing.B) {
	const size, bytes, rounds = 15, 900_000, 12
	for b.Loop() {
		s := newShelf(b, size, bytes)
		p := s.start()
		s.measure(p, func() []time.Duration { s.revisions(size); return nil })
		edit := s.measure(p, func() []time.Duration {
			var out []time.Duration
			for round := range rounds {
				out = append(out, s.edit(size, round+1)...)
			}
			return out
		})
		b.Log(edit.Tally)
		b.Logf("%d ConfigMaps of %d KB, %d edits each: %.2f requests, CPU %.1f ms and %s (median) each, %d MiB", size, bytes/1000, rounds,
			float64(edit.Total())/(size*rounds), 1000*edit.cpu.Seconds()/(size*rounds),
			edit.latencies[len(edit.latencies)/2].Round(100*time.Microsecond), edit.peak>>20)
		p.Stop()
	}
}

// BenchmarkRecorderBurst edits one ConfigMap a hundred times a second. What is recorded in the end is the last state;
// how many of those before it were is printed.
func BenchmarkRecorderBurst(b *testing.B) {
	const edits = 500
	for b.Loop() {
		s := newShelf(b, 1, 0)
		p := s.start()
		s.measure(p, func() []time.Duration { s.revisions(1); return nil })
		burst := s.measure(p, func() []time.Duration {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for n := range edits {
				<-tick.C
				s.patch(0, fmt.Sprint("burst-", n))
			}
			return nil
		})
		s.until(50*time.Millisecond, "the last state to be recorded", func() bool { return s.newest() == fmt.Sprint("burst-", edits-1) })
		b.Logf("%d edits of one ConfigMap in %.1f s: %d revisions seen, %.2f requests an edit, CPU %.2f ms, %d MiB", edits, burst.wall.Seconds(),
			len(s.revisions(0)), float64(burst.Total())/edits, 1000*burst.cpu.Seconds()/edits, burst.peak>>20)
		p.Stop()
	}
}

// newest is what the revision with the highest number holds as "n".
func (s *shelf) newest() string {
	s.Helper()
	all, err := s.client.AppsV1().ControllerRevisions(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		s.Fatal(len(all.Items), err)
	}
	newest := slices.MaxFunc(all.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	var held corev1.ConfigMap
	if err := json.Unmarshal(newest.Data.Raw, &held); err != nil {
		s.Fatal(err)
	}
	return held.Data["n"]
}
