package ownership_test

// The three laws as a pure function.

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/ownership"
)

func TestDecide(t *testing.T) {
	us, them := parent("us"), parent("them")
	cluster := parent("us", inNamespace(""))
	for _, c := range []struct {
		rule    string
		parent  *appsv1.DaemonSet
		child   *corev1.Pod
		matches bool
		want    ownership.Action
		reason  string
	}{
		{"what is ours and matches counts", us, child("c", ownedBy(us)), true, ownership.Keep, "the parent controls it"},
		{"what is ours and being deleted still counts", us, child("c", ownedBy(us), deleting), true, ownership.Keep, "the parent controls it"},
		{"a deleting parent still has its children", parent("us", deleting), child("c", ownedBy(us)), true, ownership.Keep, "the parent controls it"},
		{"what is ours and matches no longer is released", us, child("c", ownedBy(us)), false, ownership.Release, "the parent controls it, but it no longer matches"},
		{"what is ours, matches no longer and is being deleted is released", us, child("c", ownedBy(us), deleting), false, ownership.Release, "the parent controls it, but it no longer matches"},
		{"a deleting parent releases nothing", parent("us", deleting), child("c", ownedBy(us)), false, ownership.Ignore, "the parent controls it and it no longer matches, but a parent that is being deleted releases nothing"},
		{"an orphan that matches is adopted", us, child("c"), true, ownership.Adopt, "it is an orphan that the selector matches"},
		{"an owner that is no controller does not stand in the way", us, child("c", alsoOwnedBy("cm")), true, ownership.Adopt, "it is an orphan that the selector matches"},
		{"an orphan that does not match is left alone", us, child("c"), false, ownership.Ignore, "it is an orphan that the selector does not match"},
		{"a deleting orphan is left alone", us, child("c", deleting), true, ownership.Ignore, "it is an orphan that is being deleted"},
		{"a deleting parent adopts nothing", parent("us", deleting), child("c"), true, ownership.Ignore, "it is an orphan, but a parent that is being deleted adopts nothing"},
		{"what is another's is not touched and does not count", us, child("c", ownedBy(them)), true, ownership.Ignore, "it is controlled by DaemonSet them"},
		{"what is another's is not touched, matching or not", us, child("c", ownedBy(them)), false, ownership.Ignore, "it is controlled by DaemonSet them"},
		{"the name says nothing: the child of our predecessor is not ours", us, child("c", ownedBy(parent("us", withUID("uid-old")))), true, ownership.Ignore, "it is controlled by DaemonSet us"},
		{"a UID alone is not believed", us, child("c", forged(us)), true, ownership.Ignore, "its ControllerRef has the parent's UID and another kind, DaemonSet.other.dev"},
		{"a UID alone is not believed, matching or not", us, child("c", forged(us)), false, ownership.Ignore, "its ControllerRef has the parent's UID and another kind, DaemonSet.other.dev"},
		{"an older version is of the same kind", us, child("c", controlledBy(daemonSetV1beta2, "us", us.UID)), true, ownership.Keep, "the parent controls it"},
		{"so is the group that kinds of apps had once", us, child("c", controlledBy(daemonSetOfExtensions, "us", us.UID)), true, ownership.Keep, "the parent controls it"},
		{"an orphan of another namespace is not ours to adopt", us, child("c", inNamespace("other")), true, ownership.Ignore, `it is in namespace "other", its would-be parent in "ns"`},
		{"a reference from another namespace is not believed", us, child("c", ownedBy(us), inNamespace("other")), true, ownership.Ignore, `it is in namespace "other", its would-be parent in "ns"`},
		{"a parent in a namespace has no children without one", us, child("c", inNamespace("")), true, ownership.Ignore, `it is in namespace "", its would-be parent in "ns"`},
		{"a parent without namespace may have children in one", cluster, child("c"), true, ownership.Adopt, "it is an orphan that the selector matches"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := ownership.Decide(c.parent, daemonSet.GroupKind(), c.child, c.matches)
			if got.Action != c.want || got.Reason != c.reason {
				t.Errorf("got %s, because %s; want %s, because %s", got.Action, got.Reason, c.want, c.reason)
			}
		})
	}
}

// Whatever stands in an object, the laws hold.
func TestDecideKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := func(label string) *corev1.Pod {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, label+" name"),
				Namespace: rapid.SampledFrom([]string{"ns", "ns", "other"}).Draw(t, label+" namespace"),
				UID:       types.UID(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, label+" uid")),
			}}
			if rapid.Bool().Draw(t, label+" is deleting") {
				deleting(pod)
			}
			return pod
		}
		us, it := object("parent"), object("child")
		var controller *metav1.OwnerReference
		for range rapid.IntRange(0, 3).Draw(t, "references") {
			ref := metav1.OwnerReference{
				APIVersion: rapid.SampledFrom([]string{"v1", "v2", "other/v1"}).Draw(t, "owner version"),
				Kind:       rapid.SampledFrom([]string{"Pod", "Node"}).Draw(t, "owner kind"), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner name"),
				UID: types.UID(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "owner")),
			}
			switch rapid.IntRange(0, 2).Draw(t, "controller") {
			case 0:
				ref.Controller = new(false)
			case 1:
				if controller == nil {
					ref.Controller = new(true)
					controller = &ref
				}
			}
			it.OwnerReferences = append(it.OwnerReferences, ref)
		}
		usBefore, itBefore := us.DeepCopy(), it.DeepCopy()

		ours := controller != nil && controller.UID == us.UID && controller.Kind == "Pod" && controller.APIVersion != "other/v1"
		decision := ownership.Decide(us, schema.GroupKind{Kind: "Pod"}, it, rapid.Bool().Draw(t, "matches"))
		action := decision.Action
		writes := action == ownership.Adopt || action == ownership.Release
		switch {
		case strings.TrimSpace(decision.Reason) == "":
			t.Errorf("%s without a reason", action)
		case controller != nil && !ours && action != ownership.Ignore:
			t.Errorf("%s of what %v controls", action, controller)
		case controller == nil && (action == ownership.Keep || action == ownership.Release):
			t.Errorf("%s of an orphan", action)
		case controller != nil && action == ownership.Adopt:
			t.Error("a second controller")
		case us.DeletionTimestamp != nil && writes:
			t.Errorf("%s by a parent that is being deleted", action)
		case it.DeletionTimestamp != nil && action == ownership.Adopt:
			t.Error("adoption of what is being deleted")
		case it.Namespace != us.Namespace && action != ownership.Ignore:
			t.Errorf("%s across namespaces", action)
		case !cmp.Equal(us, usBefore) || !cmp.Equal(it, itBefore):
			t.Error("an argument was changed")
		}
	})
}
