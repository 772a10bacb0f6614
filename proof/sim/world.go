package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	cairnv1alpha1 "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	cairn "github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is the world: a server, its cluster, the managers that run, and what has happened so far. One goroutine
// owns it, the scheduler's, and nothing else in it is shared with the managers but what process.go guards.

// scheme has the Go types that controllers use.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s), cairnv1alpha1.AddToScheme(s)))
	return s
}()

// namespace is where everything happens.
const namespace = "sim"

// world is one simulated cluster.
type world struct {
	options  Options
	kinds    []Kind
	scheme   *runtime.Scheme
	modelled []model.Kind
	served   map[schema.GroupVersionResource]model.Kind
	server   *model.Server
	clock    clock.WithTicker
	born     time.Time

	// chance makes every choice that is not made by a person.
	chance *rand.Rand
	temper temper

	// frozen is where the clocks of the managers have stopped, nil while they go.
	frozen atomic.Pointer[time.Time]

	processes []*process
	runs      int
	// doomed are those that gave up, and are still to be ended.
	doomed  []*process
	calls   []*call
	arrived chan struct{}
	outage  *outage
	// trouble is what goes wrong for longer, nil if nothing does.
	trouble *trouble
	// causes are the parents for which requests are refused for another reason than before, since when, while no Event
	// tells it; heardOf are those of which one does.
	causes  map[string]time.Time
	heardOf map[string]bool
	// staged is who directs the world, nil for a random one; player plays the steps of the random user.
	staged *Stage
	player *scenario.Player

	// events are the changes of each resource, shelves what there is now.
	events  map[schema.GroupVersionResource][]model.Event
	shelves map[schema.GroupVersionResource]*shelf
	seen    int

	history check.History
	// views are the objects as caches hold them, where that is another form than the server's.
	views map[viewKey]viewed
	// prints are what the objects of the events were like when they were handed out.
	prints []uint64
	found  []check.Violation
	stats  Stats
	trace  trace
	step   int
	// complaints are the last errors of passes, with when they were returned.
	complaints []complaint
}

type complaint struct {
	at   time.Time
	text string
}

func newWorld(seed uint64, o Options) *world {
	w := &world{
		options: o,
		kinds:   o.kinds(),
		scheme:  scheme,
		served:  map[schema.GroupVersionResource]model.Kind{},
		clock:   clock.RealClock{}, // of the bubble
		born:    clock.RealClock{}.Now(),
		chance:  rand.New(rand.NewPCG(seed, 0x73696d)), //nolint:gosec // a simulation is repeatable on purpose
		arrived: make(chan struct{}, 1),
		events:  map[schema.GroupVersionResource][]model.Event{},
		shelves: map[schema.GroupVersionResource]*shelf{},
		stats:   Stats{},
		views:   map[viewKey]viewed{},
	}
	// ConfigMaps are strangers in most worlds: something that is neither parent nor child.
	w.modelled = append(model.BuiltIn(), model.Custom(kinds.ConfigMap.GVK, configMaps.Resource, true, false, model.Schema{}))
	w.modelled = append(append(append(w.modelled, catKinds()...), policyKind(), model.NetworkPolicy()), model.Batch()...)
	for _, k := range w.modelled {
		w.served[k.Resource] = k
		w.shelves[k.Resource] = &shelf{objects: map[string]client.Object{}}
	}
	w.server = model.New(model.Options{Kinds: w.modelled, Seed: seed, Now: w.clock.Now})
	w.history.Audited, w.history.Reads = true, true
	w.history.Initial = map[check.Key]client.Object{}
	w.history.Manager = isManager
	w.trace.on = o.Trace
	w.temper = newTemper(w.chance, o)
	w.trouble = newTrouble(w, seed, o.Trouble)
	w.player = scenario.NewPlayer(stageOf(w), nil)
	return w
}

// resources are those that the managers watch.
func (w *world) resources() map[schema.GroupVersionResource]schema.GroupVersionKind {
	out := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for _, k := range w.kinds {
		for _, r := range k.resources() {
			out[r] = w.served[r].Kind
		}
	}
	return out
}

// start starts a manager of that name. at says as of when each of its first lists is answered.
func (w *world) start(name string, at func(schema.GroupVersionResource) uint64) {
	w.runs++
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{name: name, run: w.runs, cancel: cancel, world: w, born: w.server.ResourceVersion()}
	w.windClock(p)
	log := logr.New(sink{p})
	direct := model.NewClient(p.do, w.scheme, w.modelled)
	p.manager = &manager{
		process:  p,
		scheme:   w.scheme,
		caches:   newCaches(w.scheme, mix(w.chance.Uint64()), w.resources()),
		mapper:   direct.RESTMapper(),
		live:     direct,
		log:      log,
		recorder: recorder{p},
	}
	p.manager.client = cachedClient{direct, p.manager.caches}
	for _, i := range p.manager.caches.order {
		w.relist(i, at(i.resource))
	}
	w.processes = append(w.processes, p)
	for _, k := range w.kinds {
		if err := w.add(ctx, p, k); err != nil {
			w.violationf("%s does not start: %v", name, err)
		}
	}
	p.manager.start(ctx, func(err error) { p.say(saying{fatal: true, text: err.Error()}) })
	w.wait()
}

