package sandbox_test

// This test checks that the sandbox tells of every request.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/sandbox"
)

// counted is the user whose requests are taken down.
const counted = "counted-user"

// heard are the requests of that user.
var heard struct {
	mu       sync.Mutex
	requests []string
}

func hear(r sandbox.Request) {
	if r.User != counted {
		return
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	heard.requests = append(heard.requests, fmt.Sprintf("%s %s/%s/%s %s %s: %d", r.Verb, r.Group, r.Resource, r.Subresource, r.Name, r.Path, r.Code))
}

func TestRequests(t *testing.T) {
	c := newCluster(t)
	cfg, err := c.ConfigFor(counted, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, cfg)
	pods := client.CoreV1().Pods(c.namespace)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=p"}); err != nil {
		t.Fatal(err)
	}
	_, _ = pods.Patch(ctx, "p", types.MergePatchType, []byte("{}"), metav1.PatchOptions{}, "status") // there is none
	_, _ = client.CoordinationV1().Leases(c.namespace).List(ctx, metav1.ListOptions{})
	_, _ = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	path := "/api/v1/namespaces/" + c.namespace + "/pods"
	want := []string{
		"get //  /readyz: 200",
		"list coordination.k8s.io/leases/  /apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases: 200",
		"patch /pods/status p " + path + "/p/status: 404",
		"watch /pods/ p " + path + "?fieldSelector=metadata.name%3Dp&resourceVersion=0&watch=true: 200",
	}
	eventually(t, func(context.Context) string {
		heard.mu.Lock()
		defer heard.mu.Unlock()
		if slices.Equal(slices.Sorted(slices.Values(heard.requests)), want) { // the server tells of two at once in any order
			return ""
		}
		return "got\n" + strings.Join(heard.requests, "\n") + "\nwant\n" + strings.Join(want, "\n")
	})
}
