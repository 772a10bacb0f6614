package model_test

// This file tests what the random sequences do not reach.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

var (
	replicaSets            = appsv1.SchemeGroupVersion.WithResource("replicasets")
	replicationControllers = corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	nodes                  = corev1.SchemeGroupVersion.WithResource("nodes")
)

// do sends a request that must be served.
func do(t *testing.T, s *model.Server, r model.Request) client.Object {
	t.Helper()
	if r.Namespace == "" && r.Resource != nodes {
		r.Namespace = "default"
	}
	answer := s.Do(r)
	if answer.Err != nil {
		t.Fatalf("%s %s %s: %v", r.Verb, r.Resource.Resource, r.Name, answer.Err)
	}
	return answer.Object
}

// history is the events since a resource version, in short.
func history(s *model.Server, since uint64) []string {
	var lines []string
	for _, event := range s.Events()[since:] {
		lines = append(lines, fmt.Sprintf("%s %s", strings.ToLower(string(event.Type)), event.Object.GetName()))
	}
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANameIsGenerated(t *testing.T) {
	names := func(seed uint64) (names []string) {
		s := model.New(model.Options{Seed: seed})
		for range 5 {
			pod := aPod("")
			pod.GenerateName = "web-"
			names = append(names, do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Object: pod}).GetName())
		}
		return names
	}
	one := names(1)
	for i, name := range one {
		if len(name) != len("web-12345") || !strings.HasPrefix(name, "web-") || slices.Contains(one[:i], name) {
			t.Errorf("names %v", one)
		}
	}
	expect(t, names(1), one...)
	if slices.Equal(names(2), one) {
		t.Error("another seed generates the same names")
	}
}

func TestABoundPodWaitsForItsKubelet(t *testing.T) {
	s := model.New(model.Options{})
	for _, name := range []string{"bound", "unbound"} {
		do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Object: aPod(name)})
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Subresource: "binding", Name: "bound", Object: binding})

	from := s.ResourceVersion()
	do(t, s, model.Request{Verb: model.VerbDelete, Resource: pods, Name: "unbound"})
	left := do(t, s, model.Request{Verb: model.VerbDelete, Resource: pods, Name: "bound"})
	if grace := left.GetDeletionGracePeriodSeconds(); grace == nil || *grace != 30 {
		t.Errorf("grace period %v, want 30", grace)
	}
	if want := metav1.Unix(left.GetCreationTimestamp().Unix()+30, 0); !left.GetDeletionTimestamp().Equal(&want) {
		t.Errorf("deleted at %v, want %v", left.GetDeletionTimestamp(), want)
	}
	expect(t, history(s, from), "modified unbound", "deleted unbound", "modified bound")

	from = s.ResourceVersion()
	do(t, s, model.Request{Verb: model.VerbDelete, Resource: pods, Name: "bound"})
	expect(t, history(s, from)) // nothing new
	do(t, s, model.Request{Verb: model.VerbDelete, Resource: pods, Name: "bound", GracePeriodSeconds: new(int64(0))})
	expect(t, history(s, from), "modified bound", "deleted bound")
}

// family makes a ReplicaSet with two pods, of which one blocks its deletion.
func family(t *testing.T, s *model.Server) *appsv1.ReplicaSet {
	t.Helper()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "owner"},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: aPod("").Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: aPod("").Labels}, Spec: aPod("").Spec},
		},
	}
	owner := do(t, s, model.Request{Verb: model.VerbCreate, Resource: replicaSets, Object: rs}).(*appsv1.ReplicaSet)
	for name, blocks := range map[string]bool{"blocking": true, "other": false} {
		pod := aPod(name)
		pod.Finalizers = []string{"cairn.dev/hold"}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks}}
		do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Object: pod})
	}
	return owner
}

// collect lets the garbage collector work until it rests.
func collect(t *testing.T, s *model.Server) {
	t.Helper()
	for len(s.Garbage()) > 0 {
		for _, r := range s.Garbage() {
			do(t, s, r)
		}
	}
}

func TestTheGarbageCollectorFollowsThePropagation(t *testing.T) {
	release := func(s *model.Server, name string) {
		do(t, s, model.Request{Verb: model.VerbPatch, Resource: pods, Name: name, PatchType: "application/merge-patch+json", Patch: []byte(`{"metadata":{"finalizers":null}}`)})
		collect(t, s)
	}
	for _, test := range []struct {
		policy metav1.DeletionPropagation
		want   []string // what happens until the pods are let go
		then   []string // and when they are
	}{
		{metav1.DeletePropagationBackground, []string{"deleted owner", "modified blocking", "modified other"}, []string{"deleted other", "deleted blocking"}},
		{metav1.DeletePropagationForeground, []string{"modified owner", "modified blocking", "modified other"}, []string{"deleted other", "deleted blocking", "deleted owner"}},
		{metav1.DeletePropagationOrphan, []string{"modified owner", "modified blocking", "modified other", "deleted owner"}, []string{"modified other", "modified blocking"}},
	} {
		s := model.New(model.Options{})
		owner := family(t, s)
		from := s.ResourceVersion()
		do(t, s, model.Request{Verb: model.VerbDelete, Resource: replicaSets, Name: owner.Name, Propagation: &test.policy})
		collect(t, s)
		got := history(s, from)
		// Which of the two pods comes first is said by their names; they were made in any order.
		expect(t, got, test.want...)
		from = s.ResourceVersion()
		release(s, "other")
		release(s, "blocking")
		expect(t, history(s, from), test.then...)
	}
}