// add adds the controllers of a kind to a manager.
func (w *world) add(ctx context.Context, p *process, k Kind) error {
	if n := len(k.Releases); n > 0 {
		return k.Releases[(p.run-1)%n](ctx, p.manager)
	}
	if k.Add != nil {
		return k.Add(ctx, p.manager)
	}
	if len(k.Hosted) > 0 {
		hosted := k.Hosted
		if p.run == 1 {
			hosted = hosted[:len(hosted)-k.Later]
		}
		return p.host(ctx, hosted)
	}
	o := cairn.Options{Controllers: []string{k.Check.Controller}, Workers: w.options.Workers}
	if k.Timed {
		o.Clock = p.clock
	}
	return cairn.Add(ctx, p.manager, o)
}

// relist fills an informer's store with the resource as it was at a resource version.
func (w *world) relist(i *informer, rv uint64) {
	objects, err := w.server.ListAt(i.resource, "", rv)
	if err != nil {
		panic(fmt.Sprintf("sim: list %s at %d: %v", i.resource.Resource, rv, err))
	}
	for n, o := range objects {
		objects[n] = w.view(i.resource, o)
	}
	i.list(objects, rv, w.events[i.resource])
}

// kill ends a manager as SIGKILL does. Of its requests that wait, the server has heard of some.
func (w *world) kill(p *process) {
	w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
	synctest.Wait()
	p.endQueues()
	synctest.Wait()
	p.die()
	w.wait()
	var rest []*call
	for _, c := range append(w.calls, p.collect()...) {
		if c.from != p {
			rest = append(rest, c)
			continue
		}
		c.reply(model.Response{}, errKilled)
		c.late = true
		if w.temper.late && c.writes() {
			rest = append(rest, c)
		}
	}
	w.calls = rest
	w.wait()
}

// wait waits until every goroutine of the managers waits for the server, for an event or for time to pass.
func (w *world) wait() {
	synctest.Wait()
	select {
	case <-w.arrived:
	default:
	}
	for _, p := range w.processes {
		w.calls = append(w.calls, p.collect()...)
		for _, s := range p.heard() {
			w.hear(p, s)
		}
	}
	slices.SortStableFunc(w.calls, compareCalls)
}

// bury ends the managers that gave up.
func (w *world) bury() {
	for len(w.doomed) > 0 {
		p := w.doomed[0]
		w.doomed = w.doomed[1:]
		w.kill(p)
	}
}

// hear takes down what a controller said.
func (w *world) hear(p *process, s saying) {
	if s.fatal {
		w.stats.count("managers that gave up")
		w.tracef("%s gives up", p.name) // which of its caches it names first is chance
		w.doomed = append(w.doomed, p)
		return
	}
	if !s.failure {
		w.stats.count("event " + s.what)
		w.event(p, s)
		w.tracef("%s says %s: %s", p.name, s.what, s.text)
		return
	}
	w.stats.count("errors of passes")
	w.tracef("%s fails: %s: %s", p.name, s.what, s.text)
	w.complaints = append(w.complaints, complaint{w.clock.Now(), s.text})
	if isPanic(s.text) {
		w.violationf("%s panics: %s", p.name, s.text)
	}
}

// sleep lets time pass, until a request arrives at the latest.
func (w *world) sleep(d time.Duration) {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.arrived:
	case <-timer.C():
	}
	w.wait()
}

// ask does what somebody other than a manager asks of the server.
func (w *world) ask(r model.Request) model.Response {
	response := w.do(r, nil)
	if r.Verb == model.VerbGet || r.Verb == model.VerbList {
		return response
	}
	if response.Err != nil {
		w.tracef("%s %s %s %s: %v", r.User, r.Verb, r.Resource.Resource, r.Name, response.Err)
	} else {
		w.tracef("%s %s %s %s: %d", r.User, r.Verb, r.Resource.Resource, objectName(r, response), response.ResourceVersion)
	}
	return response
}

// make creates an object that is in no namespace, as it stands there.
func (w *world) make(o client.Object) {
	kind, err := apiutil.GVKForObject(o, w.scheme)
	if err != nil {
		panic(fmt.Sprintf("sim: %s: %v", o.GetName(), err))
	}
	for resource, served := range w.served {
		if served.Kind == kind {
			w.ask(model.Request{Verb: model.VerbCreate, Resource: resource, Object: deepCopy(o), User: userPerson})
		}
	}
}

// violationf reports what no rule of package check can see: a world that does not come to its end as it should (C1).
func (w *world) violationf(format string, args ...any) {
	v := check.Violation{Invariant: "C1", RV: w.server.ResourceVersion(), Sentence: fmt.Sprintf(format, args...)}
	w.found = append(w.found, v)
	w.tracef("VIOLATION %s", v)
}

func compare(a, b string) int { return cmp.Compare(a, b) }
