package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

//go:embed testdata/created.yaml
var charts string

// TestCreatedObjects compares the pods, claims, revisions and Jobs that cairn creates, field by field, with those that
// kube-controller-manager creates from the same manifests.
func TestCreatedObjects(t *testing.T) {
	e := newEnv(t)
	kinds := []string{"daemonset", "statefulset", "replicaset", "replicationcontroller", "cronjob"}
	theirs := *e
	theirs.namespace = sandboxtest.Namespace(t, e.sandbox)
	theirs.seen = theirs.namespace

	stop := e.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: kinds, AskServer: true})
	ours := e.createCharts()
	stop()
	for _, kind := range kinds {
		theirs.upstreamOf(kind)
	}
	if diff := cmp.Diff(theirs.createCharts(), ours); diff != "" {
		t.Errorf("created objects (-kube-controller-manager +cairn):\n%s", diff)
	}
}

// createCharts creates the charts, waits for their pods, and returns all that was created, by kind and name.
func (e *env) createCharts() map[string]string {
	e.Helper()
	var parents []*unstructured.Unstructured
	for text := range strings.SplitSeq(charts, "\n---\n") {
		o := &unstructured.Unstructured{}
		must(e, yaml.Unmarshal([]byte(text), o))
		o.SetNamespace(e.namespace)
		e.create(o)
		parents = append(parents, o)
	}
	for _, o := range parents {
		if o.GetKind() == "CronJob" {
			e.missed(o)
			continue
		}
		e.eventually("the pods of "+o.GetName(), func() error {
			must(e, e.Get(e.Context(), client.ObjectKeyFromObject(o), o))
			status, _, _ := unstructured.NestedMap(o.Object, "status")
			want, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			there := status["replicas"]
			if o.GetKind() == "DaemonSet" {
				want, _ = status["desiredNumberScheduled"].(int64)
				there = status["currentNumberScheduled"]
			}
			if want == 0 || there != want {
				return fmt.Errorf("status %v", status)
			}
			return nil
		})
	}
	out := map[string]string{}
	for _, gvk := range []metav1.TypeMeta{
		{APIVersion: "v1", Kind: "PodList"},
		{APIVersion: "v1", Kind: "PersistentVolumeClaimList"},
		{APIVersion: "apps/v1", Kind: "ControllerRevisionList"},
		{APIVersion: "batch/v1", Kind: "JobList"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersionKind())
		must(e, e.List(e.Context(), list, client.InNamespace(e.namespace)))
		for i := range list.Items {
			if key, text := e.look(&list.Items[i]); key != "" {
				out[key] += text // pods of one parent that differ in their names only are compared together
			}
		}
	}
	for key, text := range out {
		parts := strings.SplitAfter(text, "\n...\n")
		slices.Sort(parts)
		out[key] = strings.Join(parts, "")
	}
	return out
}

// missed has a suspended CronJob start the Job of a minute that it has missed, and then suspends it again.
func (e *env) missed(o *unstructured.Unstructured) {
	e.Helper()
	last := metav1.NewTime(time.Now().Add(-3 * time.Minute))
	must(e, unstructured.SetNestedField(o.Object, last.UTC().Format(time.RFC3339), "status", "lastScheduleTime"))
	must(e, e.Status().Update(e.Context(), o))
	suspend := func(suspended bool) {
		patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspended)
		must(e, e.Patch(e.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	suspend(false)
	e.eventually("a Job of "+o.GetName(), func() error {
		var jobs batchv1.JobList
		if must(e, e.List(e.Context(), &jobs, client.InNamespace(e.namespace))); len(jobs.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	suspend(true)
}

// random matches the random suffixes of token volumes, and the numbers of nodes.
var random = regexp.MustCompile(`\b(kube-api-access|node)-[a-z0-9]+\b`)

// look returns an object as text, without the fields of the API server, the scheduler and the volume binder.
func (e *env) look(o *unstructured.Unstructured) (key, text string) {
	e.Helper()
	owner := metav1.GetControllerOf(o)
	if owner != nil && (owner.Kind == "Job" || owner.Kind == "CronJob" && o.GetKind() == "ControllerRevision") {
		return "", "" // they are the Job controller's; upstream has none
	}
	name := o.GetName()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	refs := o.GetOwnerReferences()
	for i := range refs {
		refs[i].UID = ""
	}
	o.SetOwnerReferences(refs)
	delete(o.Object, "status")
	annotations := o.GetAnnotations()
	for a := range annotations {
		if strings.HasPrefix(a, "cairn.dev/") || strings.Contains(a, "volume.") || strings.Contains(a, "pv.kubernetes.io") {
			delete(annotations, a) // only revisions have cairn's: docs/differences.md
		}
	}
	if o.SetAnnotations(annotations); len(annotations) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
	switch o.GetKind() {
	case "Pod":
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", "topology.kubernetes.io/zone")
		unstructured.RemoveNestedField(o.Object, "spec", "nodeName")
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumes")
		slices.SortFunc(volumes, func(a, b any) int { // upstream's are in the order of a Go map
			return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
		must(e, unstructured.SetNestedSlice(o.Object, volumes, "spec", "volumes"))
		if owner.Kind != "StatefulSet" {
			name = owner.Name + "-*" // cairn's names of daemon pods are not random: docs/differences.md
			o.SetName(name)
		}
	case "Job":
		name = owner.Name + "-*" // the minute
		o.SetName(name)
		unstructured.RemoveNestedField(o.Object, "spec", "selector")
		for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
			for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
				unstructured.RemoveNestedField(o.Object, append(path, "labels", label)...) // the API server's
			}
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", "controller-revision-hash") // docs/differences.md
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp")
	case "PersistentVolumeClaim":
		unstructured.RemoveNestedField(o.Object, "spec", "volumeName")
	}
	data, err := yaml.Marshal(o.Object)
	must(e, err)
	clean := random.ReplaceAllString(string(data), "$1")
	return o.GetKind() + " " + name, strings.ReplaceAll(clean, e.namespace, "NAMESPACE") + "...\n"
}
