package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestServiceAccountOf(t *testing.T) {
	p := &HistoryPolicy{}
	if got, err := ServiceAccountOf(p); err != nil || got != (types.NamespacedName{}) {
		t.Error(got, err)
	}
	for text, want := range map[string]types.NamespacedName{
		"team/runner":    {Namespace: "team", Name: "runner"},
		"team/run.ner-1": {Namespace: "team", Name: "run.ner-1"},
		"":               {},
		"runner":         {},
		"/runner":        {},
		"team/":          {},
		"team/a/b":       {},
		"team/Runner":    {},
		"te.am/runner":   {},
		"team/a:b":       {},
	} {
		p.Annotations = map[string]string{ServiceAccountAnnotation: text}
		if got, err := ServiceAccountOf(p); got != want || (err == nil) != (want != types.NamespacedName{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
