package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is one run of a manager, from its start until it ends or is killed, and the requests that it makes. A
// request waits until the scheduler serves it: nothing that a manager does is done before the scheduler says so.

// process is one run of a manager.
type process struct {
	// name is the user that its requests come from: manager-1. run counts the starts of all managers.
	name string
	run  int
	// born is the server's resource version at its start.
	born uint64

	world   *world
	manager *manager
	cancel  context.CancelFunc
	// clock is the one by which it knows what is due, nil where nothing ever is.
	clock *wallClock

	// mu guards what its goroutines and the scheduler share.
	mu    sync.Mutex
	dead  bool
	calls []*call
	said  []saying
	// queues are those of its controllers.
	queues []workqueue.TypedRateLimitingInterface[reconcile.Request]
	// series are the Events that it has written and would count on.
	series map[eventKey]series
}

// call is one request that waits.
type call struct {
	from    *process
	request model.Request
	answer  chan answer
	// body orders requests that differ in nothing else. It is made when it is needed.
	body string
	// late marks a request that its manager has given up or died over. The server may still act on it.
	late bool
	// due is when a slow webhook lets it through, zero if none looks at it.
	due time.Time
	// pass is the one that it belongs to, nil if it belongs to none.
	pass *check.Pass
	// sent is the object as it was sent, if admission may have changed it.
	sent client.Object
	// question is what a hook is asked, nil if the server is asked something.
	question *catset.Question
}

type answer struct {
	response model.Response
	err      error
	// said is a hook's.
	said *http.Response
}

// do is the manager's way to the server.
func (p *process) do(ctx context.Context, r model.Request) (model.Response, error) {
	r.User = p.name
	c := &call{from: p, request: r, answer: make(chan answer, 1), pass: passOf(ctx)}
	if !p.enqueue(c) {
		return model.Response{}, errKilled
	}
	a := <-c.answer
	return a.response, a.err
}

// enqueue makes a call wait for the scheduler. It returns false if the process is dead.
func (p *process) enqueue(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	p.calls = append(p.calls, c)
	select {
	case p.world.arrived <- struct{}{}:
	default:
	}
	return true
}

// collect returns the requests that have arrived since the last time.
func (p *process) collect() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

// endQueues lets no pass begin any more. It comes before die, and while everything waits: a worker that is about to
// begin a pass when the process dies would else begin it by chance.
func (p *process) endQueues() {
	p.mu.Lock()
	queues := slices.Clone(p.queues)
	p.mu.Unlock()
	for _, q := range queues {
		q.ShutDown()
	}
}

// die makes the process's requests fail from now on, and ends its goroutines.
func (p *process) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.cancel()
}

// reply answers a request. Nobody waits for a late one.
func (c *call) reply(response model.Response, err error) {
	if !c.late {
		c.answer <- answer{response: response, err: err}
	}
}

// writes reports whether the request changes anything.
func (c *call) writes() bool {
	return c.question == nil && c.request.Verb != model.VerbGet && c.request.Verb != model.VerbList
}

func (c *call) String() string {
	r := c.request
	resource := r.Resource.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	name := r.Name
	if name == "" && r.Object != nil {
		name = r.Object.GetName()
	}
	s := fmt.Sprintf("%s %s %s %s", c.from.name, r.Verb, resource, strings.TrimSpace(r.Namespace+" "+name))
	if r.DryRun {
		s += " (dry run)"
	}
	return s
}

// compareCalls orders requests by what they ask for, never by when they came: two goroutines of a manager that ask at
// once have no order.
func compareCalls(a, b *call) int {
	x, y := a.request, b.request
	if order := cmp.Or(
		cmp.Compare(a.from.name, b.from.name), cmp.Compare(a.from.run, b.from.run),
		cmp.Compare(x.Verb, y.Verb), cmp.Compare(x.Resource.Resource, y.Resource.Resource),
		cmp.Compare(x.Subresource, y.Subresource), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name),
	); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.text(), b.text()), cmp.Compare(a.passID(), b.passID()))
}

// passID tells apart what two passes ask for in the same words.
func (c *call) passID() string {
	if c.pass == nil {
		return ""
	}
	return c.pass.ID
}

// text is the body of a request.
func (c *call) text() string {
	if c.body != "" {
		return c.body
	}
	switch {
	case c.request.Object != nil:
		text, err := json.Marshal(c.request.Object)
		if err != nil {
			text = []byte(err.Error())
		}
		c.body = string(text)
	case c.request.Patch != nil:
		c.body = string(c.request.Patch)
	case c.request.LabelSelector != nil:
		c.body = c.request.LabelSelector.String()
	}
	return c.body
}
