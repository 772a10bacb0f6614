package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file is the sweep's subject composite: CatSets, whose hook is in composite_hook_test.go. All runs share the
// CompositeControllers, which are in no namespace; every run has its own parents.

const (
	catName     = "swept"
	catReplicas = 3
	// hookTimeout is how long a manager waits for the hook. It is longer than a busy machine makes the hook take: after
	// several timeouts the next try is minutes away.
	hookTimeout = "10s"
)

var (
	catSetResource      = schema.GroupResource{Group: catset.Kind.Group, Resource: catset.Resource.Resource}
	catRevisionResource = schema.GroupResource{Group: catset.Revisions.Group, Resource: catset.Revisions.Resource}
)

func composites(h *hooks) subject {
	return subject{
		controller: "composite",
		kinds:      catset.Kinds(),
		scopes:     catset.Resources(),
		namespaced: []string{"catsets", "pods", "configmaps", "controllerrevisions"},
		scenarios: slices.Concat([]fault.Scenario{
			rolledAndBack(), lostBesideABrokenOne(), changedBesideRevisions(), catsEditedWhileAway(), orphanedAndMadeAgain(),
			wantedByTwo(), rolledWith("changed in place", catset.InPlace), rolledWith("generated selector", catset.Generated),
			approvedCats(h), twoManagersOfCats(), brokenCats(),
		}, hookFailures(h), catsBehindCaches()),
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 1, Resource: catRevisionResource, Verb: "create", Times: 2},
			{Mode: fault.Unseen, At: 1, Resource: podResource, Verb: "create", Times: 3},
			{Mode: fault.KillStale, At: 1, Resource: podResource, Verb: "delete", Times: 3},
		},
		refusals: []fault.Refusal{
			{Resource: catRevisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: podResource, Verb: "create", Status: http.StatusForbidden, After: 1, Times: 4},
			{Resource: podResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
			{Resource: catSetResource, Subresource: "status", Status: http.StatusInternalServerError, Times: 3},
		},
		prepare: func(t *testing.T, sweep *fault.Sweep) {
			t.Helper()
			h.start(t, kubernetes.NewForConfigOrDie(sweep.User))
			sweep.Notes = h.notesOf
			must(t, applyCats(t.Context(), sweep.User, h.URL))
			canOwn(t, sweep.Config)
		},
	}
}

// applyCats is what an administrator does: definitions, controllers, and what they may do.
func applyCats(ctx context.Context, admin *rest.Config, url string) error {
	if err := install.CRDs(ctx, admin); err != nil {
		return err
	}
	manifests := []string{catset.CRD}
	controllers := append(catset.Controllers(url, hookTimeout), catset.ApprovedController(url, url+customizePath, hookTimeout))
	for _, cc := range controllers {
		grant := deploy.Grant{Undo: true}
		if cc.Spec.Hooks.Customize != nil {
			grant.Related = []schema.GroupResource{{Resource: "configmaps"}}
		}
		roles, err := deploy.CompositeRoles(cc, grant)
		if err != nil {
			return err
		}
		manifests = append(manifests, deploy.YAML(append(roles, cc)))
	}
	return install.Apply(ctx, admin, manifests...)
}

// rolledAndBack changes app:1 to app:2, to app:3 in the middle of that, and then back to what the first revision holds.
func rolledAndBack() fault.Scenario { return rolledAndBackBy(catset.Together) }

func rolledAndBackBy(limits catset.Limits) fault.Scenario {
	return fault.Scenario{
		Name:  "catset rolled and back",
		Share: 16,
		Drive: steps(
			createCats(limits, "app:1"),
			editCats(catImage("app:2")),
			until("the first pod of app:2", podOf("app:2")),
			editCats(catImage("app:3")),
			until("the rollout of app:3", catsEnded("app:3")),
			undoCats("app:1"),
		),
		Ended:  catsEnded("app:1"),
		AtRest: catHistoryIs("2=app:2 3=app:3 4=app:1"),
	}
}

// rolledWith is the same with a controller of another sort.
func rolledWith(how string, limits catset.Limits) fault.Scenario {
	s := rolledAndBackBy(limits)
	s.Name, s.Share = "catset rolled and back, "+how, 13
	return s
}

// lostBesideABrokenOne loses a pod that waits for its turn while the rollout is stopped by one that does not start.
func lostBesideABrokenOne() fault.Scenario {
	stopped := podsHave("swept-0=app:1", "swept-1=app:1", "swept-2=broken:2-")
	return fault.Scenario{
		Name:  "catset loses a pod beside a broken one",
		Share: 13,
		Drive: steps(
			createCats(catset.OneByOne, "app:1", slowly),
			editCats(catImage("broken:2")),
			until("the broken pod", stopped),
			losePod(catName+"-0"),
			until("the pod that was lost, as it was", stopped),
			until("a condition that names the broken pod", catWaits(catName+"-2")),
			editCats(catImage("app:3")),
		),
		Ended:  catsEnded("app:3"),
		AtRest: catHistoryIs("1=app:1 2=broken:2 3=app:3"),
	}
}

