package fault_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file checks what one request that fails looks like from both of its ends.

func TestEachModeLooksLikeTheRealThing(t *testing.T) {
	dead := func(err error) bool { return errors.Is(err, fault.ErrDead) }
	for _, test := range []struct {
		mode fault.Mode
		is   func(error) bool
	}{
		{fault.RequestLost, utilnet.IsConnectionRefused},
		{fault.ResponseLost, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{fault.Conflict, apierrors.IsConflict},
		{fault.Rejected, apierrors.IsTooManyRequests},
		{fault.ServerError, apierrors.IsInternalError},
		{fault.Hang, utilnet.IsTimeout},
		{fault.KillBefore, dead},
		{fault.KillAfter, dead},
	} {
		for encoding, mediaType := range eachMedia {
			t.Run(test.mode.String()+"/"+encoding, func(t *testing.T) {
				s := newServer(t)
				in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 2, Mode: test.mode}}, HangFor: time.Millisecond})
				maps := s.client(t, in, mediaType).CoreV1().ConfigMaps("ns")
				if got, err := maps.Create(t.Context(), configMap("first"), metav1.CreateOptions{}); err != nil || got.Name != "first" {
					t.Fatalf("the request before the fault: %v, %v", got, err)
				}
				if _, err := maps.Create(t.Context(), configMap("second"), metav1.CreateOptions{}); !test.is(err) {
					t.Errorf("the error is %T %v", errors.Unwrap(err), err)
				}
				want := []string{"POST /api/v1/namespaces/ns/configmaps"}
				if test.mode.Sends() {
					want = append(want, want[0])
				}
				if got := s.requests(); !slices.Equal(got, want) {
					t.Errorf("the server got %q, want %q", got, want)
				}
				_, err := maps.Create(t.Context(), configMap("third"), metav1.CreateOptions{})
				if test.mode.Kills() != (err != nil) {
					t.Errorf("the request after the fault: %v", err)
				}
				lines := in.Requests()
				if second := lines[1]; second.Index != 2 || second.Name != "second" || second.Fault != test.mode.String() ||
					(second.Answer == "201 Created") != test.mode.Sends() {
					t.Errorf("the log says %+v", second)
				}
				if in.Hits() != 1 {
					t.Errorf("%d hits, want 1", in.Hits())
				}
			})
		}
	}
}

func TestThrottledIsSentAgainByTheClient(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.Throttled}}, RetryAfter: time.Millisecond})
	began := time.Now()
	if _, err := s.client(t, in, runtime.ContentTypeJSON).CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("client-go gave up: %v", err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was sent again after %v, want the second that it was told to wait", took)
	}
	if in.Count() != 2 || len(s.requests()) != 1 {
		t.Errorf("counted %d requests, %d arrived; want 2 and 1", in.Count(), len(s.requests()))
	}
}

// TestBusy: what hangs, and what is to be sent again later, is under way although nothing is to be seen of it.
func TestBusy(t *testing.T) {
	for _, mode := range []fault.Mode{fault.Throttled, fault.Hang} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newServer(t)
			in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: mode}}, HangFor: time.Second})
			if in.Busy() {
				t.Error("it is busy before the first request")
			}
			maps, ended := s.client(t, in, runtime.ContentTypeJSON).CoreV1().ConfigMaps("ns"), make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
			}()
			eventually(t, "it is busy", in.Busy)
			select {
			case <-ended:
				t.Error("the request is over")
			default:
			}
			<-ended
			eventually(t, "it rests", func() bool { return !in.Busy() })
		})
	}
}

// TestBusyByItsOwnWords: a manager that says that it waits for its caches is busy for that long, whatever else it logs.
func TestBusyByItsOwnWords(t *testing.T) {
	in := fault.New(t.Context(), fault.Plan{})
	log := in.Start(t.Context()).Logger(klog.Background()).WithName("daemonset").WithValues("name", "web")
	log.V(1).Info("Something else", "after", time.Hour, "reason", fault.RetryAfter)
	if in.Busy() {
		t.Error("it is busy, and does not wait")
	}
	log.V(1).Info("Dropped a pass", "reason", "stale", fault.RetryAfter, 500*time.Millisecond)
	if !in.Busy() {
		t.Error("it waits, and is not busy")
	}
	eventually(t, "it rests", func() bool { return !in.Busy() })
}