func TestAReplicationControllerIsOrphanedByDefault(t *testing.T) {
	s := model.New(model.Options{})
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "rc"},
		Spec: corev1.ReplicationControllerSpec{
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: aPod("").Labels}, Spec: aPod("").Spec},
		},
	}
	do(t, s, model.Request{Verb: model.VerbCreate, Resource: replicationControllers, Object: rc})
	left := do(t, s, model.Request{Verb: model.VerbDelete, Resource: replicationControllers, Name: "rc"})
	expect(t, left.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

func TestOwnersOutOfReach(t *testing.T) {
	s := model.New(model.Options{})
	owner := family(t, s)
	node := do(t, s, model.Request{Verb: model.VerbCreate, Resource: nodes, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}})
	for name, ref := range map[string]metav1.OwnerReference{
		"elsewhere":    {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID},
		"of-a-node":    {APIVersion: "v1", Kind: "Node", Name: "n", UID: node.GetUID()},
		"of-a-mystery": {APIVersion: "example.com/v1", Kind: "Mystery", Name: "m", UID: "1"},
	} {
		pod := aPod(name)
		pod.Namespace, pod.OwnerReferences = "", []metav1.OwnerReference{ref}
		do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Namespace: "far", Object: pod})
	}
	from := s.ResourceVersion()
	collect(t, s)
	expect(t, history(s, from), "modified elsewhere", "deleted elsewhere")
}

func TestNothingIsCreatedInANamespaceThatEnds(t *testing.T) {
	s := model.New(model.Options{})
	s.EndNamespace("default")
	answer := s.Do(model.Request{Verb: model.VerbCreate, Resource: pods, Namespace: "default", Object: aPod("late")})
	if !apierrors.IsForbidden(answer.Err) || !apierrors.HasStatusCause(answer.Err, corev1.NamespaceTerminatingCause) {
		t.Errorf("answer %v", answer.Err)
	}
}

func TestACustomResourceFollowsItsSchema(t *testing.T) {
	kind := widget.Kind
	kind.Kind = "Strict"
	strict := model.Custom(kind, "stricts", true, false, model.Schema{
		Default: func(u *unstructured.Unstructured) {
			if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "size"); !found {
				_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "size")
			}
		},
		Validate: func(u, old *unstructured.Unstructured) field.ErrorList {
			if old != nil && fmt.Sprint(u.Object["spec"]) != fmt.Sprint(old.Object["spec"]) {
				return field.ErrorList{field.Forbidden(field.NewPath("spec"), "is immutable")}
			}
			return nil
		},
	})
	s := model.New(model.Options{Kinds: []model.Kind{strict}})
	object := objectOf(strict, m{"metadata": m{"name": "x"}})
	created := do(t, s, model.Request{Verb: model.VerbCreate, Resource: strict.Resource, Object: object})
	if size, _, _ := unstructured.NestedInt64(contentOf(created), "spec", "size"); size != 3 || created.GetGeneration() != 1 {
		t.Errorf("created %v", created)
	}
	answer := s.Do(model.Request{
		Verb: model.VerbPatch, Resource: strict.Resource, Namespace: "default", Name: "x",
		PatchType: "application/merge-patch+json", Patch: []byte(`{"spec":{"size":4}}`),
	})
	if !apierrors.IsInvalid(answer.Err) {
		t.Errorf("answer %v", answer.Err)
	}
}

func TestAReadWaitsForNoFuture(t *testing.T) {
	s := model.New(model.Options{})
	do(t, s, model.Request{Verb: model.VerbCreate, Resource: pods, Object: aPod("a")})
	for rv, want := range map[string]bool{"": true, "0": true, "1": true, "2": false, "x": false} {
		answer := s.Do(model.Request{Verb: model.VerbList, Resource: pods, ResourceVersion: rv})
		if (answer.Err == nil) != want || (want && len(answer.Items) != 1) {
			t.Errorf("at %q: %v", rv, answer)
		}
	}
	if _, err := s.ListAt(pods, "", 2); err == nil {
		t.Error("a list of the future succeeds")
	}
}

func TestWhatIsNotServed(t *testing.T) {
	s := model.New(model.Options{})
	for name, r := range map[string]model.Request{
		"kind":        {Verb: model.VerbGet, Resource: widget.Resource, Namespace: "default", Name: "x"},
		"subresource": {Verb: model.VerbGet, Resource: pods, Namespace: "default", Name: "x", Subresource: "log"},
		"verb":        {Verb: "watch", Resource: pods, Namespace: "default"},
		"namespace":   {Verb: model.VerbGet, Resource: pods, Name: "x"},
		"patch":       {Verb: model.VerbPatch, Resource: pods, Namespace: "default", Name: "x", PatchType: "application/apply-patch+yaml"},
	} {
		if answer := s.Do(r); answer.Err == nil {
			t.Errorf("%s: %v", name, answer)
		}
	}
}
