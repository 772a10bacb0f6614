package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file lets a person direct a world instead of chance: it implements scenario.Stage. Nothing happens by itself;
// while the script waits, everything that can happen does, fairly and in order, so that a script has one history.

// StageName is what scripts call the simulation.
const StageName = "simulation"

// Stage is a world for one script. Open makes one.
type Stage struct {
	w      *world
	client client.Client
	// wanted are the managers that are to run.
	wanted map[string]bool
	// kubelet is what the script told the kubelet about single pods.
	kubelet map[types.UID]scenario.PodState
	faults  []*staged
	refusal []*staged
	// holds and rewinds are by manager and resource.
	holds   map[watched]bool
	rewinds map[watched]uint64
}

var _ scenario.Stage = (*Stage)(nil)

// staged is a fault that is due.
type staged struct {
	scenario.FaultSpec

	seen int
}

// watched is one watch. An empty manager stands for all.
type watched struct {
	manager  string
	resource schema.GroupResource
}

// Open makes a world that waits to be directed. It must be called in a bubble of testing/synctest, and closed there.
func Open(kinds ...Kind) *Stage {
	w := newWorld(0, Options{Kinds: kinds, Calm: true, Parents: len(parentNames), Workers: 4})
	w.staged = stageOf(w)
	return w.staged
}

// stageOf is a world as a user finds it.
func stageOf(w *world) *Stage {
	s := &Stage{
		w: w, wanted: map[string]bool{}, kubelet: map[types.UID]scenario.PodState{},
		holds: map[watched]bool{}, rewinds: map[watched]uint64{},
	}
	s.client = model.NewClient(func(_ context.Context, r model.Request) (model.Response, error) {
		r.User = userPerson
		response := w.ask(r)
		return response, response.Err
	}, w.scheme, w.modelled)
	return s
}

// Close ends the managers.
func (s *Stage) Close() { s.w.stop() }

// Name implements [scenario.Stage].
func (*Stage) Name() string { return StageName }

// Client implements [scenario.Stage].
func (s *Stage) Client() client.Client { return s.client }

// Namespace implements [scenario.Stage].
func (*Stage) Namespace() string { return namespace }

// Nodes implements [scenario.Stage].
func (s *Stage) Nodes(_ context.Context, n int) error {
	for _, o := range s.w.all(nodes) {
		if number, err := strconv.Atoi(o.GetName()[len("node-"):]); err != nil || number >= n {
			s.w.ask(model.Request{Verb: model.VerbDelete, Resource: nodes, Name: o.GetName(), User: userMachine})
		}
	}
	for i := range n {
		if s.w.get(nodes, "", fmt.Sprintf("node-%d", i)) == nil {
			s.w.addMachine(i)
		}
	}
	for _, pod := range s.w.pods() {
		if pod.Spec.NodeName != "" && s.w.get(nodes, "", pod.Spec.NodeName) == nil {
			s.w.end(pod)
		}
	}
	s.w.wait()
	return nil
}

// Pod implements [scenario.Stage].
func (s *Stage) Pod(_ context.Context, name string, state scenario.PodState) error {
	pod, ok := s.w.get(pods, namespace, name).(*corev1.Pod)
	if !ok {
		return fmt.Errorf("there is no pod %s", name)
	}
	s.kubelet[pod.UID] = state
	switch state {
	case scenario.Ready, scenario.Unready:
		s.w.setPhase(pod, corev1.PodRunning, state == scenario.Ready)
	case scenario.Failed:
		s.w.setPhase(pod, corev1.PodFailed, false)
	case scenario.Succeeded:
		s.w.setPhase(pod, corev1.PodSucceeded, false)
	case scenario.Gone:
		s.w.end(pod)
	case scenario.Stuck:
	default:
		return fmt.Errorf("no pod can be %q", state)
	}
	s.w.wait()
	return nil
}

// Until implements [scenario.Stage].
func (s *Stage) Until(ctx context.Context, what string, f func(context.Context) error) error {
	var err error
	for range patience {
		if err = f(ctx); err == nil {
			return nil
		}
		s.next(time.Second)
	}
	return fmt.Errorf("wait for %s: %w", what, err)
}

