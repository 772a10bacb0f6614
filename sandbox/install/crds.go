package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
)

// CRDs applies the shipped custom resource definitions as an administrator, and returns when the API server serves all
// of their resources. When ctx ends first it returns the last thing that the API server said.
func CRDs(ctx context.Context, admin *rest.Config) error {
	if err := Apply(ctx, admin, deploy.CRDs()); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), cairn.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", admin.Host, err)
	}
	for _, list := range []client.ObjectList{
		&v1alpha1.CompositeControllerList{}, &v1alpha1.DecoratorControllerList{}, &v1alpha1.ControllerRevisionList{}, &cairn.HistoryPolicyList{},
	} {
		var last error
		if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			last = c.List(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{Limit: 1}})
			return last == nil, nil
		}); err != nil {
			return fmt.Errorf("wait until %T is served: %w (the last answer was: %w)", list, err, last)
		}
	}
	return nil
}
