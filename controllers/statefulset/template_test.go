package statefulset

// Pods as they are built, as a golden file: what the built-in controller makes of the same template.

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestPodFor(t *testing.T) {
	set := web(data(retain, retain), func(set *appsv1.StatefulSet) {
		set.Spec.Template.Annotations = map[string]string{"note": "of the template"}
		set.Spec.Template.Finalizers = []string{"example.com/wait"}
		set.Spec.Template.Spec.Hostname, set.Spec.Template.Spec.Subdomain = "never", "used"
		set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tmp"}, {Name: "data"}}
	})
	before := set.DeepCopy()
	got, err := yaml.Marshal(podFor(set, source{name: "web-b", template: &set.Spec.Template}, 7))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "pod.yaml", string(got))
	if diff := cmp.Diff(before, set); diff != "" {
		t.Errorf("the set changed:\n%s", diff)
	}
}
