package sandbox

// This file runs the upstream controllers of the kinds that cairn can take over, one by one.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

// upstreamController says how to build the upstream controller of a kind.
type upstreamController struct {
	// name is the controller's, for --controllers.
	name string
	// identity is the service account whose rights it has.
	identity string
	// workers is the upstream default.
	workers int
	build   upstreamBuilder
}

// runner is what all upstream controllers have in common. Run returns when ctx is done and all workers have returned.
type runner interface {
	Run(ctx context.Context, workers int)
}

type upstreamBuilder = func(context.Context, kubernetes.Interface, informers.SharedInformerFactory) (runner, error)

var upstreamControllers = map[string]upstreamController{
	CronJob:               {names.CronJobController, "cronjob-controller", 5, newCronJobs},
	DaemonSet:             {names.DaemonSetController, "daemon-set-controller", 2, newDaemonSets},
	StatefulSet:           {names.StatefulSetController, "statefulset-controller", 5, newStatefulSets},
	ReplicaSet:            {names.ReplicaSetController, "replicaset-controller", 5, newReplicaSets},
	ReplicationController: {names.ReplicationControllerController, "replication-controller", 5, newReplicationControllers},
}

func newCronJobs(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (runner, error) {
	return cronjob.NewControllerV2(ctx, f.Batch().V1().Jobs(), f.Batch().V1().CronJobs(), c)
}

func newDaemonSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (runner, error) {
	return daemon.NewDaemonSetsController(ctx,
		f.Apps().V1().DaemonSets(), f.Apps().V1().ControllerRevisions(), f.Core().V1().Pods(), f.Core().V1().Nodes(),
		c, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
}

func newStatefulSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (runner, error) {
	return statefulset.NewStatefulSetController(ctx,
		f.Core().V1().Pods(), f.Apps().V1().StatefulSets(), f.Core().V1().PersistentVolumeClaims(),
		f.Apps().V1().ControllerRevisions(), c), nil
}

func newReplicaSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (runner, error) {
	return replicaset.NewReplicaSetController(ctx,
		f.Apps().V1().ReplicaSets(), f.Core().V1().Pods(), c, replicaset.BurstReplicas), nil
}

func newReplicationControllers(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (runner, error) {
	return replication.NewReplicationManager(ctx,
		f.Core().V1().Pods(), f.Core().V1().ReplicationControllers(), c, replication.BurstReplicas), nil
}

// RunUpstream runs the upstream controller of kind, one of Kinds, with informers, a client and an identity of its own
// (user system:serviceaccount:kube-system:daemon-set-controller and the like, user agent
// upstream/daemon-set-controller). It returns once the controller's caches are filled. The controller runs until stop
// is called, or the sandbox stops, or ctx is done; stop returns when its workers have returned, so that no write of its
// comes later. stop may be called more than once.
//
// Nothing prevents two controllers from serving one kind: a caller that hands a kind over stops one before it starts
// the other, and names the kind in Options.Replaced, so that Start runs none itself.
func (s *Sandbox) RunUpstream(ctx context.Context, kind string) (stop func(), err error) {
	cfg, err := s.UpstreamConfig(kind)
	if err != nil {
		return nil, err
	}
	return s.RunUpstreamWith(ctx, kind, cfg)
}

// UpstreamConfig returns a configuration with the identity and the rights of the upstream controller of kind, one of
// Kinds.
func (s *Sandbox) UpstreamConfig(kind string) (*rest.Config, error) {
	u, err := upstreamOf(kind)
	if err != nil {
		return nil, err
	}
	return s.controllerConfig(u.identity)
}

func upstreamOf(kind string) (upstreamController, error) {
	u, ok := upstreamControllers[kind]
	if !ok {
		return u, fmt.Errorf("no upstream controller for kind %q; want one of %s", kind, strings.Join(Kinds(), ", "))
	}
	return u, nil
}

// RunUpstreamWith is RunUpstream with a configuration of the caller's, mostly that of UpstreamConfig with a transport
// that listens or injects faults. All requests of the controller go through it.
func (s *Sandbox) RunUpstreamWith(ctx context.Context, kind string, cfg *rest.Config) (stop func(), err error) {
	u, err := upstreamOf(kind)
	if err != nil {
		return nil, err
	}
	if s.options.Binaries != "" {
		return s.runUpstreamProgram(ctx, kind, cfg)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}

	running, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	controller, err := u.build(running, client, factory)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("build the upstream controller for %s: %w", kind, err)
	}
	factory.Start(running.Done())
	c, err := s.launch(running, "the upstream controller for "+kind, func(ctx context.Context) error {
		controller.Run(ctx, u.workers)
		cancel()
		factory.Shutdown()
		return nil
	})
	if err != nil {
		cancel()
		factory.Shutdown()
		return nil, err
	}
	stop = func() {
		c.cancel()
		<-c.done
	}
	for resource, synced := range factory.WaitForCacheSync(running.Done()) {
		if !synced {
			stop()
			return nil, fmt.Errorf("start the upstream controller for %s: the list of %v was not read: %w", kind, resource, context.Cause(running))
		}
	}
	return stop, nil
}
