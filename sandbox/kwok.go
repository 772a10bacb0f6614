package sandbox

// This file runs KWOK, which plays the kubelets of all nodes: it moves pods and nodes from stage to stage as the files
// in stages/ say.

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
)

// Annotations on a pod or, where it says so, on a node, that steer what the simulated kubelet does with it. They take
// effect when they are set on a live object too. The package comment has the details.
const (
	// ReadyAnnotation, "false", makes a pod run without being Ready, and a node not Ready.
	ReadyAnnotation = "sandbox.cairn.dev/ready"
	// ReadyAfterAnnotation is the time between a pod's containers running and the pod being Ready, as a Go duration.
	ReadyAfterAnnotation = "sandbox.cairn.dev/ready-after"
	// PhaseAnnotation, "Failed" or "Succeeded", ends a pod in that phase.
	PhaseAnnotation = "sandbox.cairn.dev/phase"
	// DeleteAfterAnnotation is how long a pod takes to end once it has been deleted, as a Go duration.
	DeleteAfterAnnotation = "sandbox.cairn.dev/delete-after"
	// StuckAnnotation, "true", keeps a deleted pod Terminating.
	StuckAnnotation = "sandbox.cairn.dev/stuck"
	// BrokenImage, anywhere in the name of a container's image, makes it an image that cannot be pulled.
	BrokenImage = "broken"
)

// kubeletParallelism is the number of pods, and of nodes, that KWOK updates at the same time.
const kubeletParallelism = 8

//go:embed stages/*.yaml
var stageFiles embed.FS

// runKubelets runs KWOK until ctx is done.
func (s *Sandbox) runKubelets(ctx context.Context) error {
	stages, err := loadStages(s.options.ReadyAfter)
	if err != nil {
		return err
	}
	cfg, err := s.ConfigFor("sandbox-kubelets", mastersName)
	if err != nil {
		return err
	}
	binary := rest.CopyConfig(cfg)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	wrap, err := endedOnly(rest.CopyConfig(binary))
	if err != nil {
		return err
	}
	binary.Wrap(wrap)
	client, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx = log.NewContext(ctx, log.NewLogger(&sink, log.LevelWarn))
	kwok, err := controllers.NewController(controllers.Config{
		Clock:                     clock.RealClock{},
		TypedClient:               client,
		DynamicClient:             untyped,
		RESTClient:                client.Discovery().RESTClient(),
		RESTMapper:                restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		ManageAllNodes:            true,
		CIDR:                      podRange,
		LocalStages:               stages,
		NodePlayStageParallelism:  kubeletParallelism,
		PodPlayStageParallelism:   kubeletParallelism,
		PodsOnNodeSyncParallelism: 1,
		ID:                        "sandbox",
	})
	if err != nil {
		return fmt.Errorf("configure KWOK: %w", err)
	}
	if err := kwok.Start(ctx); err != nil {
		return fmt.Errorf("start KWOK: %w", err)
	}
	<-ctx.Done()
	return nil
}

// isSlow is how the stages of pods ask whether a pod takes its time to be Ready.
const isSlow = `(.metadata.annotations["` + ReadyAfterAnnotation + `"] != null) as $slow`

// loadStages reads the embedded stages, by the kind of object they apply to. Pods that do not say how long they take
// are ready after a time, at once if it is zero.
func loadStages(readyAfter time.Duration) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	files, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, err
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, file := range files {
		raw, err := stageFiles.ReadFile(path.Join("stages", file.Name()))
		if err != nil {
			return nil, err
		}
		slow := readyAfter > 0 && bytes.Contains(raw, []byte(isSlow))
		if slow {
			raw = bytes.ReplaceAll(raw, []byte(isSlow), []byte("true as $slow"))
		}
		stage, err := config.UnmarshalWithType[*internalversion.Stage](raw)
		if err != nil {
			return nil, fmt.Errorf("stages/%s: %w", file.Name(), err)
		}
		if slow && stage.Spec.Delay != nil {
			stage.Spec.Delay.DurationMilliseconds = new(readyAfter.Milliseconds())
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}

// nodeConditions are those with which a simulated node is created, so that nobody waits for its kubelet.
func nodeConditions() []corev1.NodeCondition {
	return []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated kubelet is ready"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
	}
}
