package check_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller"
	upstream "k8s.io/kubernetes/pkg/controller/history"
	"sigs.k8s.io/randfill"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file compares the names of new revisions with those that the built-in controllers give, for templates at random:
// a log that was lost is found again by name (docs/design/log/2026-11-22-names-of-revisions.md).

// templates returns one template after another, as an API server would return them.
func templates(t *testing.T) func() corev1.PodTemplateSpec {
	t.Helper()
	fill := randfill.NewWithSeed(1).NilChance(0.7).NumElements(1, 3).MaxDepth(9).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "1", "100m", "1Gi", "1024Mi", "1.5", "1e3"}[c.Intn(7)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31n(9)) },
		func(at *metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*at = metav1.Unix(int64(c.Int31()), 0)
			}
		},
		func(fields *metav1.FieldsV1, _ randfill.Continue) { *fields = *metav1.NewFieldsV1(`{}`) },
	)
	return func() corev1.PodTemplateSpec {
		var filled, read corev1.PodTemplateSpec
		fill.Fill(&filled)
		raw, err := json.Marshal(filled)
		if err == nil {
			err = json.Unmarshal(raw, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
}

// counts returns a collision count, nil for none.
func counts(chance *rand.Rand) *int32 {
	switch chance.IntN(3) {
	case 0:
		return nil
	case 1:
		return new(chance.Int32N(3))
	default:
		return new(int32(chance.Uint32()))
	}
}

func TestNamesAreUpstreams(t *testing.T) {
	next, chance := templates(t), rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		template, count := next(), counts(chance)
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "web-uid"}
		if i%10 == 0 {
			meta.Name = strings.Repeat("w", 224)
		}
		ds := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}}
		set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}}

		snapshot, err := history.DaemonSet().Target().Snapshot(ds)
		if err != nil {
			t.Fatal(err)
		}
		data := snapshot.Data()
		name, hash := history.DaemonSet().Named(ds, data, count)
		if want := controller.ComputeHash(&template, count); hash != want || name != ds.Name+"-"+want {
			t.Fatalf("the revision of a DaemonSet is %s, upstream's %s-%s:\n%s", name, ds.Name, want, data)
		}
		stored := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
		if got := parents.DaemonSet().Named(ds, stored, count); got != name {
			t.Fatalf("the checker calls it %s, not %s", got, name)
		}

		if snapshot, err = history.StatefulSet().Target().Snapshot(set); err != nil {
			t.Fatal(err)
		}
		stored = &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: snapshot.Data()}}
		probe := count
		if probe == nil {
			probe = new(int32) // as the StatefulSet controller begins
		}
		want := upstream.HashControllerRevision(stored, probe)
		name, hash = history.StatefulSet().Named(set, snapshot.Data(), count)
		if hash != want || name != upstream.ControllerRevisionName(set.Name, want) {
			t.Fatalf("the revision of a StatefulSet is %s, upstream's %s: %s", name, want, snapshot.Data())
		}
		if got := parents.StatefulSet().Named(set, stored, count); got != name {
			t.Fatalf("the checker calls it %s, not %s", got, name)
		}
	}
}
