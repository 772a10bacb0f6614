package main

import (
	"embed"
	"fmt"
	"path/filepath"
	"strconv"
)

// objects are written as users write them. $IMAGE stands for the image, $NAMESPACE for the namespace, and $READY for
// the time that pods take to be Ready, so that the middle of a rollout is seen.
//
//go:embed objects
var objects embed.FS

// system is a project whose controllers are run, by one process.
type system struct {
	name  string // as WITH says it
	title string // as the table says it
	// module is its module, main the package that is built from it, and manifests the folder with the kustomization that
	// installs it.
	module, main, manifests string
	namespace               string // that it needs, if the manifests do not have it
	// start says how its process is started. It may write files into b.files.
	start func(b *bench) (command, error)
	// certificates is the Secret that a kubelet would mount into b.files for it, as namespace/name, if it needs one.
	certificates string
	kinds        []kind
}

// command is what a process is started with, besides the environment that it inherits.
type command struct{ args, env []string }

// kind is a kind of a system's, and what is known of one object of it.
type kind struct {
	title  string // as the table says it
	file   string // the object, in objects
	object string // what the command line is asked about
	// beside is a file with what is made as well, after it, in objects.
	beside string
	// pods is how many pods are wanted, and each has a container web with the image.
	pods int
	// forgets says that its controller deletes old revisions as soon as a rollout is complete. The third image is then
	// one with which a pod does not become Ready, so that there is something to go back to.
	forgets bool
	// repeats says that its controller makes another revision with the same content when an object goes back, and keeps
	// both, which verify then says.
	repeats bool
	// injects is a word of those changes that its controller makes in a revision by itself.
	injects string
	// shared says that the object does not own its pods.
	shared bool
	note   string // the last column
}

var systems = []system{
	{
		name: "argo-rollouts", title: "Argo Rollouts",
		module: "github.com/argoproj/argo-rollouts", main: "./cmd/rollouts-controller", manifests: "manifests/crds",
		namespace: "argo-rollouts", start: argo,
		kinds: []kind{{
			title: "`Rollout`", file: "rollout.yaml", object: "rollout.argoproj.io/web", pods: 3,
			injects: "podAntiAffinity",
			note:    "scales the ReplicaSet of that revision up again; diff also shows the affinity that is injected",
		}},
	},
	{
		name: "lws", title: "LeaderWorkerSet",
		module: "sigs.k8s.io/lws", main: "./cmd", manifests: "config/default",
		start: leaderWorkerSets, certificates: "lws-system/lws-webhook-server-cert",
		kinds: []kind{{
			title: "`LeaderWorkerSet`", file: "leaderworkerset.yaml", object: "leaderworkerset/web", pods: 4,
			forgets: true, repeats: true,
			note: "while a rollout goes on: after that the controller deletes the older revisions; of the undo it makes a " +
				"second revision with the same content, and verify says so",
		}},
	},
	{
		name: "kruise", title: "OpenKruise",
		module: "github.com/openkruise/kruise", main: ".", manifests: "config/default",
		start: kruise,
		kinds: []kind{
			{
				title: "`CloneSet`", file: "cloneset.yaml", object: "cloneset.apps.kruise.io/web", pods: 3,
				note: "pods updated in place",
			},
			{title: "`StatefulSet`", file: "statefulset.yaml", object: "statefulset.apps.kruise.io/web", pods: 3},
			{title: "`DaemonSet`", file: "daemonset.yaml", object: "daemonset.apps.kruise.io/web", pods: nodes},
			{
				title: "`SidecarSet`", file: "sidecarset.yaml", object: "sidecarset.apps.kruise.io/web", pods: 3,
				beside: "sidecarset-pods.yaml", shared: true, note: "in the pods of a Deployment, updated in place",
			},
			{
				title: "`UnitedDeployment`", file: "uniteddeployment.yaml", object: "uniteddeployment.apps.kruise.io/web",
				pods: 4, note: "of two StatefulSets",
			},
		},
	},
}

// argo starts the controller of Rollouts, which has no webhooks.
func argo(b *bench) (command, error) {
	ports, err := free(2)
	if err != nil {
		return command{}, err
	}
	return command{args: []string{
		"--kubeconfig", b.kubeconfig, "--namespaced=false",
		"--metricsport", strconv.Itoa(ports[0]), "--healthzPort", strconv.Itoa(ports[1]),
	}}, nil
}

// leaderWorkerSets starts the controller of LeaderWorkerSets. It makes its certificate itself, in a Secret.
func leaderWorkerSets(b *bench) (command, error) {
	file, err := b.keep("config.yaml", []byte(fmt.Sprintf(`apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {port: %d, certDir: %q}
internalCertManagement: {enable: true}
`, b.port, b.files)))
	return command{args: []string{"--config", file}}, err
}

// kruise starts OpenKruise's manager, which writes its certificate to a folder and the address into the configurations
// of its webhooks.
func kruise(b *bench) (command, error) {
	return command{
		args: []string{"--metrics-addr=0", "--health-probe-addr=0", "--enable-pprof=false", "--enable-leader-election=false"},
		env: []string{
			"WEBHOOK_HOST=localhost", "WEBHOOK_PORT=" + strconv.Itoa(b.port),
			"WEBHOOK_CERT_DIR=" + filepath.Join(b.files, "certificates"),
		},
	}, nil
}