// changedBesideRevisions changes a field that no revision covers, which replaces every pod, and scales down meanwhile.
func changedBesideRevisions() fault.Scenario {
	return fault.Scenario{
		Name:  "catset changed beside its revisions",
		Share: 13,
		Drive: steps(
			createCats(catset.Together, "app:1"),
			editCats([]byte(`{"spec":{"note":"new"}}`)),
			until("the first pod with the note", podNoted("new")),
			editCats([]byte(`{"spec":{"replicas":2}}`)),
		),
		Ended: steps(
			catsEnded("app:1"),
			podNoted("new"), // and R4 says the same of all
		),
		AtRest: catHistoryIs("1=app:1"),
	}
}

// catsEditedWhileAway edits twice and loses a pod while no manager runs.
func catsEditedWhileAway() fault.Scenario {
	return fault.Scenario{
		Name:  "catset edited while the manager is away",
		Share: 13,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createCats(catset.HeldBack, "app:1")(ctx, e); err != nil {
				return err
			}
			e.Stop()
			for _, image := range []string{"app:2", "app:3"} {
				if err := editCats(catImage(image))(ctx, e); err != nil {
					return err
				}
			}
			for _, lost := range []string{"-0", "-1"} {
				if err := losePod(catName+lost)(ctx, e); err != nil {
					return err
				}
			}
			e.Start(ctx)
			return nil
		},
		Ended: steps(
			catsCounted(catReplicas),
			podsHave(numbered("app:1", "app:3", "app:3")...),
		),
		AtRest: catHistoryIs("1=app:1 2=app:3"),
	}
}

// orphanedAndMadeAgain deletes a CatSet without its children and makes it again: it takes them all back, and nothing
// restarts.
func orphanedAndMadeAgain() fault.Scenario {
	return fault.Scenario{
		Name:  "catset orphaned and made again",
		Share: 13,
		Drive: func(ctx context.Context, e *fault.Env) error {
			if err := createCats(catset.Together, "app:1")(ctx, e); err != nil {
				return err
			}
			before, err := podUIDs(ctx, e)
			if err != nil {
				return err
			}
			if err := steps(orphanCats, createCats(catset.Together, "app:1"))(ctx, e); err != nil {
				return err
			}
			after, err := podUIDs(ctx, e)
			if err == nil && !slices.Equal(before, after) {
				err = fmt.Errorf("the pods were %v and are %v", before, after)
			}
			return err
		},
		Ended:  catsEnded("app:1"),
		AtRest: catHistoryIs("1=app:1"),
	}
}

// wantedByTwo makes two CatSets that select the same pods and want one of the same name, which is there and nobody's.
// One takes it, the other says that it cannot, and nobody deletes it.
func wantedByTwo() fault.Scenario {
	const second = catName + "-too"
	of := func(e *fault.Env, name string) *unstructured.Unstructured {
		set := catset.New(e.Namespace, name, catset.Together, 1, "app:1")
		set.Object["spec"].(map[string]any)["prefix"] = "shared"
		labels := map[string]any{"app": "shared"}
		_ = unstructured.SetNestedMap(set.Object, labels, "spec", "selector", "matchLabels")
		_ = unstructured.SetNestedMap(set.Object, labels, "spec", "template", "metadata", "labels")
		return set
	}
	return fault.Scenario{
		Name: "catsets that want one pod",
		// The one that cannot have it tries again and again: what fails later finds it at rest.
		Points: func(int) []int { return fault.All(6) }, Unaimed: true,
		Share: 3,
		Drive: func(ctx context.Context, e *fault.Env) error {
			orphan, err := asApplied(catset.Answer(of(e, catName))[0])
			if err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&orphan.ObjectMeta, orphaned, "true")
			if _, err := e.Client.CoreV1().Pods(e.Namespace).Create(ctx, orphan, metav1.CreateOptions{}); err != nil {
				return err
			}
			for _, name := range []string{catName, second} {
				if _, err := catSets(e).Create(ctx, of(e, name), metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		},
		Ended: onlyOneHas("shared-0", catName, second),
	}
}

// twoManagersOfCats is the way to app:3 and back with two managers that both believe to be the leader. One pod at a
// time: each keeps its budget by what it has seen, and of several deletes of one pass, which go out at once, nobody
// here can tell that the later ones rest on no later view (R1). In the simulation, where passes are known, that would
// not matter.
func twoManagersOfCats() fault.Scenario {
	s := rolledAndBackBy(catset.OneByOne)
	s.Name, s.Managers, s.AtRest = "catset rolled and back by two managers", 2, nil
	s.Points, s.Share = fault.Every(7), 4
	if !full {
		s.Once = true
	}
	return s
}

// catsBehindCaches are scenarios of their own, like behindCaches.
func catsBehindCaches() []fault.Scenario {
	edit := func(image string) step { return editCats(catImage(image)) }
	scenario := fault.Scenario{Name: "catset", Ended: catsEnded("app:1")}
	return behind(scenario, lags(), steps(createCats(catset.Together, "app:1"), setMark), edit, catRevisionResource, podResource, catSetResource)
}
