package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/proof/internal/catset"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is what users do to CatSets, parents whose children a hook describes.

// The hooks, and how long they are waited for, in simulated time.
const (
	syncURL      = "http://hook.sim/sync"
	finalizePath = "/finalize"
	finalizeURL  = "http://hook.sim" + finalizePath
	hookTimeout  = "10s"
)

// onlyAt are the hooks of controllers that have one kind of children only.
var onlyAt = map[string]string{"/pods": "Pod", "/configs": "ConfigMap"}

// CatSet is check.cairn.dev/v1 CatSets, and the CompositeControllers for them: which of them a CatSet is for is one of
// its labels.
func CatSet() Kind {
	rules := catset.Kinds()
	return Kind{
		Hosted:    composed(catset.Controllers(syncURL, hookTimeout)...),
		Check:     rules[0],
		Also:      rules[1:],
		Scheduled: true,
		New: func(chance *rand.Rand, _ Kind, name string) scenario.Step {
			set := catset.New(namespace, name, anyLimits(chance), int64(chance.IntN(4)), anyImage(chance))
			if chance.IntN(3) == 0 {
				set = catset.Stepped(set)
			}
			return manifest(set)
		},
		Edits: []Edit{
			edit("the image", 10, func(chance *rand.Rand) fields {
				return fields{"spec.template.spec.containers": value([]any{map[string]any{"name": "main", "image": anyImage(chance)}})}
			}),
			edit(scaleEdit, 6, func(chance *rand.Rand) fields { return fields{"spec.replicas": anyNumber(chance, 5)} }),
			{Name: "a field of the template that comes and goes", Weight: 3, Fields: func(chance *rand.Rand, set client.Object) fields {
				path := "spec.template.spec.priorityClassName"
				if catset.LimitsOf(set) == catset.InPlace { // nothing of the kind can be changed of a pod
					path = "spec.template.metadata.annotations[example.com/class]"
				}
				if chance.IntN(2) == 0 {
					return fields{path: "-"}
				}
				return fields{path: "high"}
			}},
			editLabel(2),
			edit("what no revision holds", 3, func(chance *rand.Rand) fields { return fields{"spec.note": anyText(chance, 3)} }),
			edit("an annotation", 1, func(chance *rand.Rand) fields {
				return fields{"metadata.annotations": value(map[string]string{"note": strconv.Itoa(chance.IntN(100))})}
			}),
		},
		Undo:  undoneCatSet,
		Child: plantedCat,
		Copy:  copiedCatRevision,
	}
}

// InPlace is CatSets whose pods are changed where they are. Nobody replaces those pods, so what cannot be changed of a
// pod is never asked for.
func InPlace() Kind {
	k := CatSet()
	k.New = func(chance *rand.Rand, _ Kind, name string) scenario.Step {
		return manifest(catset.New(namespace, name, catset.InPlace, int64(chance.IntN(4)), anyImage(chance)))
	}
	return k
}

// Divided is CatSets whose pods are one controller's and whose ConfigMap is another's. The second one appears when the
// manager starts for the second time, in mid-rollout as a rule.
func Divided() Kind {
	k, rules := CatSet(), catset.DividedKinds()
	k.Check, k.Also = rules[0], rules[1:]
	k.Hosted = beside(catset.DividedControllers("http://hook.sim/pods", "http://hook.sim/configs", hookTimeout)...)
	k.Later = 1
	k.New = func(chance *rand.Rand, _ Kind, name string) scenario.Step {
		return manifest(catset.New(namespace, name, catset.Divided, int64(chance.IntN(4)), anyImage(chance)))
	}
	return k
}

// ClusterCatSet is CatSets in no namespace, with pods and revisions in one and ConfigMaps in another.
func ClusterCatSet() Kind {
	k, rules := CatSet(), catset.ClusterKinds()
	k.Hosted, k.Check, k.Also = composed(catset.ClusterControllers(namespace, syncURL, hookTimeout)...), rules[0], rules[1:]
	k.New = func(chance *rand.Rand, _ Kind, name string) scenario.Step {
		return manifest(catset.NewCluster(namespace, name, anyLimits(chance), 1+int64(chance.IntN(3)), anyImage(chance)))
	}
	return k
}

