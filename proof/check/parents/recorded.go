package parents

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what the parents of a HistoryPolicy are: they have revisions, and nothing else of ours.
// NetworkPolicies have a spec, a generation and no controller.

// RecordedLimit is how many old revisions the policy keeps that [Recorded] is about.
const RecordedLimit = 2

// Recorded describes NetworkPolicies that are recorded.
func Recorded() check.Kind {
	group := networkingv1.SchemeGroupVersion
	return check.Kind{
		Kind: kinds.Kind{
			Controller: "recorder", Parent: group.WithKind("NetworkPolicy"), Parents: group.WithResource("networkpolicies"),
			Revisions: kinds.Revision.GVR,
		},
		Names:    func(client.Object, client.Object) bool { return false },
		Labelled: func(client.Object) bool { return false },
		Number:   numberOf,
		Snapshot: func(revision client.Object) (string, error) {
			return plain(as[appsv1.ControllerRevision](revision).Data.Raw)
		},
		Target: func(parent client.Object) string {
			spec, err := json.Marshal(map[string]any{"spec": as[networkingv1.NetworkPolicy](parent).Spec})
			if err != nil {
				return err.Error()
			}
			out, err := plain(spec)
			if err != nil {
				return err.Error()
			}
			return out
		},
		Strays:             func(client.Object, client.Object) string { return "" },
		StraysNow:          func(client.Object, client.Object) string { return "" },
		Units:              func(*check.State, client.Object) []check.Unit { return nil },
		Ended:              func(client.Object) bool { return false },
		Available:          func(client.Object, client.Object, time.Time) bool { return true },
		Budget:             func(client.Object, int) check.Budget { return check.Budget{} },
		ObservedGeneration: client.Object.GetGeneration,
		Complete:           func(client.Object) bool { return false }, // there are no rollouts
		Implausible:        func(client.Object) []string { return nil },
		Miscounted:         func(*check.State, client.Object) []string { return nil },
		StatusRevisions:    func(client.Object) []string { return nil },
		Mine: func(revision client.Object) bool {
			return revision.GetLabels()["cairn.dev/recorded-kind"] != "" || revision.GetLabels()["cairn.dev/recorded-name"] != "" ||
				revision.GetAnnotations()["cairn.dev/historypolicy-uid"] != ""
		},
		Limit: func(client.Object) int { return RecordedLimit },
	}
}

// plain is JSON with its keys sorted.
func plain(raw []byte) (string, error) {
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	out, err := json.Marshal(tree)
	return string(out), err
}
