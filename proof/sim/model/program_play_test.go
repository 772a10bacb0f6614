package model_test

// This file plays random sequences to the model alone.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// alone plays a sequence without a real server, and returns the model.
func alone(t *testing.T, seed uint64, each func(s *model.Server)) *model.Server {
	t.Helper()
	start := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	ticks := 0
	server := model.New(model.Options{Seed: seed, Kinds: append(model.BuiltIn(), widget, gadget), Now: func() time.Time {
		return start.Add(time.Duration(ticks) * time.Second)
	}})
	p := program{
		random: rand.New(rand.NewPCG(seed, 5)), server: server, kinds: played(), namespace: "default", prefix: "x-",
		stale: map[types.UID][]string{}, garbage: true,
	}
	for range 60 {
		ticks++
		r, _ := p.next()
		server.Do(r)
		for rounds := 0; len(server.Garbage()) > 0; rounds++ {
			if rounds > 50 {
				t.Fatalf("seed %d: the garbage collector does not come to rest: %v", seed, server.Garbage())
			}
			for _, collect := range server.Garbage() {
				server.Do(collect)
			}
		}
		each(server)
	}
	return server
}

func encoded(t *testing.T, object client.Object) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTheSameRequestsGiveTheSameHistory plays each sequence twice.
func TestTheSameRequestsGiveTheSameHistory(t *testing.T) {
	for seed := range uint64(40) {
		first, second := alone(t, seed, func(*model.Server) {}), alone(t, seed, func(*model.Server) {})
		a, b := first.Events(), second.Events()
		if len(a) != len(b) {
			t.Fatalf("seed %d: %d events, then %d", seed, len(a), len(b))
		}
		for i := range a {
			if a[i].RV != b[i].RV || a[i].Type != b[i].Type || encoded(t, a[i].Object) != encoded(t, b[i].Object) {
				t.Fatalf("seed %d: event %d is %s, then %s", seed, i, encoded(t, a[i].Object), encoded(t, b[i].Object))
			}
		}
	}
}

// TestWhatIsStoredNeverChanges looks at every object that was ever stored after all later requests.
func TestWhatIsStoredNeverChanges(t *testing.T) {
	for seed := range uint64(40) {
		var then []string
		server := alone(t, seed, func(s *model.Server) {
			for _, event := range s.Events()[len(then):] {
				then = append(then, encoded(t, event.Object))
			}
		})
		for i, event := range server.Events() {
			if now := encoded(t, event.Object); now != then[i] {
				t.Fatalf("seed %d: event %d was\n%s\nand is now\n%s", seed, i, then[i], now)
			}
		}
	}
}

// TestTheHistoryLeadsToTheState replays the events, and compares to lists of old states.
func TestTheHistoryLeadsToTheState(t *testing.T) {
	server := alone(t, 7, func(*model.Server) {})
	type name struct{ resource, name string }
	state := map[name]string{}
	for i, event := range server.Events() {
		if event.RV != uint64(i+1) {
			t.Fatalf("event %d has resource version %d", i, event.RV)
		}
		if rv := event.Object.GetResourceVersion(); rv != fmt.Sprint(event.RV) {
			t.Fatalf("the object of event %d has resource version %s", i, rv)
		}
		n := name{event.Resource.Resource, event.Object.GetName()}
		before, existed := state[n]
		if existed != (event.Old != nil) || (existed && encoded(t, event.Old) != before) {
			t.Fatalf("event %d: %s was %q, the event says %v", i, n, before, event.Old)
		}
		state[n] = encoded(t, event.Object)
		if event.Type == "DELETED" {
			delete(state, n)
		}
		for _, k := range played() {
			var want []string
			for n, object := range state {
				if n.resource == k.Resource.Resource {
					want = append(want, object)
				}
			}
			items, err := server.ListAt(k.Resource, "default", event.RV)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range items {
				got = append(got, encoded(t, item))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s at %d: got %v, want %v", k.Resource.Resource, event.RV, got, want)
			}
		}
	}
}