// TestStarts: a process is starting until it watches what the one before it did, whatever it writes meanwhile.
func TestStarts(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{})
	begin := func(open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
		w, err := open(t.Context(), watchOption)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	var got []bool
	look := func() { got = append(got, in.Starts()) }
	client := func() corev1client.CoreV1Interface { return s.client(t, in, runtime.ContentTypeJSON).CoreV1() }
	look()
	first := client()
	begin(first.ConfigMaps("ns").Watch)
	look()
	begin(first.Pods("ns").Watch)
	look()
	in.Kill()
	look()
	in.Start(t.Context())
	look()
	second := client()
	_, _ = second.ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	begin(second.Pods("ns").Watch)
	look()
	begin(second.ConfigMaps("ns").Watch)
	look()
	if want := []bool{true, false, false, true, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("it starts: %v, want %v", got, want)
	}
}

func TestOnlyWhatCountsIsCounted(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{})
	c := s.client(t, in, runtime.ContentTypeProtobuf)
	ctx := t.Context()
	dry := []string{metav1.DryRunAll}

	_, _ = c.CoreV1().ConfigMaps("ns").Get(ctx, "a", metav1.GetOptions{})
	_, _ = c.CoreV1().ConfigMaps("ns").List(ctx, metav1.ListOptions{})
	_, _ = c.CoreV1().ConfigMaps("ns").Create(ctx, configMap("a"), metav1.CreateOptions{DryRun: dry})
	_ = c.CoreV1().ConfigMaps("ns").Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry})
	_, _ = c.CoreV1().Events("ns").Create(ctx, &corev1.Event{}, metav1.CreateOptions{})
	_, _ = c.CoordinationV1().Leases("ns").Create(ctx, &coordinationv1.Lease{}, metav1.CreateOptions{})
	_, _ = c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{})
	if in.Count() != 0 || in.Log() != "" {
		t.Errorf("counted %d:\n%s", in.Count(), in.Log())
	}

	_, _ = c.CoreV1().ConfigMaps("ns").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}, metav1.CreateOptions{})
	_, _ = c.CoreV1().ConfigMaps("ns").Update(ctx, configMap("a"), metav1.UpdateOptions{})
	_, _ = c.CoreV1().Pods("ns").Patch(ctx, "p", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
	_ = c.CoreV1().ConfigMaps("ns").Delete(ctx, "a", metav1.DeleteOptions{})
	_ = c.AppsV1().DaemonSets("ns").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	want := []string{
		"  1 create configmaps ns/some-*: 201 Created",
		"  2 update configmaps ns/a: 200 OK",
		"  3 patch pods/status ns/p: 200 OK",
		"  4 delete configmaps ns/a: 200 OK",
		"  5 deletecollection daemonsets.apps ns/: 200 OK",
	}
	if got := strings.Split(strings.TrimRight(in.Log(), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("the log is\n%s\nwant\n%s", in.Log(), strings.Join(want, "\n"))
	}
}

func TestAPlanMayCountLess(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{
		Faults: []fault.Fault{{At: 1, Mode: fault.Conflict}},
		Count:  func(r fault.Request) bool { return r.Namespace == "mine" },
	})
	c := s.client(t, in, runtime.ContentTypeJSON)
	if _, err := c.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("a request that does not count failed: %v", err)
	}
	if err := c.CoreV1().ConfigMaps("mine").Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("the first one that counts: %v", err)
	}
}

