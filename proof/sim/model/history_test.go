package model_test

// This file compares the events of the model to those that the real API server's watches show.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// lastObject is the name of the object that is created when the watches may end.
const lastObject = "zz-the-end"

// shown is an event of a watch.
type shown struct {
	Type   string `json:"type"`
	Object m      `json:"object"`
}

// watches collect what happens in a namespace.
type watches struct {
	mutex  sync.Mutex
	events map[string][]shown // by kind and name
	failed error
}

// watchAll starts to watch the kinds with which the sequences play.
func watchAll(t *testing.T, server *reality, namespace string) *watches {
	t.Helper()
	w := &watches{events: map[string][]shown{}}
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for _, k := range played() {
		r := model.Request{Verb: model.VerbList, Resource: k.Resource, Namespace: namespace}
		answer, err := server.do(ctx, r, nil)
		if err != nil || answer.status.Code != 0 {
			t.Fatal(err, answer.status)
		}
		from, _, _ := unstructured.NestedString(answer.body, "metadata", "resourceVersion")
		address := server.host + pathOf(r) + "?watch=1&resourceVersion=" + from
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer response.Body.Close()
			w.read(k.Kind.Kind, bufio.NewReader(response.Body))
		})
	}
	return w
}

// read takes the events of one watch until it ends.
func (w *watches) read(kind string, from *bufio.Reader) {
	decoder := json.NewDecoder(from)
	for {
		var event shown
		if decoder.Decode(&event) != nil {
			return
		}
		name, _, _ := unstructured.NestedString(event.Object, "metadata", "name")
		w.mutex.Lock()
		w.events[kind+" "+name] = append(w.events[kind+" "+name], event)
		if event.Type == "ERROR" {
			w.failed = fmt.Errorf("the watch of %s failed: %v", kind, event.Object)
		}
		w.mutex.Unlock()
	}
}

// finish returns the events once the watches have shown all that was written before.
func (w *watches) finish(t *testing.T, server *reality, namespace string) map[string][]shown {
	t.Helper()
	for _, k := range played() {
		content := fresh(k.Kind.Kind)
		merge(content, m{"metadata": m{"name": lastObject}})
		r := model.Request{Verb: model.VerbCreate, Resource: k.Resource, Namespace: namespace, Object: objectOf(k, content)}
		body, err := bodyOf(r, k)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := server.do(t.Context(), r, body); err != nil || answer.status.Code != 0 {
			t.Fatal(err, answer.status)
		}
	}
	var events map[string][]shown
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, 30*time.Second, true, func(context.Context) (bool, error) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, k := range played() {
			if len(w.events[k.Kind.Kind+" "+lastObject]) == 0 {
				return false, w.failed
			}
		}
		events = maps.Clone(w.events)
		return true, nil
	})
	if err != nil {
		t.Fatalf("wait for the watches: %v", err)
	}
	return events
}

// compareHistory compares the events of a sequence. What the garbage collector does is the same in the end only.
func (q *sequence) compareHistory(events map[string][]shown) (compared int, err error) {
	if q.garbage {
		return 0, nil
	}
	for _, k := range q.kinds {
		for i := range namesPerKind {
			name := fmt.Sprintf("%s%d", q.prefix, i)
			n, err := q.compareEvents(k, name, events[k.Kind.Kind+" "+name])
			if err != nil {
				return compared, fmt.Errorf("%s %s: %w", k.Resource.Resource, name, err)
			}
			compared += n
		}
	}
	return compared, nil
}

// compareEvents compares the events of one name.
func (q *sequence) compareEvents(k model.Kind, name string, theirs []shown) (int, error) {
	want, err := q.visible(k, theirs, true)
	if err != nil {
		return 0, err
	}
	var ours []shown
	for _, event := range q.server.Events() {
		if event.Resource == k.Resource && event.Object.GetName() == name {
			ours = append(ours, shown{string(event.Type), contentOf(event.Object)})
		}
	}
	got, err := q.visible(k, ours, false)
	if err != nil {
		return 0, err
	}
	for i, a := range got {
		if i == len(want) {
			return i, fmt.Errorf("the model has an event more: %s %v", a.Type, a.Object)
		}
		if b := want[i]; a.Type != b.Type || !reflect.DeepEqual(a.Object, b.Object) {
			return i, fmt.Errorf("event %d: the model has %s, the server %s\n%s", i, a.Type, b.Type,
				strings.Join(differences("", a.Object, b.Object), "\n"))
		}
	}
	// A pod that nobody runs is not left alone in the end.
	if len(got) < len(want) && k.Kind.Kind != "Pod" {
		return len(got), fmt.Errorf("the server has an event more: %s %v", want[len(got)].Type, want[len(got)].Object)
	}
	return len(got), nil
}

// visible brings events into the form in which they are compared, and drops those that show nothing new: on the real
// server a write may change nothing but managed fields, and on both it may store what was a default before.
func (q *sequence) visible(k model.Kind, events []shown, theirs bool) ([]shown, error) {
	var kept []shown
	for _, event := range events {
		object, err := q.normal(k, objectOf(k, maps.Clone(event.Object)), theirs)
		if err != nil {
			return nil, err
		}
		if event.Type == "MODIFIED" && len(kept) > 0 && reflect.DeepEqual(kept[len(kept)-1].Object, object) {
			continue
		}
		kept = append(kept, shown{event.Type, object})
	}
	return kept, nil
}
