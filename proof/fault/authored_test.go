package fault_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/authored"
)

// This file is the sweep's subject of a controller that somebody made with package builder. Its parents are
// StatefulSets, and it runs under the role of their controller.

func authors() subject {
	return authorsOf("authored", parents.Authored(), authored.Setup, authoredAndBack(), authoredBesideABrokenOne())
}

// surges is the subject of the one whose pods are named by revision.
func surges() subject {
	return authorsOf("surging", parents.Surging(), authored.SetupSurging, surgingAndBack(), surgingBesideABrokenOne())
}

// adder adds a controller to a manager.
type adder func(ctx context.Context, mgr ctrl.Manager) error

func authorsOf(name string, k check.Kind, add adder, scenarios ...fault.Scenario) subject {
	return subject{
		controller: "statefulset", name: name,
		kinds: []check.Kind{k}, scopes: k.Scopes(), namespaced: k.Namespaced(),
		scenarios: scenarios,
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 1, Resource: revisionResource, Verb: "create", Times: 2},
			{Mode: fault.Unseen, At: 1, Resource: podResource, Verb: "create", Times: 3},
			{Mode: fault.KillStale, At: 1, Resource: podResource, Verb: "delete", Times: 3},
		},
		refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, Times: 4},
			{Resource: podResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
			{Resource: statefulSetResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
		prepare: func(_ *testing.T, sweep *fault.Sweep) { sweep.Manager = add.run },
	}
}

// run is the author's own main.
func (add adder) run(ctx context.Context, cfg *rest.Config) error {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Logger:     klog.FromContext(ctx),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return err
	}
	if err := add(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// authoredAndBack changes app:1 to app:2, and goes back.
func authoredAndBack() fault.Scenario {
	return fault.Scenario{
		Name: "authored edited and undone",
		Drive: steps(
			createSet(func(*appsv1.StatefulSetSpec) {}),
			editSet(imagePatch("app:2"), "app:2", "app:2"),
			undo(patchSet),
		),
		Ended:  setEnded("app:1", "app:1"),
		AtRest: setHistoryIs("2=app:2 3=app:1"),
	}
}

// authoredBesideABrokenOne loses a pod beside one of a revision that does not start. It comes back as it was.
func authoredBesideABrokenOne() fault.Scenario {
	// A place whose deletion was refused comes last.
	stopped := either(podsHave("swept-0=app:1", "swept-1=broken:2-"), podsHave("swept-0=broken:2-", "swept-1=app:1"))
	return fault.Scenario{
		Name:  "authored loses a pod beside a broken one",
		Share: 5,
		Drive: steps(
			createSet(func(*appsv1.StatefulSetSpec) {}),
			patchSet(imagePatch("broken:2")),
			until("the broken pod", stopped),
			losePodBeside("broken:2"),
			until("the pod that was lost, as it was", stopped),
			patchSet(imagePatch("app:3")),
		),
		Ended:  setEnded("app:3", "app:3"),
		AtRest: setHistoryIs("1=app:1 2=broken:2 3=app:3"),
	}
}

// surgingAndBack changes app:1 to app:2, to app:3 in the middle of that, and goes back.
func surgingAndBack() fault.Scenario {
	begun := recordedAre(2)
	ended := surgingPodsAre("swept-0=app:3 swept-1=app:3")
	return fault.Scenario{
		Name: "surging edited, edited again and undone",
		Drive: steps(
			createSurging,
			patchSet(imagePatch("app:2")),
			until("the second revision", begun),
			patchSet(imagePatch("app:3")),
			until("the rollout of app:3", ended),
			undo(patchSet),
		),
		Ended:  surgingEnded,
		AtRest: setHistoryIs("2=app:2 3=app:3 4=app:1"),
	}
}

// surgingBesideABrokenOne loses a pod beside a surge to a revision that does not start. It comes back as it was, and so
// does what the surge was for, without a restart.
func surgingBesideABrokenOne() fault.Scenario {
	stopped := either( // a place where a creation was refused comes last
		surgingPodsAre("swept-0=app:1 swept-1=app:1 swept-1=broken:2-"), surgingPodsAre("swept-0=app:1 swept-0=broken:2- swept-1=app:1"),
	)
	return fault.Scenario{
		Name:  "surging loses a pod beside a broken one",
		Share: 5,
		Drive: steps(
			createSurging,
			patchSet(imagePatch("broken:2")),
			until("the broken pod beside the old one", stopped),
			losePodBeside("broken:2"),
			until("the pod that was lost, as it was", stopped),
			patchSet(imagePatch("app:1")),
		),
		Ended:  surgingEnded,
		AtRest: setHistoryIs("2=broken:2 3=app:1"),
	}
}

// either returns nil if one of two steps does.
func either(one, other step) step {
	return func(ctx context.Context, e *fault.Env) error {
		first := one(ctx, e)
		if first == nil {
			return nil
		}
		if err := other(ctx, e); err != nil {
			return errors.Join(first, err)
		}
		return nil
	}
}

// losePodBeside deletes a pod at another place than the pod with an image.
func losePodBeside(image string) step {
	place := func(pod *corev1.Pod) string { return cmp.Or(pod.Annotations[builder.PlaceAnnotation], pod.Name) }
	return func(ctx context.Context, e *fault.Env) error {
		pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		with := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.Containers[0].Image == image })
		beside := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return with >= 0 && place(&pod) != place(&pods.Items[with]) })
		if beside < 0 {
			return fmt.Errorf("no pod is beside one with image %s", image)
		}
		return losePod(pods.Items[beside].Name)(ctx, e)
	}
}

// createSurging makes a set of two pods that may have one more, and none less.
func createSurging(ctx context.Context, e *fault.Env) error {
	set := newSet(func(spec *appsv1.StatefulSetSpec) { spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} })
	if _, err := e.Client.AppsV1().StatefulSets(e.Namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until("the first pods", surgingPodsAre("swept-0=app:1 swept-1=app:1"))(ctx, e)
}

// recordedAre returns nil if there are so many revisions.
func recordedAre(want int) step {
	return func(ctx context.Context, e *fault.Env) error {
		revisions, err := revisionsOf(ctx, e)
		if err == nil && len(revisions) != want {
			err = fmt.Errorf("there are %d revisions, want %d", len(revisions), want)
		}
		return err
	}
}

// surgingEnded returns nil if both pods are of app:1, and the status says so: it is written once in a second.
func surgingEnded(ctx context.Context, e *fault.Env) error {
	return errors.Join(surgingPodsAre("swept-0=app:1 swept-1=app:1")(ctx, e), setSays("app:1", "app:1")(ctx, e))
}

// surgingPodsAre returns nil if the places have these pods, with a minus for one that is not ready.
func surgingPodsAre(want string) step {
	return func(ctx context.Context, e *fault.Env) error {
		pods, err := podsAtPlaces(ctx, e)
		if err != nil {
			return err
		}
		if got := strings.Join(slices.Sorted(maps.Keys(pods)), " "); got != want {
			return fmt.Errorf("the pods are %s, want %s", got, want)
		}
		return nil
	}
}

// podsAtPlaces are the names of the pods, by where they are and what they are.
func podsAtPlaces(ctx context.Context, e *fault.Env) (map[string]string, error) {
	pods, err := e.Client.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		text := pod.Annotations[builder.PlaceAnnotation] + "=" + pod.Spec.Containers[0].Image
		if !podutil.IsPodReady(pod) {
			text += "-"
		}
		if pod.DeletionTimestamp != nil {
			text += "x"
		}
		out[text] = pod.Name
	}
	return out, nil
}
