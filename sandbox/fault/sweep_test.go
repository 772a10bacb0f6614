package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/fault"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file sweeps a DaemonSet's way from edit to undo over the real API server, under the roles that are shipped.
//
// CAIRN_CHECK=full makes every request fail in every way; without it four of them do.

const dsName = "swept"

var revisionResource = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}

func TestDaemonSetFromEditToUndoWithEveryFault(t *testing.T) {
	s := sandboxtest.Get(t)
	sweep := sweepOf(t, s)
	report, err := sweep.Run(t.Context(), editAndUndo())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	for _, missed := range report.Missed {
		t.Logf("ended before its fault: %s", missed)
	}
	for i := range report.Failures {
		t.Error(&report.Failures[i])
	}
	if report.Requests < 2*nodes || report.Injected < report.Runs/2 {
		t.Errorf("a sweep that injects this little shows nothing: %v", report)
	}
}

func sweepOf(t *testing.T, s *sandbox.Sandbox) *fault.Sweep {
	t.Helper()
	cfg, err := install.Roles(t.Context(), s.Config(), []string{"daemonset"}, true)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	user := s.Config()
	user.QPS = -1
	sweep := &fault.Sweep{
		User:   user,
		Config: cfg,
		Manager: func(ctx context.Context, cfg *rest.Config) error {
			return manager.Run(ctx, manager.Options{
				Config: cfg, Controllers: []string{"daemonset"}, AskServer: true, Logger: klog.Background(),
				MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off,
			})
		},
		Namespaced: []string{"daemonsets", "pods", "controllerrevisions"},
		Points:     fault.Few,
		Refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: revisionResource, Verb: "create", Status: http.StatusUnprocessableEntity, After: 1, Times: 3},
			{Resource: revisionResource, Verb: "patch", Status: http.StatusInternalServerError, Times: 3},
			{Resource: schema.GroupResource{Resource: "pods"}, Verb: "create", Status: http.StatusForbidden, Times: 4},
			{Resource: schema.GroupResource{Resource: "pods"}, Verb: "delete", Status: http.StatusForbidden, After: 1, Times: 3},
			{Resource: schema.GroupResource{Group: "apps", Resource: "daemonsets"}, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
		Parallel: 4,
		Observe:  observe("2,3"), // the first revision goes from 1 to 3
		Progress: func(line string) { t.Log(line) },
	}
	if os.Getenv("CAIRN_CHECK") == "full" {
		sweep.Points = fault.All
	}
	return sweep
}

// editAndUndo creates a DaemonSet, changes its image, and goes back the way kubectl rollout undo does.
func editAndUndo() fault.Scenario {
	return fault.Scenario{
		Name: "daemonset edit and undo",
		Drive: func(ctx context.Context, e *fault.Env) error {
			c := clientOf(e)
			labels := map[string]string{"app": dsName}
			_, err := c.AppsV1().DaemonSets(e.Namespace).Create(ctx, &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Name: dsName},
				Spec: appsv1.DaemonSetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
					},
					UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{
						MaxUnavailable: new(intstr.FromInt32(2)),
					}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if err := rolledOut(ctx, e, "app:1"); err != nil {
				return err
			}
			if err := patch(ctx, e, imagePatch("app:2")); err != nil {
				return err
			}
			if err := rolledOut(ctx, e, "app:2"); err != nil {
				return err
			}
			revisions, err := revisionsOf(ctx, e)
			if err != nil {
				return err
			}
			return patch(ctx, e, revisions[0].Data.Raw)
		},
		Ended: func(ctx context.Context, e *fault.Env) error { return ended(ctx, e, "app:1") },
	}
}

