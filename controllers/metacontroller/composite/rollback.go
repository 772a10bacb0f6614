package composite

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollback"
)

// This file lets a failed rollout be rolled back with the rights of the controller's account, which may not read
// CompositeControllers: the one that it is about is known.

// rollBackWith returns rollBack, nil if that is nil, for parents of this controller.
func (s *settings) rollBackWith(rollBack pass.RollBack) pass.RollBack {
	if rollBack == nil {
		return nil
	}
	return func(ctx context.Context, c client.Client, live client.Reader, parent client.Object, f rollback.Failure) (string, error) {
		return rollBack(ctx, c, itself{live, s.declared}, parent, f)
	}
}

// itself is an API server that has one CompositeController.
type itself struct {
	client.Reader

	declared *v1alpha1.CompositeController
}

// List implements [client.Reader].
func (r itself) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if all, ok := list.(*v1alpha1.CompositeControllerList); ok {
		all.Items = []v1alpha1.CompositeController{*r.declared.DeepCopy()}
		return nil
	}
	return r.Reader.List(ctx, list, opts...)
}
