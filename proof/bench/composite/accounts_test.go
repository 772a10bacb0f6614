package composite

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file measures what accounts cost: each has caches of its own of what its controllers watch.

// watches counts those that accounts have begun.
var watches atomic.Int64

// countWatches is called for each request to the API server.
func countWatches(r sandbox.Request) {
	if r.Verb == "watch" && strings.HasPrefix(r.User, accountPrefix) {
		watches.Add(1)
	}
}

// kinds are those that each of them watches: parents, pods and revisions.
const kinds = 3

const accountPrefix = "system:serviceaccount:bench-accounts:"

// BenchmarkCompositeAccounts starts a manager on 1,000 pods of 100 parents, with controllers of other parents of the
// same kinds, each with an account of its own.
func BenchmarkCompositeAccounts(b *testing.B) {
	c, p := newManagedCluster(b, load{parents: 100, children: 10})
	c.Create()
	c.Served()
	c.Settled()
	p.Stop()
	others := []byte(`{"spec": {"parentResource": {"labelSelector": {"matchExpressions": [{"key": "of", "operator": "DoesNotExist"}]}}}}`)
	if _, err := c.User.Resource(controllersResource).Patch(b.Context(), c.Namespace, types.MergePatchType, others, metav1.PatchOptions{}); err != nil {
		b.Fatal(err)
	}
	if err := install.Apply(b.Context(), sandboxtest.Get(b).Config(), `
apiVersion: v1
kind: Namespace
metadata: {name: bench-accounts}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bench-accounts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:bench-accounts"}]`); err != nil {
		b.Fatal(err)
	}
	made := 0
	for _, n := range []int{0, 1, 10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for ; made < n; made++ {
				c.beside(fmt.Sprintf("account-%d", made))
			}
			for b.Loop() {
				watches.Store(0)
				before := counted.Read()
				p := startManager(c)
				c.Eventually("all to be watched", func(context.Context) (bool, error) {
					p.Runs()
					return counted.Since(before).Requests["watch pods"] > 0 && watches.Load() >= int64(kinds*made), nil
				})
				for i := range made {
					c.runs(fmt.Sprintf("account-%d", i))
				}
				c.Rested()
				b.ReportMetric(float64(p.Peak())/1e6, "peak-MB")
				b.ReportMetric(float64(watches.Load()), "watches")
				b.ReportMetric(float64(p.Connections()), "connections")
				b.ReportMetric(p.CPU().Seconds(), "cpu-s")
				_, _ = fmt.Fprintf(os.Stdout, "accounts: %d: %d MB, %d watches, %d connections, %.2f s of CPU\n",
					n, p.Peak()/1e6, watches.Load(), p.Connections(), p.CPU().Seconds())
				p.Stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// beside makes a controller of parents that there are none of, with an account of its own.
func (c *cluster) beside(name string) {
	c.Helper()
	controllers := c.User.Resource(controllersResource)
	o, err := controllers.Get(c.Context(), c.Namespace, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	of := &unstructured.Unstructured{Object: m{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": o.Object["spec"]}}
	of.SetName(name)
	of.SetAnnotations(map[string]string{cairn.ServiceAccountAnnotation: "bench-accounts/" + name})
	mine := m{"matchLabels": m{"of": name}}
	if err := unstructured.SetNestedMap(of.Object, mine, "spec", "parentResource", "labelSelector"); err != nil {
		c.Fatal(err)
	}
	if _, err := controllers.Create(c.Context(), of, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := controllers.Delete(context.WithoutCancel(c.Context()), name, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	})
}

// runs waits until a manager says that it runs a controller.
func (c *cluster) runs(name string) {
	c.Helper()
	c.Eventually("the controller to run", func(ctx context.Context) (bool, error) {
		o, err := c.User.Resource(controllersResource).Get(ctx, name, metav1.GetOptions{})
		return err == nil && lab.Condition(o, "Ready") == "True", err
	})
}