func imagePatch(image string) []byte {
	return []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}}}`)
}

func clientOf(e *fault.Env) kubernetes.Interface { return kubernetes.NewForConfigOrDie(e.User) }

func patch(ctx context.Context, e *fault.Env, data []byte) error {
	_, err := clientOf(e).AppsV1().DaemonSets(e.Namespace).Patch(ctx, dsName, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	return err
}

func rolledOut(ctx context.Context, e *fault.Env, image string) error {
	return e.Until(ctx, "the rollout of "+image, func(ctx context.Context) error { return ended(ctx, e, image) })
}

// ended returns nil if the DaemonSet says that its rollout is over, and its pods are what was asked for.
func ended(ctx context.Context, e *fault.Env, image string) error {
	ds, err := clientOf(e).AppsV1().DaemonSets(e.Namespace).Get(ctx, dsName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	s := ds.Status
	if s.ObservedGeneration != ds.Generation || s.DesiredNumberScheduled != nodes || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
		return fmt.Errorf("generation %d, status %+v", ds.Generation, s)
	}
	return podsAre(ctx, e, image)
}

// podsAre checks that each node has exactly one pod that is not going, with this image.
func podsAre(ctx context.Context, e *fault.Env, image string) error {
	pods, err := clientOf(e).CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	on := map[string]int{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		on[pod.Spec.NodeName]++
		if got := pod.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("pod %s runs %s, want %s", pod.Name, got, image)
		}
	}
	for node, n := range on {
		if n != 1 {
			return fmt.Errorf("node %q has %d pods", node, n)
		}
	}
	if len(on) != nodes {
		return fmt.Errorf("%d nodes have a pod, want %d", len(on), nodes)
	}
	return nil
}

func revisionsOf(ctx context.Context, e *fault.Env) ([]appsv1.ControllerRevision, error) {
	list, err := clientOf(e).AppsV1().ControllerRevisions(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items, nil
}

// observe checks what is there at the end: H1, H2, H5, P1, P4. The revisions must have the given numbers, if there are
// any given. A checker that sees every state will replace it.
func observe(want string) func(context.Context, *fault.Env) (func(context.Context) error, error) {
	return func(_ context.Context, e *fault.Env) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return atTheEnd(ctx, e, want) }, nil
	}
}

func atTheEnd(ctx context.Context, e *fault.Env, want string) error {
	revisions, err := revisionsOf(ctx, e)
	if err != nil {
		return err
	}
	var errs []error
	var numbers []string
	byData, byNumber := map[string]string{}, map[int64]string{}
	for _, r := range revisions {
		numbers = append(numbers, fmt.Sprint(r.Revision))
		if other := byData[string(r.Data.Raw)]; other != "" {
			errs = append(errs, fmt.Errorf("H1: %s and %s hold the same", other, r.Name))
		}
		if other := byNumber[r.Revision]; other != "" {
			errs = append(errs, fmt.Errorf("H2: %s and %s have the number %d", other, r.Name, r.Revision))
		}
		byData[string(r.Data.Raw)], byNumber[r.Revision] = r.Name, r.Name
	}
	if got := strings.Join(numbers, ","); want != "" && got != want {
		errs = append(errs, fmt.Errorf("H2: the revisions have the numbers %s, want %s", got, want))
	}
	if len(revisions) != 2 {
		errs = append(errs, fmt.Errorf("%d revisions, want 2", len(revisions)))
	} else if !strings.Contains(string(revisions[1].Data.Raw), "app:1") {
		errs = append(errs, fmt.Errorf("the newest revision is not the one that was gone back to: %s", revisions[1].Data.Raw))
	}
	ds, err := clientOf(e).AppsV1().DaemonSets(e.Namespace).Get(ctx, dsName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n := ds.Status.CollisionCount; n != nil {
		errs = append(errs, fmt.Errorf("H5: status.collisionCount is %d", *n))
	}
	return errors.Join(append(errs, podsAre(ctx, e, "app:1"))...)
}

func TestASweepReportsAManagerThatIsWrong(t *testing.T) {
	s := sandboxtest.Get(t)
	user := s.Config()
	user.QPS = -1
	created := func(ctx context.Context, e *fault.Env) error {
		_, err := clientOf(e).CoreV1().ConfigMaps(e.Namespace).Get(ctx, "made", metav1.GetOptions{})
		return err
	}
	sweep := &fault.Sweep{
		User: user, Config: user, Patience: 10 * time.Second,
		// It tries once in its life and believes that what it was told is what happened.
		Manager: func(ctx context.Context, cfg *rest.Config) error {
			c := kubernetes.NewForConfigOrDie(cfg)
			list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, ns := range list.Items {
				if strings.HasPrefix(ns.Name, "fault-") && ns.Status.Phase == corev1.NamespaceActive && ns.DeletionTimestamp == nil {
					made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
					if _, err := c.CoreV1().ConfigMaps(ns.Name).Create(ctx, made, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
						return err
					}
				}
			}
			<-ctx.Done()
			return nil
		},
		Modes: []fault.Mode{fault.Conflict, fault.KillBefore},
	}
	report, err := sweep.Run(t.Context(), fault.Scenario{
		Name: "try once",
		Drive: func(ctx context.Context, e *fault.Env) error {
			return e.Until(ctx, "it is made", func(ctx context.Context) error { return created(ctx, e) })
		},
		Ended: created,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Requests != 1 || report.Runs != 2 || report.Injected != 2 || len(report.Failures) != 1 {
		t.Fatalf("%v", report)
	}
	f := report.Failures[0]
	if f.Mode != fault.Conflict || f.At != 1 || !strings.Contains(f.Request, "create configmaps") || !strings.Contains(f.String(), "the manager ended by itself") {
		t.Errorf("the failure is reported as %v", &f)
	}
}