// Attached is CatSets that nobody runs, and a DecoratorController that attaches the same children to them.
func Attached() Kind {
	k, rules := CatSet(), catset.AttachedKinds()
	k.Hosted, k.Check, k.Also = decorated(catset.Decorator(syncURL, finalizeURL, hookTimeout)), rules[0], rules[1:]
	k.New = func(chance *rand.Rand, _ Kind, name string) scenario.Step {
		return manifest(catset.New(namespace, name, catset.Attached, int64(chance.IntN(4)), anyImage(chance)))
	}
	k.Undo, k.Copy = nil, nil // no revisions
	return k
}

// manifest creates an object as it stands there.
func manifest(o client.Object) scenario.Step {
	return scenario.Step{Verb: "create", Args: []string{value(o)}}
}

func setField(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(fmt.Sprintf("sim: %s: %v", o.GetName(), err)) // we made it
	}
}

func anyLimits(chance *rand.Rand) catset.Limits {
	all := []catset.Limits{catset.OneByOne, catset.Together, catset.HeldBack, catset.Generated}
	return all[chance.IntN(len(all))]
}

// undoneCatSet replaces what the revision covers, as cairn undo does.
func undoneCatSet(k Kind, parent, revision client.Object) (scenario.Step, bool) {
	stored := revision.(*unstructured.Unstructured)
	template, ok, err := unstructured.NestedMap(stored.Object, "parentPatch", "spec", "template")
	return scenario.Step{
		Verb: "edit", Args: []string{scenario.Word(k.Check.Parents), parent.GetName()}, Options: fields{"spec.template": value(template)},
	}, ok && err == nil
}

// plantedCat is a pod with the labels of a CatSet's pods. Sometimes it has the name of one.
func plantedCat(chance *rand.Rand, _ Kind, parent client.Object, _ []string) scenario.Step {
	name := fmt.Sprintf("%s-planted-%d", parent.GetName(), chance.IntN(3))
	if chance.IntN(2) == 0 {
		name = fmt.Sprintf("%s-%d", parent.GetName(), chance.IntN(4))
	}
	out := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": parent.GetName()}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: anyImage(chance)}}},
	}
	switch limits := catset.LimitsOf(parent); {
	case limits == catset.InPlace:
		out.Spec.Hostname = name // for nobody could give it one
	case limits == catset.Generated && chance.IntN(3) > 0:
		out.Labels[metacontroller.UIDLabel] = string(parent.GetUID())
	}
	return manifest(out)
}

// copiedCatRevision is a copy of a revision that somebody made by hand: of the same number or of one that is far ahead,
// with the children that it says are its own or with none.
func copiedCatRevision(chance *rand.Rand, k Kind, _, revision client.Object) (what string, step scenario.Step) {
	what, out := copyOf(chance, k, revision, revisionKind, fmt.Sprintf("copy-%d", chance.IntN(3)))
	if u, ok := out.(*unstructured.Unstructured); ok && chance.IntN(2) == 0 {
		unstructured.RemoveNestedField(u.Object, "children")
	}
	return what, manifest(out)
}

// revisionKind are the revisions of CatSets.
var revisionKind = catset.Revisions.GroupVersion().WithKind("ControllerRevision")

// catKinds are CatSets and their revisions as the API server's model serves them, with what their CRDs say.
func catKinds() []model.Kind {
	oneReplica := model.Schema{Default: func(set *unstructured.Unstructured) {
		if _, ok, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "replicas"); !ok {
			setField(set, int64(1), "spec", "replicas")
		}
	}}
	return []model.Kind{
		model.Custom(catset.Kind, catset.Resource.Resource, true, true, oneReplica),
		model.Custom(catset.ClusterKind, catset.ClusterResource.Resource, false, true, oneReplica),
		model.Custom(revisionKind, catset.Revisions.Resource, true, false,
			model.Schema{Validate: unchangedPatch}),
	}
}

// unchangedPatch is what the CRD of revisions says: what a revision holds is never changed.
func unchangedPatch(revision, old *unstructured.Unstructured) field.ErrorList {
	if old == nil || apiequality.Semantic.DeepEqual(revision.Object["parentPatch"], old.Object["parentPatch"]) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("parentPatch"), "it cannot be changed")}
}
