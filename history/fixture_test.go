package history_test

// What the tests of this package share: a DaemonSet, its log behind the test server, a pass, and short ways to look.

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// agent is a DaemonSet at its first generation, as the API server shows it.
func agent(image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "agent-uid", Generation: 1},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec: corev1.PodSpec{
					DNSPolicy:  corev1.DNSClusterFirst,
					Containers: []corev1.Container{{Name: "agent", Image: image}},
				},
			},
		},
	}
}

var matching = labels.SelectorFromSet(labels.Set{"app": "agent"})

// edit changes the stored DaemonSet as a person would, and returns it as a fresh read shows it.
func (s *server) edit(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	s.t.Helper()
	ds := s.parent()
	change(ds)
	ds.Generation++
	if err := s.Raw.Update(context.Background(), ds); err != nil {
		s.t.Fatal(err)
	}
	return s.parent()
}

func (s *server) image(image string) *appsv1.DaemonSet {
	s.t.Helper()
	return s.edit(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = image })
}

func (s *server) parent() *appsv1.DaemonSet {
	s.t.Helper()
	var ds appsv1.DaemonSet
	if err := s.Raw.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: "agent"}, &ds); err != nil {
		s.t.Fatal(err)
	}
	return &ds
}

func newLog(c client.Client) *history.Log {
	return history.New(history.DaemonSet(), history.Options{Client: c, Indexed: true})
}

// stored returns all revisions of namespace default by name, whoever owns them.
func (s *server) stored() map[string]*appsv1.ControllerRevision {
	s.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := s.Raw.List(context.Background(), &list, client.InNamespace("default")); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]*appsv1.ControllerRevision{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// numbers returns the number of every stored revision by the image that it holds.
func (s *server) numbers() map[string]int64 {
	s.t.Helper()
	out := map[string]int64{}
	for _, o := range s.stored() {
		out[imageOf(s.t, o)] = o.Revision
	}
	return out
}

func imageOf(t testing.TB, o *appsv1.ControllerRevision) string {
	t.Helper()
	snapshot, err := history.DaemonSet().Target().Decode(o.Data.Raw)
	if err != nil {
		t.Fatal(err)
	}
	var ds appsv1.DaemonSet
	if err := snapshot.Into(&ds); err != nil {
		t.Fatal(err)
	}
	return ds.Spec.Template.Spec.Containers[0].Image
}

// pass runs one pass over the log, without the truncation.
func pass(ctx context.Context, l *history.Log, ds *appsv1.DaemonSet) (*history.Verdict, *history.Recorded, error) {
	entries, err := l.Claim(ctx, ds, matching)
	if err != nil {
		return nil, nil, err
	}
	v, err := l.Resolve(ctx, ds, entries)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := l.Record(ctx, ds, v, ds.Status.CollisionCount, func(_ context.Context, from, to revision.Revision) error {
		return fmt.Errorf("nobody expected to point children of %s at %s", from.Name, to.Name)
	})
	return v, recorded, err
}

func mustPass(t testing.TB, l *history.Log, ds *appsv1.DaemonSet) (*history.Verdict, *history.Recorded) {
	t.Helper()
	v, recorded, err := pass(t.Context(), l, ds)
	if err != nil {
		t.Fatal(err)
	}
	return v, recorded
}

// resolve claims and resolves.
func resolve(t testing.TB, l *history.Log, ds *appsv1.DaemonSet) *history.Verdict {
	t.Helper()
	entries, err := l.Claim(t.Context(), ds, matching)
	if err != nil {
		t.Fatal(err)
	}
	v, err := l.Resolve(t.Context(), ds, entries)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// revisionOf builds a revision of ds as the built-in controller would have left it: no stamp.
func revisionOf(t testing.TB, ds *appsv1.DaemonSet, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	ds = ds.DeepCopy()
	ds.Spec.Template.Spec.Containers[0].Image = image
	snapshot, err := history.DaemonSet().Target().Snapshot(ds)
	if err != nil {
		t.Fatal(err)
	}
	name, hash := history.DaemonSet().Named(ds, snapshot.Data(), nil)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: name, UID: types.UID("uid-of-" + image),
			Labels:          map[string]string{"app": "agent", "controller-revision-hash": hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, history.DaemonSet().Parent)},
		},
		Data:     runtime.RawExtension{Raw: snapshot.Data()},
		Revision: number,
	}
}

// consistency is a [history.Consistency] that calls functions, those that it has.
type consistency struct {
	wrote, deleted, outdated func(parent types.UID, o client.Object)
}

func (c consistency) WroteAt(parent types.UID, _ schema.GroupResource, o client.Object) {
	c.call(c.wrote, parent, o)
}

func (c consistency) Deleted(parent types.UID, _ schema.GroupResource, o client.Object) {
	c.call(c.deleted, parent, o)
}

func (c consistency) Outdated(parent types.UID, _ schema.GroupResource, o client.Object) {
	c.call(c.outdated, parent, o)
}

func (consistency) call(f func(types.UID, client.Object), parent types.UID, o client.Object) {
	if f != nil {
		f(parent, o)
	}
}
