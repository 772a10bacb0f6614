package calibrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file is the same sweep that cairn's controllers pass, over the upstream StatefulSet controller. Nobody tells it
// which write is the one: with CAIRN_CHECK=full every one fails, without it every create of a revision.

// Number 16 once more.
func TestTheSweepFindsThatTheCurrentRevisionIsDeleted(t *testing.T) {
	s := sandboxtest.Get(t)
	user := s.Config()
	user.QPS = -1
	cfg, err := s.UpstreamConfig(sandbox.StatefulSet)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	sweep := &fault.Sweep{
		User: user, Config: cfg, Namespaced: namespaced, Kinds: []check.Kind{parents.StatefulSet()}, Scopes: parents.StatefulSet().Scopes(),
		Manager: func(ctx context.Context, cfg *rest.Config) error {
			stop, err := s.RunUpstreamWith(ctx, sandbox.StatefulSet, cfg)
			if err != nil {
				return err
			}
			<-ctx.Done()
			stop()
			return nil
		},
		Modes: []fault.Mode{}, Slots: make(chan struct{}, 8),
	}
	for n := range 4 {
		sweep.Aimed = append(sweep.Aimed, fault.Fault{
			At: n + 1, Mode: fault.ServerError, Resource: schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, Verb: "create",
		})
	}
	if os.Getenv("CAIRN_CHECK") == "full" {
		sweep.Modes = []fault.Mode{fault.ServerError}
	}
	report, err := sweep.Run(t.Context(), restarted())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report.Summary(), report.Requests, report.Missed)
	found := map[string][]string{}
	for _, f := range report.Failures {
		if f.Err != nil {
			t.Error(&f)
		}
		for _, v := range f.Violations {
			if !byName(v) && !slices.Contains(found[v.Invariant], f.Run) {
				found[v.Invariant] = append(found[v.Invariant], f.Run)
				t.Log(f.Run, f.Request, v)
			}
		}
	}
	if len(found["H3"]) == 0 {
		t.Error("no run broke H3")
	}
	// What comes of it: the pod below the partition is made from the update revision (P5), or, where the cache of the
	// upstream controller still shows it the deleted one, from that (P4).
	if len(found["P5"]) == 0 && len(found["P4"]) == 0 {
		t.Error("no run broke P5 or P4")
	}
	for invariant, runs := range found {
		if slices.ContainsFunc(runs, func(run string) bool { return strings.HasSuffix(run, "no fault") }) {
			t.Errorf("without a fault, %s is reported", invariant)
		}
	}
}

// restarted is a StatefulSet with a partition that is edited three times, the last time while nobody looks.
func restarted() fault.Scenario {
	edit := func(ctx context.Context, e *fault.Env, image string) error {
		_, err := e.Client.AppsV1().StatefulSets(e.Namespace).
			Patch(ctx, "web", types.StrategicMergePatchType, []byte(imagePatch(image)), metav1.PatchOptions{})
		return err
	}
	ended := func(ctx context.Context, e *fault.Env, image string) error {
		set, err := e.Client.AppsV1().StatefulSets(e.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := set.Status; s.ObservedGeneration < set.Generation || s.Replicas != 2 || s.AvailableReplicas != 2 || s.UpdatedReplicas == 0 {
			return fmt.Errorf("generation %d, status %v", set.Generation, s.String())
		}
		pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, "web-1", metav1.GetOptions{})
		if err == nil && pod.Spec.Containers[0].Image != image {
			err = errors.New("web-1 runs " + pod.Spec.Containers[0].Image)
		}
		return err
	}
	return fault.Scenario{
		Name: "edited while the controller restarts",
		Drive: func(ctx context.Context, e *fault.Env) error {
			_, err := e.Client.AppsV1().StatefulSets(e.Namespace).Create(ctx, &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Name: "web"},
				Spec: appsv1.StatefulSetSpec{
					Replicas: new(int32(2)), Selector: selector(), Template: template("app:1"), RevisionHistoryLimit: new(int32(1)),
					UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
						RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))},
					},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			for _, image := range []string{"app:1", "app:2", "app:3"} {
				if err := edit(ctx, e, image); err != nil {
					return err
				}
				if err := e.Until(ctx, "the rollout of "+image, func(ctx context.Context) error { return ended(ctx, e, image) }); err != nil {
					return err
				}
			}
			e.Stop()
			if err := edit(ctx, e, "app:4"); err != nil {
				return err
			}
			if err := e.Client.CoreV1().Pods(e.Namespace).Delete(ctx, "web-0", metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := e.Until(ctx, "the end of web-0", func(ctx context.Context) error {
				if _, err := e.Client.CoreV1().Pods(e.Namespace).Get(ctx, "web-0", metav1.GetOptions{}); err == nil {
					return errors.New("web-0 is still there")
				}
				return nil
			}); err != nil {
				return err
			}
			e.Start(ctx)
			return nil
		},
		Ended: func(ctx context.Context, e *fault.Env) error { return ended(ctx, e, "app:4") },
	}
}
