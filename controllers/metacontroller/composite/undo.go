package composite

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/pass"
)

// This file lets a failed rollout be undone with the rights of the controller's account, which may not read
// CompositeControllers: the one that it is about is known.

// undoWith returns undo, nil if that is nil, for parents of this controller.
func (s *settings) undoWith(undo pass.Undo) pass.Undo {
	if undo == nil {
		return nil
	}
	return func(ctx context.Context, f pass.Failure) (string, error) {
		f.Live = itself{f.Live, s.declared}
		return undo(ctx, f)
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
