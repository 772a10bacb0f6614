package fault_test

import (
	"runtime"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file checks what a watch brings when it is held or cut.

// expect reads the next event and fails the test if it is another one.
func expect(t *testing.T, w watch.Interface, kind watch.EventType, name string) {
	t.Helper()
	event, open := <-w.ResultChan()
	if !open {
		t.Fatalf("the watch ended, want %s %s", kind, name)
	}
	if event.Type != kind || event.Object.(metav1.Object).GetName() != name {
		t.Fatalf("got %v, want %s %s", event, kind, name)
	}
}

func startWatch(t *testing.T, s *server, c kubernetes.Interface) (watch.Interface, *sender) {
	t.Helper()
	w, err := c.CoreV1().ConfigMaps("ns").Watch(t.Context(), watchOption)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w, <-s.watches
}

// held waits until n events have come from the server and are kept. A client reads ahead by one event, so n > 1 shows
// that nothing is read.
func held(t *testing.T, in *fault.Injector, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for in.Held(configMaps) != n {
		if time.Now().After(deadline) {
			t.Fatalf("%d events are held, want %d", in.Held(configMaps), n)
		}
		runtime.Gosched()
	}
}

func TestHoldKeepsEventsUntilTheRelease(t *testing.T) {
	for encoding, mediaType := range eachMedia {
		t.Run(encoding, func(t *testing.T) {
			s := newServer(t)
			in := fault.New(t.Context(), fault.Plan{})
			c := s.client(t, in, mediaType)
			w, server := startWatch(t, s, c)
			server.send(t, watch.Added, "a")
			expect(t, w, watch.Added, "a")

			release := in.Hold(configMaps)
			in.Hold(schema.GroupResource{Resource: "pods"})() // another resource is another matter
			server.send(t, watch.Modified, "a")
			server.send(t, watch.Added, "b")
			late, lateServer := startWatch(t, s, c) // one that begins in the meantime is held too
			lateServer.send(t, watch.Added, "c")
			held(t, in, 3)

			release()
			expect(t, w, watch.Modified, "a")
			expect(t, w, watch.Added, "b")
			expect(t, late, watch.Added, "c")
			server.send(t, watch.Deleted, "b")
			expect(t, w, watch.Deleted, "b")
		})
	}
}

func TestAHeldWatchCanBeStopped(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{})
	w, server := startWatch(t, s, s.client(t, in, mediaTypes[0]))
	in.Hold(configMaps)
	server.send(t, watch.Added, "a")
	server.send(t, watch.Added, "b")
	held(t, in, 2)
	w.Stop()
	for event := range w.ResultChan() {
		t.Errorf("got %v from a watch that was stopped", event)
	}
	<-server.done // the connection ends as well
}

func TestCutEndsAWatchWith410(t *testing.T) {
	for encoding, mediaType := range eachMedia {
		for _, holding := range []bool{false, true} {
			t.Run(encoding, func(t *testing.T) {
				s := newServer(t)
				in := fault.New(t.Context(), fault.Plan{})
				c := s.client(t, in, mediaType)
				w, server := startWatch(t, s, c)
				server.send(t, watch.Added, "a")
				expect(t, w, watch.Added, "a")
				if holding {
					in.Hold(configMaps)
					server.send(t, watch.Added, "lost")
					server.send(t, watch.Added, "lost too")
					held(t, in, 2)
				}
				if n, err := in.Cut(configMaps); n != 1 || err != nil {
					t.Fatalf("cut %d watches, %v", n, err)
				}
				event, open := <-w.ResultChan()
				if !open || event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
					t.Fatalf("got %v, want 410 Expired", event)
				}
				if event, open := <-w.ResultChan(); open {
					t.Errorf("got %v after the end", event)
				}
				<-server.done
				if n, err := in.Cut(configMaps); n != 0 || err != nil {
					t.Errorf("cut %d watches after the end, %v", n, err)
				}
			})
		}
	}
}
