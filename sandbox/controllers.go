package sandbox

// This file runs the controllers of kube-controller-manager, all but the replaceable kinds (upstream.go) and those that
// need what a sandbox does not have: a cloud, disks, a certificate signer.
//
// It assembles them from the exported parts of the upstream command instead of calling its Run, because Run registers a
// name for its informers that it never releases, so a process could start it only once.

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// omittedControllers are those that this package does not start as part of the controller manager.
var omittedControllers = []string{
	// The replaceable kinds run on their own; see RunUpstream.
	names.CronJobController,
	names.DaemonSetController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.StatefulSetController,
	// No kubelet and no signer: nobody asks for certificates or bootstraps with tokens.
	names.BootstrapSignerController,
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestCleanerController,
	names.CertificateSigningRequestSigningController,
	names.KubeAPIServerClusterTrustBundlePublisherController,
	names.PodCertificateRequestCleanerController,
	names.TokenCleanerController,
	names.LegacyServiceAccountTokenCleanerController,
	// Node addresses are given out by ScaleNodes.
	names.NodeIpamController,
	// No disks are attached, resized or labelled.
	names.PersistentVolumeAttachDetachController,
	names.PersistentVolumeExpanderController,
	names.SELinuxWarningController,
	// No metrics API.
	names.HorizontalPodAutoscalerController,
	// No kubelet plugins, so no devices.
	names.DeviceTaintEvictionController,
	names.ResourceClaimController,
	names.ResourcePoolStatusRequestController,
}

// controllerShutdown bounds how long a stopped controller may take to finish the write in hand.
const controllerShutdown = 2 * time.Second

// runControllers runs the controllers until ctx is done and their workers have returned.
func (s *Sandbox) runControllers(ctx context.Context) error {
	if s.options.Binaries != "" {
		return s.runControllersProgram(ctx)
	}
	root, err := s.ConfigFor("system:kube-controller-manager", mastersName)
	if err != nil {
		return err
	}
	cctx, err := s.newControllerContext(ctx, root)
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	descriptors := app.NewControllerDescriptors()
	// Makes the tokens of secrets of the type service-account-token, a type that nothing creates any more.
	delete(descriptors, names.ServiceAccountTokenController)
	controllers, err := app.BuildControllers(ctx, cctx, descriptors, nil, noHealthChecks{})
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}
	cctx.InformerFactory.Start(ctx.Done())
	defer cctx.InformerFactory.Shutdown()
	cctx.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cctx.InformersStarted)
	// It logs the names of controllers that do not finish in time. That is no failure: they lose the server next, and what
	// they were about to do is done after the next start.
	app.RunControllers(ctx, cctx, controllers, 0, controllerShutdown)
	return nil
}

// controllerFlags are those of kube-controller-manager. It refuses to leave out a controller that it does not know.
func (s *Sandbox) controllerFlags(known func(name string) bool) []string {
	args := []string{
		"--kubeconfig=" + s.file.path,
		"--controllers=*",
		"--secure-port=0",
		"--leader-elect=false",
		"--root-ca-file=" + s.pki.caFile(),
		"--allocate-node-cidrs=false",
		// Simulated nodes send no heartbeats; see nodes.go.
		"--node-monitor-grace-period=" + nodeGracePeriod.String(),
	}
	for _, name := range omittedControllers {
		if known(name) {
			args = append(args, "--controllers=-"+name)
		}
	}
	return args
}

// newControllerContext gives the controllers their settings, clients and informers.
func (s *Sandbox) newControllerContext(ctx context.Context, root *rest.Config) (app.ControllerContext, error) {
	var none app.ControllerContext
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return none, err
	}
	// Names of controllers are checked here, so one that a new release renames is noticed.
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := o.Flags(known, disabled, aliases)
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(s.controllerFlags(func(string) bool { return true })); err != nil {
		return none, err
	}
	config, err := o.Config(ctx, known, disabled, aliases)
	if err != nil {
		return none, err
	}

	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(root), "shared-informers"))
	if err != nil {
		return none, err
	}
	metadataClient, err := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(root), "metadata-informers"))
	if err != nil {
		return none, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, 30*time.Second)

	typed := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	cctx := app.ControllerContext{
		ClientBuilder:   controllerClients{s},
		InformerFactory: typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed,
			metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, metadatainformer.WithTransform(dropManagedFields))),
		ComponentConfig:          config.ComponentConfig,
		RESTMapper:               mapper,
		InformersStarted:         make(chan struct{}),
		ResyncPeriod:             func() time.Duration { return 12 * time.Hour },
		ControllerManagerMetrics: controllersmetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}
	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range config.ComponentConfig.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	cctx.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(
		ctx, metadataClient, mapper, ignored, cctx.ObjectOrMetadataInformerFactory, cctx.InformersStarted)
	return cctx, nil
}

// dropManagedFields frees the memory of a field that no controller reads.
func dropManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// noHealthChecks drops the controllers' health checks: nothing serves them.
type noHealthChecks struct{}

func (noHealthChecks) AddHealthChecker(...healthz.HealthChecker) {}

// controllerClients builds each controller's client with that controller's own identity and rights.
type controllerClients struct{ s *Sandbox }

func (b controllerClients) Config(name string) (*rest.Config, error) {
	return b.s.controllerConfig(name)
}

func (b controllerClients) Client(name string) (kubernetes.Interface, error) {
	cfg, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}

func (b controllerClients) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	cfg, err := b.Config(name)
	if err != nil {
		return nil, err
	}
	return discovery.NewDiscoveryClientForConfig(cfg)
}

// The variants that may not fail panic: they can fail only when the system has no randomness.

func (b controllerClients) ConfigOrDie(name string) *rest.Config { return must(b.Config(name)) }

func (b controllerClients) ClientOrDie(name string) kubernetes.Interface { return must(b.Client(name)) }

func (b controllerClients) DiscoveryClientOrDie(name string) discovery.DiscoveryInterface {
	return must(b.DiscoveryClient(name))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
