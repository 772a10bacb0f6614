package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file refuses pods for a while, and bounds what a manager may ask for in that time.

// mostCreates bounds the creates of pods that are asked for while none is let through: after n failures in a row the
// work queue waits 5 ms times 2 to the n, so eleven passes take five seconds. An event of a pod wakes the parent before
// its time, and a busy machine counts for longer than it meant to. Who does not wait at all asks hundreds of times.
const mostCreates = 24

// refusal is how long pods are refused.
const refusal = 2 * time.Second

// refusedPods are scenarios of their own: the DaemonSet must come to its end once pods are let through, and not ask in
// a tight loop before.
func refusedPods() []fault.Scenario {
	scenario := func(name string, refuse func(context.Context, *fault.Env) (allow func(context.Context) error, err error)) fault.Scenario {
		return fault.Scenario{
			Name: "daemonset with pods refused by " + name,
			Once: true,
			Drive: func(ctx context.Context, e *fault.Env) error {
				if err := create(ctx, e); err != nil {
					return err
				}
				return whileRefused(ctx, e, refuse)
			},
			Ended: ended("app:2"),
		}
	}
	return []fault.Scenario{
		scenario("a quota", quota),
		scenario("429", func(_ context.Context, e *fault.Env) (func(context.Context) error, error) {
			allow := e.Faults.Refuse(fault.Refusal{Resource: podResource, Verb: "create", Status: http.StatusTooManyRequests})
			return func(context.Context) error { allow(); return nil }, nil
		}),
	}
}

func whileRefused(
	ctx context.Context, e *fault.Env, refuse func(context.Context, *fault.Env) (allow func(context.Context) error, err error),
) error {
	allow, err := refuse(ctx, e)
	if err != nil {
		return err
	}
	if err := patch(imagePatch("app:2"))(ctx, e); err != nil {
		return err
	}
	before := creates(e, true)
	if err := e.Until(ctx, "a pod that is refused", func(context.Context) error {
		if creates(e, false) == 0 {
			return fmt.Errorf("no create of a pod was refused")
		}
		return nil
	}); err != nil {
		return err
	}
	select { // nothing marks the end of a time in which nothing may happen
	case <-time.After(refusal):
	case <-ctx.Done():
	}
	if n := creates(e, true) - before; n > mostCreates {
		return fmt.Errorf("%d pods were asked for in %v although all were refused, want at most %d", n, refusal, mostCreates)
	}
	return allow(ctx)
}

// creates counts the creates of pods: all, or those that were refused.
func creates(e *fault.Env, all bool) (n int) {
	for _, r := range e.Faults.Requests() {
		refused := r.Fault != "" || r.Answer == "403 Forbidden"
		if r.GroupResource == podResource && r.Verb == "create" && (all || refused) {
			n++
		}
	}
	return n
}

// quota lets no pod in. Its status says what the quota controller would find out by and by.
func quota(ctx context.Context, e *fault.Env) (allow func(context.Context) error, err error) {
	quotas := e.Client.CoreV1().ResourceQuotas(e.Namespace)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	q, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	counted := []byte(`{"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}}`) // the controller may be faster
	if _, err := quotas.Patch(ctx, q.Name, types.MergePatchType, counted, metav1.PatchOptions{}, "status"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return quotas.Delete(ctx, q.Name, metav1.DeleteOptions{}) }, nil
}
