package lab

// This file plays the kubelet for pods without nodes: 50 ms after a pod came it is Ready. It also knows when all pods
// of a load are as they should be, and when that was so.

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// readyAfter is how long a pod takes to be Ready.
const readyAfter = 50 * time.Millisecond

// Kubelet makes the pods of one namespace Ready. Make one with [StartKubelet].
type Kubelet struct {
	testing.TB

	client kubernetes.Interface

	mu sync.Mutex
	// serving holds the image of each pod that is Ready, by its name; last is when that changed.
	serving map[string]string
	last    time.Time
}

// StartKubelet serves a namespace until the test ends.
func StartKubelet(tb testing.TB, cfg *rest.Config, namespace string) *Kubelet {
	tb.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	k := &Kubelet{TB: tb, client: client, serving: map[string]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.added(ctx, o) },
		UpdateFunc: func(_, o any) { k.updated(o) },
		DeleteFunc: k.deleted,
	}); err != nil {
		tb.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	tb.Cleanup(func() { cancel(); factory.Shutdown() })
	return k
}

func (k *Kubelet) added(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	time.AfterFunc(readyAfter, func() {
		if err := k.ready(ctx, pod); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			k.Errorf("mark pod %s as ready: %v", pod.Name, err)
		}
	})
}

// ready marks one pod, and not another one of its name that came since.
func (k *Kubelet) ready(ctx context.Context, pod *corev1.Pod) error {
	patch, err := json.Marshal(M{
		"metadata": M{"uid": pod.UID},
		"status": M{"phase": corev1.PodRunning, "conditions": []M{{
			"type": corev1.PodReady, "status": corev1.ConditionTrue, "lastTransitionTime": metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (k *Kubelet) updated(o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp != nil {
		return
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			k.note(pod.Name, pod.Spec.Containers[0].Image)
		}
	}
}

func (k *Kubelet) deleted(o any) {
	if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
		k.note(key.Name, "")
	}
}

// note takes down that a pod serves with an image, or with none.
func (k *Kubelet) note(name, image string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.serving[name] == image {
		return
	}
	k.last = time.Now()
	if image == "" {
		delete(k.serving, name)
	} else {
		k.serving[name] = image
	}
}

// Serve returns how many pods are Ready with an image, how many others are, and when any of that changed last.
func (k *Kubelet) Serve(image string) (these, others int, last time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, other := range k.serving {
		if other == image {
			these++
		}
	}
	return these, len(k.serving) - these, k.last
}
