package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/ownership"
)

// This file is the status of objects without a history: what they report, and of those that are not done the pods that
// they control.

// Alone returns the state of an object by its own status alone, and the reason in one sentence. It makes no requests.
// now is compared with the creation of the object.
func Alone(o *unstructured.Unstructured, now time.Time) (State, string) {
	s := &Status{without: true, childless: true, Conditions: reported(o.Object), rolledBack: inspect.RolledBack(o), now: now}
	s.lags = unobserved(o.Object) != ""
	s.settle(o, nil)
	return s.State, s.Reason
}

// plain is the status of an object without a history. refused is why that could not be read, nil if there is none.
func plain(ctx context.Context, i *inspect.Inspector, parent client.Object, now time.Time, refused error) (*Status, error) {
	gvk, err := i.Client().GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	o, err := object.Fields(parent, gvk)
	if err != nil {
		return nil, err
	}
	s := &Status{
		Parent:  object.Parent{GroupVersionKind: gvk, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()},
		without: true, childless: true, Conditions: reported(o.Object), Counters: counters(o.Object), now: now,
	}
	if refused != nil {
		s.Warnings = append(s.Warnings, fmt.Sprintf("Whether it has a history could not be read: %v.", refused))
	}
	m := &object.Members{}
	if s.settle(o, nil); s.State != Done && o.GetNamespace() != "" {
		if m, err = pods(ctx, i.Client(), o); err != nil {
			return nil, fmt.Errorf("find the pods of %s: %w", s.Parent, err)
		}
		if len(m.Children) > 0 {
			s.Children, s.childless = "pods", false
		}
		s.Warnings = append(s.Warnings, m.Doubts...)
		s.share(&inspect.History{}, m, now)
		s.Shares = nil // there are no revisions
	}
	explain(ctx, i, s, o, m, now)
	return s, nil
}

// pods returns the pods that an object controls. Those that have ended well are not waited for.
func pods(ctx context.Context, c client.Client, parent client.Object) (*object.Members, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	switch err := c.List(ctx, found, client.InNamespace(parent.GetNamespace())); {
	case apierrors.IsForbidden(err):
		return &object.Members{Doubts: []string{fmt.Sprintf("Its pods could not be looked at: %v.", err)}}, nil
	case err != nil:
		return nil, err
	}
	gvk, err := c.GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	out, owner := &object.Members{}, ownership.OwnerOf(parent, gvk.GroupKind())
	for n := range found.Items {
		pod := &found.Items[n]
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if !owner.Controls(pod) || phase == string(corev1.PodSucceeded) {
			continue
		}
		child := metacontroller.Child{GroupKind: schema.GroupKind{Kind: "Pod"}, Name: pod.GetName()}
		out.Children = append(out.Children, object.Member{Child: child, Object: pod, Of: object.Stray, Ready: object.PodsReady(0)})
	}
	return out, nil
}
