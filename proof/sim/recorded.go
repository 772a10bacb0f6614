package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairnv1alpha1 "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	historyrecorder "github.com/cairn-dev/cairn/controllers/recorder"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/kinds"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is what users do to objects that a HistoryPolicy is about: NetworkPolicies, of which no controller knows
// here.

// fewBytes is how many bytes the policy lets old revisions hold: two without a rule, and not one with it besides.
const fewBytes = 200

// Recorded is NetworkPolicies, and the policy.
func Recorded() Kind {
	rules := parents.Recorded()
	rules.Bytes = fewBytes
	return Kind{
		Check:  rules,
		Add:    addRecorder,
		Loose:  true,
		Before: []client.Object{historyPolicy()},
		New: func(chance *rand.Rand, k Kind, name string) scenario.Step {
			o := &networkingv1.NetworkPolicy{}
			o.SetGroupVersionKind(k.Check.Parent)
			o.Namespace, o.Name = namespace, name
			o.Spec.PodSelector.MatchLabels = map[string]string{"app": fmt.Sprintf("v%d", chance.IntN(5))}
			o.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
			return manifest(o)
		},
		Edits: []Edit{
			edit("the selector", 10, func(chance *rand.Rand) fields {
				return fields{"spec.podSelector.matchLabels.app": fmt.Sprintf("v%d", chance.IntN(5))}
			}),
			edit("a rule", 4, func(chance *rand.Rand) fields {
				rule := networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{
					PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": anyNumber(chance, 2)}},
				}}}
				return fields{"spec.ingress": value([]networkingv1.NetworkPolicyIngressRule{rule}[:chance.IntN(2)])}
			}),
			editAnnotation(),
		},
		Undo: undoneRecord,
		Copy: copiedRecord,
	}
}

// historyPolicy is the policy.
func historyPolicy() *cairnv1alpha1.HistoryPolicy {
	group := networkingv1.SchemeGroupVersion
	p := &cairnv1alpha1.HistoryPolicy{}
	p.Name = "recorded"
	p.Spec.Resource = cairnv1alpha1.RecordedResource{APIVersion: group.String(), Resource: "networkpolicies"}
	p.Spec.FieldPaths = []string{"spec"} // there is no schema to ask for it
	p.Spec.RevisionHistoryLimit = new(int32(parents.RecordedLimit))
	p.Spec.RevisionHistorySizeLimit = resource.NewQuantity(fewBytes, resource.DecimalSI)
	return p
}

// addRecorder adds the controller of the policy. Who starts and ends it as policies come and go is not part of the
// simulation.
func addRecorder(ctx context.Context, mgr ctrl.Manager) error {
	m := mgr.(*manager)
	revisions := map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}}
	if _, err := ownership.NewConsistencyStoreFor(ctx, m, revisions, nil); err != nil {
		return err
	}
	policy := historyPolicy()
	policy.UID = m.process.world.get(policyKind().Resource, "", policy.Name).GetUID()
	env := m.process.environment()
	built, err := historyrecorder.Build(ctx, env.Host, policy)
	if err != nil {
		return err
	}
	return m.process.runs(ctx, env, historyrecorder.Name, built)
}

// copiedRecord is a copy of a revision as somebody makes one, or what a controller that keeps a history of its own
// makes.
func copiedRecord(chance *rand.Rand, k Kind, parent, revision client.Object) (what string, step scenario.Step) {
	name := fmt.Sprintf("%s-copy-%d", parent.GetName(), chance.IntN(3))
	what, out := copyOf(chance, k, revision, kinds.Revision.GVK, name)
	if chance.IntN(4) == 0 {
		what = "a history of its own controller"
		out.SetLabels(map[string]string{"kept-by": parent.GetName()})
		out.SetAnnotations(nil)
		out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(parent, k.Check.Parent)})
	}
	return what, manifest(out)
}

// undoneRecord replaces what the revision covers, as cairn undo does.
func undoneRecord(k Kind, parent, revision client.Object) (scenario.Step, bool) {
	var then networkingv1.NetworkPolicy
	r, ok := revision.(*appsv1.ControllerRevision)
	ok = ok && json.Unmarshal(r.Data.Raw, &then) == nil
	set := fields{"spec.podSelector": value(then.Spec.PodSelector), "spec.ingress": "-"}
	if then.Spec.Ingress != nil {
		set["spec.ingress"] = value(then.Spec.Ingress)
	}
	return scenario.Step{Verb: "edit", Args: []string{scenario.Word(k.Check.Parents), parent.GetName()}, Options: set}, ok
}

// policyKind is how the API server's model serves HistoryPolicies.
func policyKind() model.Kind {
	return model.Custom(cairnv1alpha1.SchemeGroupVersion.WithKind("HistoryPolicy"), "historypolicies", false, true, model.Schema{})
}
