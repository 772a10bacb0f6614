package fault_test

import (
	"fmt"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/internal/catset"
)

// This file has a policy change pods when they are created, as service meshes, storage operators and cloud providers
// do. Each pod is made once for each template, whatever becomes of it, and nothing is deleted for what somebody else
// has changed.

// changes are expressions for JSON patches of pods.
func changes() map[string]string {
	return map[string]string{
		"labels":          `[JSONPatch{op: 'add', path: '/metadata/labels/mesh', value: 'on'}]`,
		"a volume":        `[JSONPatch{op: 'add', path: '/spec/volumes/-', value: Object.spec.volumes{name: 'certs', emptyDir: Object.spec.volumes.emptyDir{}}}]`,
		"a sidecar":       `[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'proxy', image: 'proxy:1'}}]`,
		"a node selector": `[JSONPatch{op: 'add', path: '/spec/nodeSelector/kubernetes.io~1os', value: 'linux'}]`,
		"a toleration":    `[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{key: 'spot', operator: 'Exists'}}]`,
		"a claim":         `object.metadata.labels['app'] != 'statefulset' ? [] : [JSONPatch{op: 'replace', path: '/spec/volumes/0/persistentVolumeClaim/claimName', value: 'restored-' + object.spec.volumes[0].persistentVolumeClaim.claimName}]`,
		"grace periods":   `[JSONPatch{op: 'replace', path: '/spec/terminationGracePeriodSeconds', value: 7}]`,
	}
}

// quiet is for how long nothing may be deleted or made once all is there.
const quiet = 4 * time.Second

func (a *labs) testChanged(t *testing.T) {
	for what, patches := range changes() {
		if !full && what != "a claim" {
			continue
		}
		t.Run("pods get "+what, func(t *testing.T) {
			t.Parallel()
			a.lab(t, false).changed(patches)
		})
	}
}

func (l *lab) changed(patches string) {
	all := oneOfEach(2)
	for i := range 2 {
		l.claim(fmt.Sprintf("restored-data-statefulset-%d", i))
	}
	// The service account's token is a volume, and the API server tolerates a node that is not ready for some minutes:
	// both lists are there before a policy looks.
	l.mutate("has(object.metadata.ownerReferences)", patches)
	began := l.now()
	for _, p := range all {
		l.create(p, withClaimTemplate(p))
	}
	for _, image := range []string{"app:1", "app:2"} {
		if image == "app:2" {
			for _, p := range all {
				l.image(p, image)
			}
		}
		for _, p := range all {
			if p.name == "replicaset" && image == "app:2" {
				continue // a ReplicaSet never replaces a pod for its template
			}
			l.until(p.name+" with "+image, func() error { return l.ready(p, p.pods, image) })
		}
	}
	time.Sleep(quiet) //nolint:forbidigo // nothing marks the end of a time in which nothing may happen
	for _, p := range all {
		templates := 2
		if p.name == "replicaset" {
			templates = 1
		}
		made, deleted := l.count(began, p, writes("create", "pods")), l.count(began, p, writes("delete", "pods"))
		if made > templates*p.pods || deleted > (templates-1)*p.pods {
			l.Errorf("%s has made %d pods and deleted %d, want %d and %d\n%s", p.name, made, deleted, templates*p.pods, (templates-1)*p.pods, l.tail())
		}
	}
}

// withClaimTemplate gives a StatefulSet a claim for each pod.
func withClaimTemplate(p parent) map[string]any {
	if p.name != "statefulset" {
		return nil
	}
	return map[string]any{"volumeClaimTemplates": []any{map[string]any{
		"metadata": map[string]any{"name": "data"},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		},
	}}}
}

// claim makes a claim of nobody's.
func (l *lab) claim(name string) {
	l.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := l.client.CoreV1().PersistentVolumeClaims(l.namespace).Create(l.Context(), claim, metav1.CreateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// testDryRuns refuses dry runs only. What the API server will not say is not known; it is no difference, and nothing is
// deleted for it.
func (a *labs) testDryRuns(t *testing.T) {
	t.Parallel()
	l := a.lab(t, false, func(o *manager.Options) { o.Controllers, o.FieldManager = []string{"composite"}, applier })
	p := oneOfEach(2)[3]
	p.pods = catReplicas
	o := catset.New(l.namespace, p.name, catset.Together, catReplicas, "app:1")
	if _, err := l.of(p).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.until("the first pods", func() error { return l.ready(p, p.pods, "app:1") })
	dry := "has(request.dryRun) && request.dryRun"
	l.deny(registrationv1.OperationAll, "pods", dry, func() error { return l.probe(registrationv1.Update, "pods") })
	before := uids(l.pods(p))
	began := l.now()
	l.stop()
	l.start()
	time.Sleep(window()) //nolint:forbidigo // nothing marks the end of a time in which nothing may happen
	if n := l.count(began, p, writes("delete", "pods")); n > 0 {
		t.Errorf("%d pods were deleted because a dry run was refused", n)
	}
	if after := uids(l.pods(p)); after != before {
		t.Errorf("the pods were %s and are %s", before, after)
	}
	dryRuns := l.count(began, p, func(r fault.Request) bool { return r.DryRun })
	if most := began.allowed() * p.pods; dryRuns > most {
		t.Errorf("%d dry runs were asked for, want at most %d", dryRuns, most)
	}
}

func uids(pods []corev1.Pod) (out string) {
	for _, pod := range pods {
		out += fmt.Sprintf("%s=%s ", pod.Name, pod.UID)
	}
	return out
}

// testSlow has a webhook think for some seconds about each pod: every pod is made once, and the parents get all of
// theirs.
func (a *labs) testSlow(t *testing.T) {
	t.Parallel()
	l := a.lab(t, false)
	l.review(review{verb: registrationv1.Create, resource: "pods", slow: 3 * time.Second, timeout: 30})
	began := l.now()
	all := oneOfEach(2)
	for _, p := range all {
		l.create(p, nil)
	}
	for _, p := range all {
		l.until("the pods of "+p.name, func() error { return l.ready(p, p.pods, "app:1") })
	}
	for _, p := range all {
		if n := l.count(began, p, writes("create", "pods")); n != p.pods {
			t.Errorf("%s has asked for %d pods, want %d\n%s", p.name, n, p.pods, l.tail())
		}
		if n := l.count(began, p, writes("delete", "pods")); n != 0 {
			t.Errorf("%s has deleted %d pods", p.name, n)
		}
	}
}