// Settle implements [scenario.Stage].
func (s *Stage) Settle(context.Context) error {
	quiet, at := idle, s.w.server.ResourceVersion()
	if len(s.holds) > 0 {
		quiet = time.Minute // a manager that waits for a watch asks again and again
	}
	since := s.w.clock.Now()
	for range 4 * patience {
		s.next(quiet)
		if now := s.w.server.ResourceVersion(); now != at {
			at, since = now, s.w.clock.Now()
		} else if s.w.clock.Since(since) >= quiet {
			return nil
		}
	}
	return fmt.Errorf("it does not settle: %s", s.w.leftToDo())
}

// next lets one thing happen, or time pass until something can.
func (s *Stage) next(most time.Duration) {
	s.w.step++
	s.w.bury()
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		if s.process(name) == nil {
			s.start(name)
		}
	}
	if !s.w.fair() {
		s.w.sleep(most)
	}
}

// StartManager implements [scenario.Stage].
func (s *Stage) StartManager(_ context.Context, n int) error {
	name := managerNames[n-1]
	s.wanted[name] = true
	if s.process(name) == nil {
		s.start(name)
	}
	return nil
}

func (s *Stage) start(name string) {
	s.w.start(name, func(resource schema.GroupVersionResource) uint64 { return s.listed(name, resource.GroupResource()) })
	for _, i := range s.process(name).manager.caches.order {
		i.held = s.held(name, i.resource.GroupResource())
	}
}

// KillManager implements [scenario.Stage].
func (s *Stage) KillManager(_ context.Context, n int) error {
	delete(s.wanted, managerNames[n-1])
	if p := s.process(managerNames[n-1]); p != nil {
		s.w.kill(p)
	}
	return nil
}

func (s *Stage) process(name string) *process {
	for _, p := range s.w.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Sync implements [scenario.Stage].
func (s *Stage) Sync(context.Context) (uint64, error) { return s.w.server.ResourceVersion(), nil }

// History implements [scenario.Stage].
func (s *Stage) History() (*check.History, error) { return &s.w.history, nil }

// listed is as of when a manager's next list of a resource is answered. A rewind holds for one list.
func (s *Stage) listed(name string, resource schema.GroupResource) uint64 {
	for _, who := range []string{name, ""} {
		if rv, ok := s.rewinds[watched{who, resource}]; ok {
			delete(s.rewinds, watched{who, resource})
			return rv
		}
	}
	return s.w.server.ResourceVersion()
}

func (s *Stage) held(name string, resource schema.GroupResource) bool {
	return s.holds[watched{name, resource}] || s.holds[watched{"", resource}]
}

// stuck, unready, mode and refuses are what the rest of the world asks. Without a stage, nothing is out of the
// ordinary.

func (s *Stage) stuck(pod *corev1.Pod) bool {
	return s != nil && pod.DeletionTimestamp != nil && s.kubelet[pod.UID] == scenario.Stuck
}

func (s *Stage) unready(pod *corev1.Pod) bool {
	return s != nil && s.kubelet[pod.UID] == scenario.Unready
}

// mode is how a request fails.
func (s *Stage) mode(c *call) fault.Mode {
	if s == nil {
		return clean
	}
	for i, f := range s.faults {
		if !matches(f.FaultSpec, c) {
			continue
		}
		if f.seen++; f.seen < f.Nth {
			continue
		}
		if f.seen >= f.Nth+max(1, f.Times)-1 {
			s.faults = slices.Delete(slices.Clone(s.faults), i, i+1)
		}
		if f.Mode == fault.Throttled {
			return clean // client-go asks again by itself
		}
		return f.Mode
	}
	return clean
}

// refuses is the status with which a request is answered, zero if it is served.
func (s *Stage) refuses(c *call) int {
	if s == nil {
		return 0
	}
	for _, f := range s.refusal {
		if !matches(f.FaultSpec, c) {
			continue
		}
		if f.seen++; f.seen >= f.Nth && (f.Times == 0 || f.seen < f.Nth+f.Times) {
			return f.Status
		}
	}
	return 0
}
