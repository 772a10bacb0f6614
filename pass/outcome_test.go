package pass_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

func TestOutcomeUnknown(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(pods, "web", errors.New("exceeded quota"))
	failed := apierrors.NewInternalError(errors.New("etcd"))
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                      {nil, false},
		"a refusal":                     {forbidden, false},
		"a wrapped refusal":             {fmt.Errorf("create: %w", forbidden), false},
		"a conflict":                    {apierrors.NewConflict(pods, "web", errors.New("changed")), false},
		"too many requests":             {apierrors.NewTooManyRequestsError("later"), false},
		"the server failed":             {failed, true},
		"it took too long":              {apierrors.NewTimeoutError("slow", 1), true},
		"a lost answer":                 {&url.Error{Op: "Post", URL: "/", Err: errors.New("EOF")}, true},
		"we gave up":                    {fmt.Errorf("create: %w", context.DeadlineExceeded), true},
		"one of several":                {errors.Join(forbidden, failed), true},
		"several refusals":              {errors.Join(forbidden, forbidden), false},
		"several, wrapped, one is open": {fmt.Errorf("act: %w", errors.Join(forbidden, fmt.Errorf("x: %w", failed))), true},
		"a status without a code":       {&apierrors.StatusError{}, false},
		"a stale read":                  {fmt.Errorf("%w: changed", ownership.ErrStale), false},
		"a stale read and a failure":    {errors.Join(ownership.ErrStale, failed), true},
		"a parent that is gone":         {fmt.Errorf("web: %w", ownership.ErrGone), false},
		"a proxy failed": {apierrors.NewGenericServerResponse(
			http.StatusBadGateway, "post", pods, "web", "", 0, true), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pass.OutcomeUnknown(c.err); got != c.want {
				t.Errorf("OutcomeUnknown(%v) = %v", c.err, got)
			}
		})
	}
}

func TestOverQuota(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":               {nil, false},
		"an exhausted quota":     {fmt.Errorf("create: %w", apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: few"))), true},
		"a quota without counts": {apierrors.NewForbidden(pods, "web", errors.New("status unknown for quota: few")), true},
		"a policy":               {apierrors.NewForbidden(pods, "web", errors.New("denied by a policy")), false},
		"a policy about quotas":  {apierrors.NewForbidden(pods, "web", errors.New("a webhook denied the request: exceeded quota: see the wiki")), false},
		"a validation error":     {apierrors.NewBadRequest("exceeded quota"), false},
	} {
		if got := pass.OverQuota(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
