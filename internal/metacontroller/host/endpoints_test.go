package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestEndpoints: API servers are looked up once in a while, and not known while that fails.
func TestEndpoints(t *testing.T) {
	sliceResource := schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	asked, failed, ready := 0, error(nil), []string{"10.1.1.1", "10.1.1.2"}
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	e := &endpoints{clock: now, get: func(_ context.Context, name string, _ metav1.GetOptions) (*discoveryv1.EndpointSlice, error) {
		asked++
		if name != "kubernetes" {
			t.Errorf("asked for %q", name)
		}
		return &discoveryv1.EndpointSlice{
			Endpoints: []discoveryv1.Endpoint{{Addresses: ready}}, Ports: []discoveryv1.EndpointPort{{Port: new(int32(6443))}, {}},
		}, failed
	}}
	for _, step := range []struct {
		after time.Duration
		fails error
		want  []string
		says  string
		asked int
	}{
		{want: []string{"10.1.1.1:6443", "10.1.1.2:6443"}, asked: 1},
		{after: endpointsFor - 1, want: []string{"10.1.1.1:6443", "10.1.1.2:6443"}, asked: 1},
		{after: 1, fails: errors.New("no answer"), says: "no answer", asked: 2},
		{fails: apierrors.NewForbidden(sliceResource, "kubernetes", nil), says: "grant the manager", asked: 3},
		{fails: apierrors.NewNotFound(sliceResource, "kubernetes"), asked: 4},
		{after: endpointsFor, want: []string{"10.1.1.1:6443", "10.1.1.2:6443"}, asked: 5},
	} {
		now.SetTime(now.Now().Add(step.after))
		failed = step.fails
		got, err := e.list(t.Context())
		if !slices.Equal(got, step.want) || asked != step.asked {
			t.Errorf("%+v: %q, asked %d times", step, got, asked)
		}
		if (err == nil) != (step.says == "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}
