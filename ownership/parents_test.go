package ownership_test

// Finding parents in a cache, and what a parent's own events do.

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

func selecting(selector *metav1.LabelSelector) option {
	return func(o metav1.Object) {
		if ds, ok := o.(*appsv1.DaemonSet); ok {
			ds.Spec.Selector = selector
		}
	}
}

func parentsIn(r client.Reader) ownership.Parents {
	return ownership.Parents{
		Reader:  r,
		Kind:    daemonSet.GroupKind(),
		New:     func() client.Object { return &appsv1.DaemonSet{} },
		NewList: func() client.ObjectList { return &appsv1.DaemonSetList{} },
		Selector: func(parent client.Object) (labels.Selector, error) {
			ds, ok := parent.(*appsv1.DaemonSet)
			if !ok {
				return nil, errors.New("no DaemonSet")
			}
			return metav1.LabelSelectorAsSelector(ds.Spec.Selector)
		},
	}
}

func TestParents(t *testing.T) {
	x := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sounds"}}}
	s := serve(t,
		parent("one", selecting(x)), parent("two", selecting(x)),
		parent("other", selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}})),
		parent("all", selecting(&metav1.LabelSelector{})), parent("none"), parent("broken", selecting(broken)),
		parent("elsewhere", selecting(x), inNamespace("else")),
	)
	r := parentsIn(s).Router()
	for name, c := range map[string]struct {
		before, after client.Object
		want          []string
	}{
		"an orphan wakes every match of its namespace": {nil, child("c"), []string{"ns/one", "ns/two"}},
		"an orphan that matches nothing":               {nil, child("c", labelled("z")), nil},
		"a child wakes its parent only":                {nil, child("c", ownedBy(parent("two"))), []string{"ns/two"}},
		"a child of an earlier parent":                 {nil, child("c", ownedBy(parent("two", withUID("before")))), nil},
		"a child of a parent that is gone":             {nil, child("c", ownedBy(parent("gone"))), nil},
		"a child that goes":                            {child("c", ownedBy(parent("two"))), nil, []string{"ns/two"}},
		"an orphan that goes":                          {child("c"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, req := range r.Requests(t.Context(), c.before, c.after) {
				got = append(got, req.String())
			}
			want(t, "woken", got, c.want...)
		})
	}
	t.Run("of all namespaces", func(t *testing.T) {
		var got []string
		for _, key := range parentsIn(s).Select(t.Context(), "", func(p client.Object) bool { return parentsIn(s).Matches(p, child("c")) }) {
			got = append(got, key.String())
		}
		want(t, "selected", got, "else/elsewhere", "ns/one", "ns/two")
	})
	t.Run("a cache that cannot be read yet", func(t *testing.T) {
		p := parentsIn(lister(func() error { return errors.New("not started") }))
		if got := p.Select(t.Context(), "", func(client.Object) bool { return true }); got != nil {
			t.Error(got)
		}
	})
}
