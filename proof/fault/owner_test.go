package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file waits until the API server knows a kind that was just defined.

// canOwn waits until CatSets can be owners. The plugin that guards blockOwnerDeletion looks for new kinds every 30 s
// only, and refuses what it does not know: a sweep that counted those requests would aim its faults at requests that
// never come. cfg is the manager's, whose rights the plugin looks at.
func canOwn(t *testing.T, cfg *rest.Config) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(cfg)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "owned-", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: catset.Kind.GroupVersion().String(), Kind: catset.Kind.Kind, Name: "nobody", UID: "1", BlockOwnerDeletion: new(true),
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	var refused error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, refused = client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused == nil, nil
	})
	if err != nil {
		t.Fatal(fmt.Errorf("wait until a CatSet can be an owner: %w: %w", err, refused))
	}
}
