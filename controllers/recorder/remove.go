package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/revision"
)

// This file carries out whenDeleted: Delete. A policy that has our finalizer is kept until its revisions are deleted.

// removeRetry is how long a removal waits that could not be completed.
const removeRetry = 5 * time.Second

// finalizer gives a policy our finalizer, or takes it away. It costs no request if that is as it should be.
func (f *factory) finalizer(ctx context.Context, policy *v1alpha1.HistoryPolicy, wanted bool) error {
	has := slices.Contains(policy.Finalizers, v1alpha1.PolicyFinalizer)
	if has == wanted {
		return nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(policy.Finalizers), func(f string) bool { return f == v1alpha1.PolicyFinalizer })
	if wanted {
		finalizers = append(finalizers, v1alpha1.PolicyFinalizer)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": policy.UID, "resourceVersion": policy.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return err
	}
	target := &v1alpha1.HistoryPolicy{}
	target.Name = policy.Name
	err = f.manager.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("set the finalizer of HistoryPolicy %s: %w", policy.Name, err)
	}
	return nil
}

// remover is the controller of a policy that is terminating: it records nothing, and removes what is to be removed.
func (f *factory) remover(policy *v1alpha1.HistoryPolicy) *hosting.Controller {
	out := &hosting.Controller{Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})}
	if slices.Contains(policy.Finalizers, v1alpha1.PolicyFinalizer) {
		out.Sources = append(out.Sources, source.Func(func(ctx context.Context, _ watching.Queue) error {
			go f.removing(ctx, policy)
			return nil
		}))
	}
	return out
}

// removing tries until the revisions are deleted, or ctx ends.
func (f *factory) removing(ctx context.Context, policy *v1alpha1.HistoryPolicy) {
	for {
		err := f.remove(ctx, policy)
		if err == nil || ctx.Err() != nil {
			return
		}
		log.FromContext(ctx).Error(err, "The revisions of a policy could not be deleted", "policy", policy.Name)
		select {
		case <-ctx.Done():
			return
		case <-f.Clock.After(removeRetry):
		}
	}
}

// wrote reports whether a revision was made by this very policy, and no controller but that of what is recorded has it
// now. A label with the policy's name says neither: an earlier policy may have had that name, and anybody may set it.
func wrote(policy types.UID, o client.Object) bool {
	if o.GetAnnotations()[v1alpha1.PolicyUIDAnnotation] != string(policy) {
		return false
	}
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return true
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return o.GetLabels()[kindLabel] == revision.LabelValue(kind.String())
}

// remove deletes all revisions that the policy has made, and then takes the finalizer away.
func (f *factory) remove(ctx context.Context, policy *v1alpha1.HistoryPolicy) error {
	var found appsv1.ControllerRevisionList // past the cache: one that it does not show would stay
	if err := f.manager.live.List(ctx, &found, client.MatchingLabels{v1alpha1.PolicyLabel: revision.LabelValue(policy.Name)}); err != nil {
		return err
	}
	var errs []error
	for i := range found.Items {
		r := &found.Items[i]
		if !wrote(policy.UID, r) {
			continue
		}
		err := f.manager.client.Delete(ctx, r, client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete revision %s/%s: %w", r.Namespace, r.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	current := &v1alpha1.HistoryPolicy{}
	if err := f.manager.live.Get(ctx, client.ObjectKeyFromObject(policy), current); err != nil || current.UID != policy.UID {
		return client.IgnoreNotFound(err)
	}
	return f.finalizer(ctx, current, false)
}
