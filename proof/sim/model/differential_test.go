package model_test

// This file plays random sequences of requests to the model and to the real API server, and compares the answers.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cairn-dev/cairn/proof/sim/model"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// onlySeed plays one sequence again: go test -run TheModelAnswers -seed 17.
var onlySeed = flag.Uint64("seed", 0, "play only the sequence of this seed")

const (
	sequences     = 200
	fullSequences = 300 // with CAIRN_CHECK=full
	steps         = 14
	workers       = 4
	kindsTogether = 3
	// collectorPatience is how long the real garbage collector may take.
	collectorPatience = 15 * time.Second
	pollInterval      = 15 * time.Millisecond
)

// TestTheModelAnswersAsTheServerDoes plays the same requests to both.
func TestTheModelAnswersAsTheServerDoes(t *testing.T) {
	s := sandboxtest.Get(t)
	namespace := sandboxtest.Namespace(t, s)
	installDefinitions(t, s.Config())
	server, err := newReality(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	count := uint64(sequences)
	if os.Getenv("CAIRN_CHECK") == "full" {
		count = fullSequences
	}
	watched := watchAll(t, server, namespace)
	seeds := make(chan uint64, count)
	for seed := range count {
		if *onlySeed == 0 || *onlySeed == seed+1 {
			seeds <- seed + 1
		}
	}
	close(seeds)

	var total tally
	var group sync.WaitGroup
	var mutex sync.Mutex
	var done []*sequence
	for range workers {
		group.Go(func() {
			for seed := range seeds {
				q := newSequence(seed, namespace, server, &total)
				err := q.play(t.Context())
				if errors.Is(err, errTaken) {
					continue
				}
				if err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, q.log.String())
					continue
				}
				mutex.Lock()
				done = append(done, q)
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	// What the garbage collector should not have done it may have done later.
	events := watched.finish(t, server, namespace)
	final := everything(t, server, namespace)
	for _, q := range done {
		err := q.compareState(t.Context(), final, false)
		if err != nil && !errors.Is(err, errTaken) {
			t.Errorf("seed %d, in the end: %v\n%s", q.seed, err, q.log.String())
		}
		n, err := q.compareHistory(events)
		total.events.Add(int64(n))
		if err != nil {
			t.Errorf("seed %d, its history: %v\n%s", q.seed, err, q.log.String())
		}
	}
	t.Logf("%d sequences, %d requests, %d events: %d refused alike, %d without effect, %d times garbage collected",
		len(done), total.requests.Load(), total.events.Load(), total.refused.Load(), total.idle.Load(), total.collected.Load())
	if *onlySeed == 0 && (total.events.Load() == 0 || total.refused.Load() == 0 || total.idle.Load() == 0 || total.collected.Load() == 0) {
		t.Error("the sequences reached too little")
	}
}

// everything is what the server has in the end.
func everything(t *testing.T, server *reality, namespace string) lookup {
	t.Helper()
	all := map[string]m{}
	for _, k := range played() {
		answer, err := server.do(t.Context(), model.Request{Verb: model.VerbList, Resource: k.Resource, Namespace: namespace}, nil)
		if err != nil || answer.status.Code != 0 {
			t.Fatal(err, answer.status)
		}
		for _, item := range answer.body["items"].([]any) {
			name, _, _ := unstructured.NestedString(item.(m), "metadata", "name")
			all[k.Kind.Kind+" "+name] = item.(m)
		}
	}
	return func(_ context.Context, k model.Kind, name string) (m, error) { return all[k.Kind.Kind+" "+name], nil }
}

// played are the kinds with which the sequences play.
func played() []model.Kind {
	all := append(model.BuiltIn(), widget, gadget)
	return slices.DeleteFunc(all, func(k model.Kind) bool { return !k.Namespaced })
}

// tally counts what was compared.
type tally struct{ requests, events, refused, idle, collected atomic.Int64 }

// sequence is one random sequence, and what is known about it.
type sequence struct {
	program
	seed     uint64
	real     *reality
	total    *tally
	log      strings.Builder
	realUID  map[string]string    // by the model's
	modelUID map[string]string    // by the real one
	realRV   map[string]string    // by the model's
	last     map[string][2]string // resource versions in the model and in reality, by the model's UID
	managed  map[string]string    // managed fields in reality, by the model's UID
}

func newSequence(seed uint64, namespace string, against *reality, total *tally) *sequence {
	playable := played()
	server := model.New(model.Options{Seed: seed, Now: time.Now, Kinds: played()})
	random := rand.New(rand.NewPCG(seed, 3))
	random.Shuffle(len(playable), func(i, j int) { playable[i], playable[j] = playable[j], playable[i] })
	return &sequence{
		program: program{
			random: random, server: server, kinds: playable[:kindsTogether], namespace: namespace,
			prefix: fmt.Sprintf("s%d-", seed), stale: map[types.UID][]string{}, garbage: seed%4 == 0,
		},
		seed: seed, real: against, total: total,
		realUID: map[string]string{}, modelUID: map[string]string{}, realRV: map[string]string{}, last: map[string][2]string{}, managed: map[string]string{},
	}
}

// play plays the sequence and returns the first difference.
func (q *sequence) play(ctx context.Context) error {
	for range steps {
		r, k := q.next()
		if err := q.step(ctx, r, k); err != nil {
			return err
		}
	}
	return nil
}

// step sends one request to both.
func (q *sequence) step(ctx context.Context, r model.Request, k model.Kind) error {
	body, err := bodyOf(r, k)
	if err != nil {
		return err
	}
	fmt.Fprintf(&q.log, "%s %s %s/%s %s dryRun=%t labels=%v fields=%v %s\n", r.Verb, r.Resource.Resource, r.Name, r.Subresource, r.PatchType, r.DryRun, r.LabelSelector, r.FieldSelector, body)
	translated, err := q.translate(body)
	if err != nil {
		return err
	}
	before := q.server.ResourceVersion()
	got := q.server.Do(r)
	want, err := q.real.do(ctx, r, translated)
	if err != nil {
		return err
	}
	q.total.requests.Add(1)
	if err := compareStatus(got.Err, want.status); err != nil {
		return errors.Join(err, q.compareState(ctx, q.now, false)) // which may explain it
	}
	switch {
	case got.Err != nil:
		q.total.refused.Add(1)
		return nil //nolint:nilerr // both refused alike
	case r.Verb == model.VerbList:
		return q.compareItems(k, got.Items, want.body["items"].([]any))
	case r.Verb == model.VerbDelete, r.Verb == model.VerbDeleteCollection, r.Subresource == "binding":
		if len(q.server.Garbage()) > 0 {
			break // the real collector may be at work
		}
		if err := q.compareKind(ctx, k, q.now, true); err != nil {
			return err
		}
	default:
		if err := q.compareObject(k, got.Object, want.body, !r.DryRun); err != nil {
			return err
		}
	}
	if q.server.ResourceVersion() == before {
		q.total.idle.Add(1)
		return nil
	}
	return q.collect(ctx)
}

// collect lets the garbage collector of the model work until it rests, and waits for the real one.
func (q *sequence) collect(ctx context.Context) error {
	requests := q.server.Garbage()
	if len(requests) == 0 {
		return nil
	}
	q.total.collected.Add(1)
	for rounds := 0; len(requests) > 0; rounds++ {
		if rounds > 50 {
			return fmt.Errorf("the garbage collector of the model does not come to rest: %v", requests)
		}
		for _, r := range requests {
			answer := q.server.Do(r)
			fmt.Fprintf(&q.log, "  gc: %s %s %s %s: %v\n", r.Verb, r.Resource.Resource, r.Name, r.Patch, answer.Err)
		}
		requests = q.server.Garbage()
	}
	var difference error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, collectorPatience, true, func(ctx context.Context) (bool, error) {
		difference = q.compareState(ctx, q.now, false)
		if errors.Is(difference, errTaken) {
			return false, difference
		}
		return difference == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after garbage collection: %w", errors.Join(difference, err))
	}
	return nil
}
