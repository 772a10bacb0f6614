// Package sandbox runs Kubernetes in one process: etcd, kube-apiserver, kube-scheduler, the controllers of
// kube-controller-manager, and simulated nodes (KWOK). It is the cluster that `make sandbox` gives to a newcomer and
// the API server that the integration tests run against.
//
//	s, err := sandbox.Start(ctx, sandbox.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Stop(context.Background())
//	client, err := kubernetes.NewForConfig(s.Config())
//
// Tests use package sandboxtest, which shares one sandbox between the tests of a binary.
//
// # What is real
//
// Everything that stores, admits, defaults, authorises, schedules and controls is the released code, with its default
// settings, and one admission plugin more: OwnerReferencesPermissionEnforcement. RBAC is on and anonymous requests are
// refused. Each controller has the user name, and so the rights, of its service account in a real cluster; the
// scheduler is system:kube-scheduler; the shared informers of the controllers and the simulated kubelets are in
// system:masters.
//
// CronJobs, DaemonSets, StatefulSets, ReplicaSets and ReplicationControllers are served by controllers that run on
// their own, so that each can be replaced by cairn's (Options.Replaced, Options.Manager), left alone
// (Options.Upstream), or started and stopped by a test (RunUpstream). A test can also take the API server or etcd away
// for a while (RestartAPIServer, RestartEtcd).
//
// Another version of Kubernetes runs as programs of its own beside etcd and the simulated nodes (Options.Binaries).
//
// # What is not
//
// Nodes and pods are objects whose status is written by KWOK; no container runs, and logs, exec and port-forward fail.
// Nodes send no heartbeats, and no lease expires: at rest, nothing but the API server's own identity lease is written.
// A claim of the default storage class, [StorageClass], is bound to a volume with nothing behind it. There are no
// volumes to attach, no metrics API, no certificate signer, no cloud. Controllers for these do not run.
//
// # How a simulated pod behaves
//
// A pod that was bound to a node is Running and Ready some milliseconds later, a pod of a Job then Succeeded, and a pod
// that was deleted is gone some milliseconds later, whatever its grace period. A readiness gate counts: the pod is
// Ready when the gate's condition is True, and setting the condition is up to whoever defined the gate. When the image
// of a container changes, the container restarts with it. Annotations on the pod change this. They work on a live pod
// too: setting, changing or removing one has the effect that it would have had from the start.
//
//	sandbox.cairn.dev/ready: "false"         runs, and is not Ready until the annotation changes
//	sandbox.cairn.dev/ready-after: "2s"      Ready this long after it runs, and after each restart (Options.ReadyAfter is the
//	                                         time of pods without it)
//	sandbox.cairn.dev/phase: Failed          ends in this phase, with exit code 1; Succeeded: with exit code 0
//	sandbox.cairn.dev/delete-after: "2s"     goes away this long after it was deleted
//	sandbox.cairn.dev/stuck: "true"          does not go away when deleted, except with grace period 0
//
// A container whose image has "broken" anywhere in its name waits with reason ErrImagePull, and the pod is Pending, or
// what it was before, and not Ready, until the image changes.
//
// On a node, sandbox.cairn.dev/ready: "false" makes it NotReady, with all that follows: taints at once, evictions after
// the tolerated time.
//
// # What is shared
//
// Kubernetes keeps feature gates, metrics and its logger in global variables. So there is one sandbox per process at a
// time (it can be started again after Stop), klog writes to the sandbox's log as soon as the first one was started, and
// a component that calls klog.Fatal ends the sandbox instead of the process.
//
// # Security
//
// The API server listens on 127.0.0.1 only, with TLS, and wants a client certificate or a service-account token. etcd
// listens on a unix socket in a directory of mode 0700. Nothing else listens. Keys are made at the first start and kept
// in the data directory, in files of mode 0600; the kubeconfig has mode 0600 too, and the rights of an administrator.
package sandbox

import "github.com/cairn-dev/cairn/sandbox/internal/kubeversion"

// KubernetesVersion is the Kubernetes release that the sandbox runs.
const KubernetesVersion = kubeversion.Version