func TestAKilledProcessDoesNothingMore(t *testing.T) {
	s := newServer(t)
	in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.KillBefore}}})
	process := in.Start(t.Context())
	first := s.client(t, in, runtime.ContentTypeJSON)
	w, err := first.CoreV1().ConfigMaps("ns").Watch(t.Context(), watchOption)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = first.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	<-process.Context().Done()
	if !process.Killed() {
		t.Error("its context ended, and it was not killed")
	}
	for event := range w.ResultChan() { // it must end
		t.Errorf("the watch goes on: %v", event)
	}
	if _, err := first.CoreV1().ConfigMaps("ns").Get(t.Context(), "a", metav1.GetOptions{}); !errors.Is(err, fault.ErrDead) {
		t.Errorf("a dead process reads: %v", err)
	}
	before := len(s.requests())

	again := in.Start(t.Context())
	second := s.client(t, in, runtime.ContentTypeJSON)
	if _, err := second.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the next process: %v", err)
	}
	if _, err := first.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("b"), metav1.CreateOptions{}); !errors.Is(err, fault.ErrDead) {
		t.Errorf("the first process is alive again: %v", err)
	}
	if got := len(s.requests()) - before; got != 1 || in.Count() != 2 || again.Killed() {
		t.Errorf("%d requests arrived, %d counted, killed %v; want 1, 2, false", got, in.Count(), again.Killed())
	}
}

func TestTheEndOfAContextIsNoKill(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	process := fault.New(t.Context(), fault.Plan{}).Start(ctx)
	cancel()
	<-process.Context().Done()
	if process.Killed() {
		t.Error("a manager that was asked to stop counts as killed")
	}
}

func TestAHangEndsWithItsContextOrItsProcess(t *testing.T) {
	for name, end := range map[string]func(cancel func(), in *fault.Injector){
		"context": func(cancel func(), _ *fault.Injector) { cancel() },
		"process": func(_ func(), in *fault.Injector) { in.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			in := fault.New(t.Context(), fault.Plan{Faults: []fault.Fault{{At: 1, Mode: fault.Hang}}, HangFor: time.Hour})
			c := s.client(t, in, runtime.ContentTypeJSON)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := c.CoreV1().ConfigMaps("ns").Create(ctx, configMap("a"), metav1.CreateOptions{})
				done <- err
			}()
			end(cancel, in)
			if err := <-done; err == nil {
				t.Error("a request that hangs succeeded")
			}
			if got := s.requests(); len(got) != 0 {
				t.Errorf("the server got %q", got)
			}
		})
	}
}

func TestARefusalIsForOneResourceAndVerb(t *testing.T) {
	for _, test := range []struct {
		status int
		is     func(error) bool
	}{
		{http.StatusForbidden, apierrors.IsForbidden},
		{http.StatusUnprocessableEntity, apierrors.IsInvalid},
		{http.StatusServiceUnavailable, apierrors.IsServiceUnavailable},
	} {
		for _, mediaType := range mediaTypes {
			s := newServer(t)
			in := fault.New(t.Context(), fault.Plan{Refusals: []fault.Refusal{{Resource: configMaps, Verb: "create", Status: test.status, After: 1, Times: 2}}})
			c := s.client(t, in, mediaType)
			create := func() error {
				_, err := c.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
				return err
			}
			got := []bool{test.is(create()), test.is(create()), test.is(create()), test.is(create())}
			if want := []bool{false, true, true, false}; !slices.Equal(got, want) {
				t.Errorf("%d: refused %v, want %v", test.status, got, want)
			}
			if err := c.CoreV1().ConfigMaps("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Errorf("%d: a delete: %v", test.status, err)
			}
			if in.Hits() != 2 {
				t.Errorf("%d: %d hits, want 2", test.status, in.Hits())
			}

			allow := in.Refuse(fault.Refusal{Resource: schema.GroupResource{Resource: "configmaps"}, Status: test.status})
			if err := c.CoreV1().ConfigMaps("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); !test.is(err) {
				t.Errorf("%d: a delete while everything is refused: %v", test.status, err)
			}
			allow()
			if err := create(); err != nil {
				t.Errorf("%d: after the end of the refusal: %v", test.status, err)
			}
		}
	}
}
