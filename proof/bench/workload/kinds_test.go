package workload

// This file is what is compared: the programs, and the kinds.

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// subject is a program that runs a controller of a kind.
type subject struct {
	name, program string
	arguments     func(k *workload) []string
}

// floor, upstream and cairn are the programs; cairn, the last one, is compared with the others.
var (
	floor    = subject{"floor", "github.com/cairn-dev/cairn/proof/bench/workload/cmd/floor", func(k *workload) []string { return []string{k.name} }}
	upstream = subject{
		"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager",
		func(k *workload) []string {
			return []string{
				"--kubeconfig=" + lab.Kubeconfig, "--controllers=" + k.name + "-controller", "--leader-elect=false", "--secure-port=0",
				"--kube-api-qps=10000", "--kube-api-burst=10000", // cairn has no limit of its own
			}
		},
	}
	cairn = subject{"cairn", lab.Cairn, func(k *workload) []string {
		args := []string{
			"manager", "--controllers=" + k.name, "--leader-elect=false", "--metrics-bind-address=off", "--health-probe-bind-address=off",
		}
		if at := os.Getenv(lab.ProfileVariable); at != "" {
			args = append(args, "--pprof-bind-address="+at)
		}
		return args
	}}
	all = []subject{floor, upstream, cairn}
)

// phase is what is measured at once.
type phase struct {
	name string
	do   func(c *lab.Cluster)
}

// workload is a kind, and what is done with it.
type workload struct {
	name string
	// variant tells two workloads of one kind apart.
	variant     string
	kind        lab.Kind
	subjects    []subject
	loads, full []lab.Load
	nodes       bool // a pod is wanted for each node
	phases      []phase
}

// pods reports whether pods are what is made.
func (k *workload) pods() bool { return k.kind.Resource.Group == appsv1.GroupName }

// simple reports whether the floor can do it: there are no other objects than pods.
func (k *workload) simple() bool { return len(k.subjects) == len(all) }

func (k *workload) title() string { return strings.TrimSpace(k.name + " " + k.variant) }

var (
	created = phase{"created", (*lab.Cluster).Create}
	rolled  = phase{"rolled", (*lab.Cluster).Edit}
	toZero  = phase{"scaled to 0", func(c *lab.Cluster) {
		c.Load.Children = 0
		c.Patch(types.MergePatchType, `{"spec":{"replicas":0}}`)
	}}
)

var kinds = []*workload{
	{
		name: "daemonset", nodes: true, subjects: all, loads: one(200), full: one(500, 1000, 4000),
		kind: kind("DaemonSet", "daemonsets", nil, lab.M{
			"updateStrategy": lab.M{"type": "RollingUpdate", "rollingUpdate": lab.M{"maxUnavailable": "10%"}},
		}, "desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable"),
		phases: []phase{created, rolled},
	},
	{
		name: "statefulset", subjects: all, loads: one(60), full: one(300),
		kind: kind("StatefulSet", "statefulsets", replicas, lab.M{"podManagementPolicy": "Parallel"},
			"replicas", "updatedReplicas", "availableReplicas"),
		phases: []phase{created, rolled},
	},
	{
		name: "statefulset", variant: "OrderedReady, 2 claims", subjects: all[1:], loads: nil, full: one(300),
		kind: kind("StatefulSet", "statefulsets", replicas, lab.M{
			"podManagementPolicy": "OrderedReady", "volumeClaimTemplates": []any{claim("data"), claim("log")},
		}, "replicas", "updatedReplicas", "availableReplicas"),
		phases: []phase{created, rolled},
	},
	{
		name: "replicaset", subjects: all, loads: one(300), full: one(2000),
		kind:   kind("ReplicaSet", "replicasets", replicas, nil, "replicas", "availableReplicas"),
		phases: []phase{created, toZero},
	},
	{
		name: "cronjob", subjects: all[1:], loads: []lab.Load{{Parents: 100}}, full: []lab.Load{{Parents: 1000}},
		kind: cronJobs, phases: []phase{fired},
	},
}

// claim is a template of a claim.
func claim(name string) lab.M {
	return lab.M{
		"metadata": lab.M{"name": name},
		"spec":     lab.M{"accessModes": []any{"ReadWriteOnce"}, "resources": lab.M{"requests": lab.M{"storage": "1Gi"}}},
	}
}

// cronJobs fire each minute. Their Jobs are suspended: pods are not what is measured.
var cronJobs = lab.Kind{
	Resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"),
	Parent: func(parent string, _ int) lab.M {
		pod := lab.PodSpec(1)
		pod["restartPolicy"] = "Never"
		return lab.M{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": lab.M{"name": parent}, "spec": lab.M{
			"schedule":    "* * * * *",
			"jobTemplate": lab.M{"spec": lab.M{"suspend": true, "template": lab.M{"spec": pod}}},
		}}
	},
	Updated: func(o *unstructured.Unstructured) bool {
		at, _, _ := unstructured.NestedString(o.Object, "status", "lastScheduleTime")
		active, _, _ := unstructured.NestedSlice(o.Object, "status", "active")
		return at != "" && len(active) == 1
	},
}

// fired is the first minute of CronJobs, which are made a while before it.
var fired = phase{"fired", func(c *lab.Cluster) {
	const before = 15 * time.Second
	c.Eventually("the time before a minute", func(context.Context) (bool, error) {
		now := time.Now()
		left := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
		return left > before && left < before+10*time.Second, nil
	})
	c.Create()
}}

// one is loads of one parent, with so many pods.
func one(children ...int) (out []lab.Load) {
	for _, n := range children {
		out = append(out, lab.Load{Parents: 1, Children: n})
	}
	return out
}

func replicas(children int) lab.M { return lab.M{"replicas": int64(children)} }

// kind is a kind of apps/v1. It is up to date when the counters in its status are as many as the first of them.
func kind(name, resource string, sized func(int) lab.M, more lab.M, counters ...string) lab.Kind {
	return lab.Kind{
		Resource: appsv1.SchemeGroupVersion.WithResource(resource),
		Parent: func(parent string, children int) lab.M {
			labels := lab.M{"parent": parent}
			spec := lab.M{
				"selector": lab.M{"matchLabels": labels},
				"template": lab.M{"metadata": lab.M{"labels": labels}, "spec": lab.PodSpec(1)},
			}
			maps.Copy(spec, more)
			if sized != nil {
				maps.Copy(spec, sized(children))
			}
			return lab.M{"apiVersion": "apps/v1", "kind": name, "metadata": lab.M{"name": parent}, "spec": spec}
		},
		Updated: func(o *unstructured.Unstructured) bool {
			want, counted, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			for _, counter := range counters {
				n, _, _ := unstructured.NestedInt64(o.Object, "status", counter)
				if !counted {
					want, counted = n, true
				}
				if n != want {
					return false
				}
			}
			seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return seen == o.GetGeneration()
		},
	}
}

// needNodes makes as many nodes as are wanted, which are Ready and run nothing.
func needNodes(tb testing.TB, want int) {
	tb.Helper()
	cfg := sandboxtest.Get(tb).Config()
	cfg.QPS = -1
	nodes := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes()
	var group errgroup.Group
	group.SetLimit(16)
	for n := range want {
		group.Go(func() error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", n)}}
			_, err := nodes.Create(tb.Context(), node, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			if err != nil {
				return err
			}
			ready := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
			_, err = nodes.Patch(tb.Context(), node.Name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
}
