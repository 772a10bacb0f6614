package hosting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func podsForbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New(why))
}

// noAccount is the answer to a request as an account that was deleted.
func noAccount() error {
	err := apierrors.NewUnauthorized("gone")
	err.ErrStatus.Reason = ServiceAccountNotFound
	return err
}

// The API server of Kubernetes 1.36 sends these messages.
func TestDenial(t *testing.T) {
	role := podsForbidden(`User "system:serviceaccount:ns:web" cannot create resource "pods" in API group "" in the namespace "ns"`)
	for name, c := range map[string]struct {
		err    error
		denied bool
	}{
		"none":          {},
		"other":         {err: errors.New("no idea")},
		"the role":      {err: role, denied: true},
		"wrapped":       {err: fmt.Errorf("create: %w", errors.Join(errors.New("one"), fmt.Errorf("two: %w", role))), denied: true},
		"impersonation": {err: podsForbidden(`User "manager" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns"`), denied: true},
		"no account":    {err: noAccount(), denied: true},
		"finalizers":    {err: podsForbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), denied: true},
		"roles":         {err: podsForbidden(`user "manager" (groups=[]) is attempting to grant RBAC permissions not currently held:`), denied: true},
		"a quota":       {err: podsForbidden("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")},
		"Pod Security":  {err: podsForbidden(`violates PodSecurity "restricted:latest": host namespaces (hostPID=true)`)},
		"a webhook":     {err: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`admission webhook "x" denied the request`))},
		"not found":     {err: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, `a" cannot `)},
	} {
		if got := denial(c.err); (got != nil) != c.denied {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPassesThatAreRefused: the condition is written when the first parent is refused and when the last one is not any
// more, and not for each pass. Other failures do not count.
func TestPassesThatAreRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		fails := map[string]error{"a": errors.New("no idea")}
		w.host(func(h *hosting) {
			h.pass = func(_ context.Context, req reconcile.Request) error {
				mu.Lock()
				defer mu.Unlock()
				return fails[req.Name]
			}
		})
		for _, name := range []string{"a", "b"} {
			if err := w.client.Create(w.ctx, configMap(name)); err != nil {
				t.Fatal(err)
			}
		}
		c := w.describe("one")
		written := 0
		role := func(of string) error {
			return podsForbidden(fmt.Sprintf(`User %q cannot create resource "pods"`, of))
		}
		const runs, refused = "True Running: the controller runs", `False Forbidden: pass over ns/a: pods "web-0" is forbidden: User "a" cannot create resource "pods"`
		for _, step := range []struct {
			name   string
			err    error
			ready  string
			writes int
		}{
			{"b", nil, runs, 1},
			{"a", role("a"), refused, 1},
			{"b", role("b"), refused, 0},
			{"b", nil, refused, 0},
			{"b", role("b"), refused, 0},
			{"a", errors.New("no idea"), strings.ReplaceAll(strings.ReplaceAll(refused, "/a", "/b"), `"a"`, `"b"`), 1},
			{"b", nil, runs, 1},
			{"a", noAccount(), "False ServiceAccountNotFound: pass over ns/a: gone", 1},
			{"a", podsForbidden(`User "m" cannot impersonate resource "serviceaccounts"`), "False ImpersonationForbidden: pass over ns/a: " +
				`pods "web-0" is forbidden: User "m" cannot impersonate resource "serviceaccounts"`, 1},
		} {
			mu.Lock()
			fails[step.name] = step.err
			mu.Unlock()
			o := configMap(step.name)
			o.Data = map[string]string{"step": fmt.Sprint(step)}
			if err := w.client.Update(w.ctx, o); err != nil {
				t.Fatal(err)
			}
			settle(10 * time.Minute)
			if got := w.ready(c); got != step.ready {
				t.Errorf("%v: %s", step, got)
			}
			if n := w.written(); n != written+step.writes {
				t.Errorf("%v: %d writes", step, n-written)
			}
			written = w.written()
		}
		if got, want := w.happened(), "Starting Started Forbidden Forbidden ServiceAccountNotFound ImpersonationForbidden"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
	})
}
