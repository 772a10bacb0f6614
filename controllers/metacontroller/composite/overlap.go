package composite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file reports to both CompositeControllers of a pair that they cannot share their parents: by a condition, while
// it is so. What is done about it, and for which parent, is in sharing.go.

// Overlap is the type of the condition of a CompositeController that cannot share its parents with another one. It is
// True, or absent.
const Overlap = "Overlap"

// The reasons of Overlap: of the older controller, and of the younger one.
const (
	overlapOlder   = "GoesOn"
	overlapYounger = "GivesWay"
)

// overlapEvery is how often parents are searched for that two controllers select: labels of parents may have changed.
const overlapEvery = time.Minute

// overlaps looks at all CompositeControllers at once, one pass at a time.
type overlaps struct {
	env       *host.Environment
	resources watching.Resources
	all       listControllers

	// told is what was written last, and over which version: Metacontroller's CRDs do not keep it.
	told map[types.UID]toldOverlap
}

type toldOverlap struct {
	version string
	want    metav1.Condition
}

// addOverlaps adds to mgr what reports overlaps, enqueued by every change of a CompositeController.
func addOverlaps(mgr ctrl.Manager, env *host.Environment, name string) error {
	options := controller.Options{
		Reconciler:              &overlaps{env: env, resources: env, all: listIn(mgr.GetCache()), told: map[types.UID]toldOverlap{}},
		MaxConcurrentReconciles: 1,
	}
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := controller.NewUnmanaged(name, options)
	if err != nil {
		return err
	}
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
	if err := c.Watch(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.CompositeController{}), once)); err != nil {
		return err
	}
	return mgr.Add(c)
}

// Reconcile compares every two controllers, and writes to each the first that it overlaps with. If one could not be
// compared, its condition stays as it is.
func (o *overlaps) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	all, err := o.all(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b v1alpha1.CompositeController) int {
		if cameFirst(&a, &b) {
			return -1
		}
		return 1
	})
	want, unknown := make([]metav1.Condition, len(all)), make([]bool, len(all))
	var again time.Duration
	var errs []error
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			why, asked, err := o.between(ctx, &all[i], &all[j])
			switch {
			case err != nil:
				errs, unknown[i], unknown[j] = append(errs, err), true, true
			case why != nil && want[i].Type == "":
				want[i] = overlap(overlapOlder, why, all[i].Name, all[j].Name)
			}
			if why != nil && want[j].Type == "" {
				want[j] = overlap(overlapYounger, why, all[i].Name, all[j].Name)
			}
			if asked {
				again = overlapEvery
			}
		}
	}
	maps.DeleteFunc(o.told, func(uid types.UID, _ toldOverlap) bool {
		return !slices.ContainsFunc(all, func(cc v1alpha1.CompositeController) bool { return cc.UID == uid })
	})
	for i := range all {
		if !unknown[i] && (o.env.Selector == nil || o.env.Selector.Matches(labels.Set(all[i].Labels))) {
			errs = append(errs, o.tell(ctx, &all[i], want[i]))
		}
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(errs...)
}

func overlap(reason string, why error, older, younger string) metav1.Condition {
	return metav1.Condition{
		Type: Overlap, Status: metav1.ConditionTrue, Reason: reason,
		Message: fmt.Sprintf("%v. Until then %s, which was created first, stays in charge, and %s does nothing for the parents that both select",
			why, older, younger),
	}
}

// between says why two controllers cannot share parents that both select. asked says that the API server was asked
// whether there are any, so that the answer may change later. A controller that cannot run overlaps with none.
func (o *overlaps) between(ctx context.Context, a, b *v1alpha1.CompositeController) (why error, asked bool, err error) {
	if a.DeletionTimestamp != nil || !sameParents(a, b) {
		return nil, false, nil
	}
	one, errA := readSettings(a, o.resources)
	two, errB := readSettings(b, o.resources)
	if errA != nil || errB != nil {
		return nil, false, nil // their conditions Ready say so
	}
	if why = clash(a, b, one.parent.Namespaced); why == nil {
		return nil, false, nil
	}
	ofA, ofB := a.Spec.ParentResource.LabelSelector, b.Spec.ParentResource.LabelSelector
	switch {
	case ofA == nil || ofB == nil || apiequality.Semantic.DeepEqual(ofA, ofB):
		return why, false, nil
	case disjoint(ofA.MatchLabels, ofB.MatchLabels):
		return nil, false, nil
	}
	both := one.selector
	requirements, _ := two.selector.Requirements()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(one.parent.Kind.GroupVersion().WithKind(one.parent.Kind.Kind + "List"))
	ctx, done := context.WithCancel(ctx)
	defer done()
	env, err := o.env.For(ctx, a)
	if _, cannotRun := errors.AsType[*hosting.Error](err); cannotRun {
		return nil, false, nil // as above
	}
	if err != nil {
		return nil, true, fmt.Errorf("look for parents of both %s and %s: %w", a.Name, b.Name, err)
	}
	err = env.Live.List(ctx, list, client.MatchingLabelsSelector{Selector: both.Add(requirements...)}, client.Limit(1))
	switch {
	case meta.IsNoMatchError(err):
		return nil, true, nil
	case err != nil:
		return nil, true, fmt.Errorf("look for parents of both %s and %s: %w", a.Name, b.Name, err)
	case len(list.Items) == 0:
		return nil, true, nil
	}
	return why, true, nil
}

// disjoint reports whether no object can have both sets of labels: the usual way to divide parents among controllers.
func disjoint(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; ok && other != value {
			return true
		}
	}
	return false
}

// tell writes the condition if it differs, and removes it if there is nothing to report.
func (o *overlaps) tell(ctx context.Context, cc *v1alpha1.CompositeController, want metav1.Condition) error {
	conditions := slices.Clone(cc.Status.Conditions)
	var changed bool
	if want.Type == "" {
		changed = meta.RemoveStatusCondition(&conditions, Overlap)
	} else {
		want.ObservedGeneration = cc.Generation
		now := want
		now.LastTransitionTime = metav1.NewTime(o.env.Clock.Now())
		changed = meta.SetStatusCondition(&conditions, now)
	}
	told := toldOverlap{cc.ResourceVersion, want}
	if !changed || o.told[cc.UID] == told {
		return nil
	}
	if conditions == nil {
		conditions = []metav1.Condition{}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": cc.UID, "resourceVersion": cc.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return err
	}
	target := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: cc.Name}}
	err = o.env.Client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, body))
	if err := client.IgnoreNotFound(err); err != nil { // a conflict as well: the event of the other write enqueues it
		return fmt.Errorf("write status of CompositeController %s: %w", cc.Name, err)
	}
	o.told[cc.UID] = told
	return nil
}
