package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file is the sweep's subject recorder: NetworkPolicies that a HistoryPolicy is about.

func recorders() subject {
	k := parents.Recorded()
	return subject{
		controller: "recorder",
		kinds:      []check.Kind{k}, scopes: k.Scopes(), namespaced: k.Namespaced(),
		scenarios: []fault.Scenario{recordedAndBack()},
		aimed: []fault.Fault{
			{Mode: fault.Unseen, At: 1, Resource: revisionResource, Verb: "create", Times: 2},
			{Mode: fault.KillStale, At: 1, Resource: revisionResource, Verb: "delete", Times: 2},
		},
		refusals: []fault.Refusal{
			{Resource: revisionResource, Verb: "create", Status: http.StatusForbidden, Times: 3},
			{Resource: revisionResource, Verb: "delete", Status: http.StatusForbidden, Times: 3},
		},
		prepare: func(t *testing.T, sweep *fault.Sweep) {
			t.Helper()
			must(t, applyPolicy(t.Context(), sweep.User))
		},
	}
}

func applyPolicy(ctx context.Context, admin *rest.Config) error {
	if err := install.CRDs(ctx, admin); err != nil {
		return err
	}
	p := &cairn.HistoryPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: cairn.SchemeGroupVersion.String(), Kind: "HistoryPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "swept"},
		Spec: cairn.HistoryPolicySpec{
			Resource:             cairn.RecordedResource{APIVersion: networkingv1.SchemeGroupVersion.String(), Resource: "networkpolicies"},
			RevisionHistoryLimit: new(int32(parents.RecordedLimit)),
		},
	}
	roles, err := deploy.PolicyRoles(p, deploy.Grant{})
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return err
	}
	delete(content, "status")
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return install.Apply(ctx, admin, deploy.YAML(roles), string(text))
}

// recordedAndBack edits a NetworkPolicy more often than the limit is, each edit when the one before is recorded, and
// goes back to one that is kept.
func recordedAndBack() fault.Scenario {
	return fault.Scenario{
		Name: "recorded and undone",
		Drive: func(ctx context.Context, e *fault.Env) error {
			o := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "swept"}}
			o.Spec.PodSelector.MatchLabels = map[string]string{"app": "a"}
			if _, err := e.Client.NetworkingV1().NetworkPolicies(e.Namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
				return err
			}
			for _, app := range []string{"b", "c", "d"} {
				if err := steps(until("a revision before "+app, newestHolds(previous(app))), selectApp(app))(ctx, e); err != nil {
					return err
				}
			}
			return steps(until("the last revision", newestHolds("d")), selectApp("c"))(ctx, e)
		},
		Ended: newestHolds("c"),
		AtRest: func(ctx context.Context, e *fault.Env) error {
			revisions, err := revisionsOf(ctx, e)
			if err != nil {
				return err
			}
			var got []string
			for _, r := range revisions {
				got = append(got, fmt.Sprintf("%d=%s", r.Revision, appIn(r.Data.Raw)))
			}
			if got := strings.Join(got, " "); got != "2=b 4=d 5=c" {
				return fmt.Errorf("the history is %s, want 2=b 4=d 5=c", got)
			}
			return nil
		},
	}
}

// previous is the letter before.
func previous(app string) string { return string(app[0] - 1) }

func selectApp(app string) step {
	return func(ctx context.Context, e *fault.Env) error {
		patch := fmt.Appendf(nil, `{"spec":{"podSelector":{"matchLabels":{"app":%q}}}}`, app)
		_, err := e.Client.NetworkingV1().NetworkPolicies(e.Namespace).Patch(ctx, "swept", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// newestHolds returns nil if the newest revision is of that app.
func newestHolds(app string) step {
	return func(ctx context.Context, e *fault.Env) error {
		revisions, err := revisionsOf(ctx, e)
		if err != nil {
			return err
		}
		if len(revisions) == 0 {
			return errors.New("there is no revision")
		}
		if got := appIn(revisions[len(revisions)-1].Data.Raw); got != app {
			return fmt.Errorf("the newest revision is of %s", got)
		}
		return nil
	}
}

// appIn is the app that recorded data select.
func appIn(data []byte) string {
	var o networkingv1.NetworkPolicy
	if err := json.Unmarshal(data, &o); err != nil {
		return err.Error()
	}
	return o.Spec.PodSelector.MatchLabels["app"]
}
