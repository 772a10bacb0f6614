package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file runs examples/site, an ordinary reconciler that has gained a history.

const siteDir = "../../examples/site"

// site is the program, and a parent.
type site struct {
	*program
	*corev1.ConfigMap
}

func (s *site) image(image string) {
	s.Helper()
	body := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"image":"`+image+`"}}`))
	if err := s.Patch(s.Context(), s.DeepCopy(), body); err != nil {
		s.Fatal(err)
	}
}

// runs waits until the Deployment has an image.
func (s *site) runs(image string) {
	s.Helper()
	s.eventually("the Deployment has "+image, func() error {
		d := &appsv1.Deployment{}
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(s.ConfigMap), d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("it has %s", got)
		}
		return nil
	})
}

// keeps waits until the revisions are just these: number=image, oldest first.
func (s *site) keeps(want string) {
	s.Helper()
	s.eventually("the revisions "+want, func() error {
		var got []string
		for _, r := range s.revisionsOf(s.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"configmap": s.Name}}) {
			_, image, _ := strings.Cut(string(r.Data.Raw), `"image":"`)
			image, _, _ = strings.Cut(image, `"`)
			got = append(got, fmt.Sprintf("%d=%s", r.Revision, image))
		}
		if text := strings.Join(got, " "); text != want {
			return fmt.Errorf("they are %s", text)
		}
		return nil
	})
}

// An ordinary reconciler records what it is asked for before it makes anything of it, and can go back; cairn reads it with nothing set up.
func TestSiteHasAHistory(t *testing.T) {
	s := &site{program: newProgram(t, siteDir, "site")}
	s.ConfigMap = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "blog", Labels: map[string]string{"example.com/site": ""}},
		Data:       map[string]string{"image": "app:1"},
	}
	kill := s.start()
	s.create(s.ConfigMap)
	s.runs("app:1")
	s.image("app:2")
	s.runs("app:2")
	kill()
	s.image("app:3")
	s.start()
	s.runs("app:3")
	s.keeps("1=app:1 2=app:2 3=app:3")
	if out := s.cli("history", "configmap/blog"); !strings.Contains(out, "\n3          *") || strings.Contains(out, "unknown") {
		t.Errorf("cairn history:\n%s", out)
	}
	if out := s.cli("diff", "configmap/blog"); !strings.Contains(out, "+  image: app:3") {
		t.Errorf("cairn diff:\n%s", out)
	}
	if out := s.cli("status", "configmap/blog"); !strings.Contains(out, "it is at revision 3") {
		t.Errorf("cairn status:\n%s", out)
	}
	s.cli("undo", "configmap/blog", "--to-revision", "1")
	s.runs("app:1")
	s.keeps("2=app:2 3=app:3 4=app:1")
	// One that somebody deletes is made again if it is what the parent asks for.
	for _, r := range s.revisionsOf(s.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"configmap": "blog"}}) {
		if r.Revision == 4 {
			if err := s.Delete(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.keeps("2=app:2 3=app:3 4=app:1")
	for n := 4; n <= 14; n++ {
		s.image(fmt.Sprintf("app:%d", n))
		s.runs(fmt.Sprintf("app:%d", n))
	}
	s.keeps("5=app:4 6=app:5 7=app:6 8=app:7 9=app:8 10=app:9 11=app:10 12=app:11 13=app:12 14=app:13 15=app:14")
}

// TestSiteGainsItsHistoryInTenLines counts what main.go has and before/main.go has not, imports and comments apart.
func TestSiteGainsItsHistoryInTenLines(t *testing.T) {
	had := map[string]int{}
	for _, line := range lines(t, "before/main.go") {
		had[line]++
	}
	added := 0
	for _, line := range lines(t, "main.go") {
		if had[line]--; had[line] < 0 && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "\t\"") && line != "" {
			added++
		}
	}
	if added > 10 || added < 5 {
		t.Errorf("%d lines were added", added)
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(siteDir, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
