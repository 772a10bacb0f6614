// Package lab is one namespace of a real API server in which everything is recorded, with a test around it: what goes
// wrong fails the test.
//
// Who runs in the namespace, and what is done to it, is the tests' own business and may not come in here.
package lab

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// patience is how long a condition may take to become true on a busy machine.
const patience = time.Minute

// Lab is one recorded namespace of the test binary's sandbox.
type Lab struct {
	*testing.T

	Sandbox   *sandbox.Sandbox
	Namespace string
	// User is the client of an administrator.
	User *kubernetes.Clientset
	// Wire logs what goes through it: give Wire.Wrap to the clients of the controllers under test.
	Wire *recording.Wire

	recorder *recording.Recorder
}

// New makes a namespace and records it until the test ends. actor is the name by which the wire calls the controllers
// under test; the binary's TestMain calls sandboxtest.Main.
func New(t *testing.T, actor string, scopes []check.Scope) *Lab {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg := s.Config()
	cfg.QPS = -1
	l := &Lab{T: t, Sandbox: s, Namespace: sandboxtest.Namespace(t, s), Wire: &recording.Wire{User: actor}}
	var err error
	if l.User, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	clean, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if l.recorder, err = recording.Record(context.WithoutCancel(t.Context()), clean, []string{l.Namespace}, scopes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.recorder.Stop)
	return l
}

// Eventually waits until f succeeds. A wait that does not end fails the test with the last error.
func (l *Lab) Eventually(what string, f func(context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		l.Fatalf("%s: %v", what, last)
	}
}

// Sync returns the moment up to which the history is complete now. It takes about two seconds.
func (l *Lab) Sync() uint64 {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	rv, err := l.recorder.Sync(ctx)
	if err != nil {
		l.Fatal(err)
	}
	return rv
}

// History is what happened up to the last Sync, and who did it. The test fails if anything is missing, or if the
// controllers made a child or a revision that nobody saw.
func (l *Lab) History() *check.History {
	l.Helper()
	h, err := l.recorder.History()
	if err != nil {
		l.Fatal(err)
	}
	entries := slices.DeleteFunc(l.Wire.Entries(), func(e check.Entry) bool { return e.Namespace != l.Namespace })
	seen := map[uint64]bool{}
	for _, e := range h.Events {
		seen[e.RV] = true
	}
	for _, e := range h.Attach(entries, func(e *check.Entry) bool { return e.User == l.Wire.User }) {
		// What changed nothing has the version of an earlier event, or of one before the history.
		if (e.Resource == "pods" || e.Resource == "controllerrevisions") && e.RV > h.Origin && e.RV <= h.Complete && !seen[e.RV] {
			l.Errorf("no event belongs to %+v", e)
		}
	}
	return h
}

// Silent fails the test for each violation.
func (l *Lab) Silent(violations []check.Violation) {
	l.Helper()
	for _, v := range violations {
		l.Error(v)
	}
}

// Invariants are the names of the promises that were broken, in the order of the first violation of each.
func Invariants(violations []check.Violation) string {
	var out []string
	for _, v := range violations {
		if !slices.Contains(out, v.Invariant) {
			out = append(out, v.Invariant)
		}
	}
	return strings.Join(out, " ")
}
