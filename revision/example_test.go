package revision_test

// How a controller author uses the package, from the first snapshot to the undo. The output is checked by go test.

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/revision"
)

// exampleTarget is made once for a kind and shared by all workers.
var exampleTarget = revision.StrategicMerge(revision.Typed[appsv1.DaemonSet](), revision.Path{"spec", "template"})

// exampleAgent is a parent as a controller reads it from its cache.
func exampleAgent(image string, generation int64) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", UID: "3f0e", Generation: generation},
		Spec: appsv1.DaemonSetSpec{
			MinReadySeconds: 5,
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}},
			},
		},
	}
}

// exampleRevision is a stored revision; a controller fills it in from a ControllerRevision object.
func exampleRevision(number int64, image string) revision.Revision {
	s, err := exampleTarget.Snapshot(exampleAgent(image, number))
	if err != nil {
		panic(err)
	}
	hash := revision.Hash(s.Data(), nil)
	return revision.Revision{
		Name: revision.Name("agent", hash), UID: types.UID(hash), Number: number, Hash: hash,
		Stamp: revision.Stamp{ParentUID: "3f0e", Generation: number}, Snapshot: s,
	}
}

// A snapshot is the covered part of a parent, in the bytes that are stored. Its hash names it.
func ExampleTarget_Snapshot() {
	s, err := exampleTarget.Snapshot(exampleAgent("agent:1", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(s.Data()))
	fmt.Println(revision.Name("agent", revision.Hash(s.Data(), nil)))
	// Output:
	// {"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":[{"image":"agent:1","name":"agent","resources":{}}]}}}}
	// agent-7b6f7d8784
}

// Custom resources have no Go type in most controllers. Their revisions hold the listed fields, as they are.
func ExampleFieldPaths() {
	template, _ := revision.ParsePath("spec.template")
	policy, _ := revision.ParsePath("spec.policy")
	target, err := revision.FieldPaths(nil, template, policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	cat := map[string]any{"spec": map[string]any{"replicas": 3, "template": map[string]any{"colour": "grey"}}}
	s, err := target.Snapshot(cat)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(s.Data()))

	_, err = revision.FieldPaths(nil, template, revision.Path{"spec"})
	fmt.Println(err)
	// Output:
	// {"spec":{"template":{"colour":"grey"}}}
	// field path spec.template lies inside field path spec; name the outer one only
}

// What was stored by another release in other bytes is still the same revision, and no rollout.
func ExampleCompare() {
	now, err := exampleTarget.Snapshot(exampleAgent("agent:1", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, data := range []string{
		`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},` +
			`"spec":{"containers":[{"image":"agent:1","name":"agent","resources":{}}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"agent:1"}],"volumes":[]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"agent:1"}],"dnsPolicy":"ClusterFirst"}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"agent:2"}]}}}}`,
	} {
		stored, err := exampleTarget.Decode([]byte(data))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("equal by rule %q, worth asking the API server: %t\n", revision.Compare(now, stored), revision.Askable(now, stored))
	}
	// Output:
	// equal by rule "E1", worth asking the API server: true
	// equal by rule "E2", worth asking the API server: true
	// equal by rule "", worth asking the API server: true
	// equal by rule "", worth asking the API server: false
}

// Undo: the covered part goes back as a whole, everything else stays as it is now.
func ExampleSnapshot_Restore() {
	old := exampleRevision(1, "agent:1").Snapshot
	live := exampleAgent("agent:2", 2)
	live.Spec.MinReadySeconds = 30
	live.Spec.Template.Spec.HostNetwork = true // added since

	restored, err := old.Restore(live)
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, _ := restored["spec"].(map[string]any)
	fmt.Println(spec["minReadySeconds"], spec["template"])
	fmt.Println("the live object is untouched:", live.Spec.Template.Spec.Containers[0].Image)

	var typed appsv1.DaemonSet // children are built from this, not from the live parent
	if err := old.Into(&typed); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("children run", typed.Spec.Template.Spec.Containers[0].Image)
	// Output:
	// 30 map[metadata:map[] spec:map[containers:[map[image:agent:1 name:agent resources:map[]]]]]
	// the live object is untouched: agent:2
	// children run agent:1
}

// Undo through the API server: the patch is refused if somebody changed the object in between.
func ExampleSnapshot_RestorePatch() {
	live := exampleAgent("agent:2", 2)
	live.ResourceVersion = "41"
	patch, err := exampleRevision(1, "agent:1").Snapshot.RestorePatch(live)
	fmt.Println(string(patch), err)
	// Output:
	// [{"op":"replace","path":"/metadata/uid","value":"3f0e"},{"op":"replace","path":"/metadata/resourceVersion","value":"41"},{"op":"add","path":"/spec/template","value":{"metadata":{},"spec":{"containers":[{"image":"agent:1","name":"agent","resources":{}}]}}}] <nil>
}

// One pass: what did the parent do since, and what does the log need before any child is touched?
func ExampleResolve() {
	log := []revision.Revision{exampleRevision(1, "agent:1"), exampleRevision(2, "agent:2")}
	for _, live := range []*appsv1.DaemonSet{
		exampleAgent("agent:2", 2),
		exampleAgent("agent:3", 3),
		exampleAgent("agent:1", 3),
		exampleAgent("agent:1", 1), // an old read
	} {
		s, err := exampleTarget.Snapshot(live)
		if err != nil {
			fmt.Println(err)
			return
		}
		parent := revision.ParentState{UID: live.UID, Generation: live.Generation, Snapshot: s, Generational: true}
		res, err := revision.Resolve(parent, log, nil, false)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", res.Change, res.Reason)
		fmt.Printf("  renumber: %t, stamp: %t\n", res.Renumber(), res.Restamp())
	}
	// Output:
	// NoChange: revision 2 (agent-5d8b65bbcf) is what the parent asks for
	//   renumber: false, stamp: false
	// RollForward: no stored revision is what the parent asks for; recording revision 3
	//   renumber: false, stamp: false
	// Rollback: the parent asks for revision 1 (agent-7b6f7d8784) again; renumbering it to 3
	//   renumber: true, stamp: true
	// Stale: the parent was read at generation 1, but revision agent-5d8b65bbcf was recorded at generation 2; waiting for a newer read
	//   renumber: false, stamp: false
}

// At the end of a pass: forget the oldest, but nothing that a child still needs.
func ExamplePrune() {
	log := []revision.Revision{
		exampleRevision(1, "agent:1"), exampleRevision(2, "agent:2"), exampleRevision(3, "agent:3"), exampleRevision(4, "agent:4"),
	}
	update, inUse := log[3], log[0]
	live := revision.NewInUse(inUse.Hash) // the labels of all children, and the names in the parent's status
	for _, r := range revision.Prune(log, update, live, 1) {
		fmt.Println("delete revision", r.Number)
	}
	fmt.Println("before the children were seen:", len(revision.Prune(log, update, revision.InUse{}, 1)))
	// Output:
	// delete revision 2
	// before the children were seen: 0
}
