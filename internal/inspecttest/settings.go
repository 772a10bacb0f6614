package inspecttest

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// Settings is a parent of a kind with neither generation nor status, whose revisions do not say what is made from them.
func Settings(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "settings-uid"},
		Data:       data,
	}
}

// RecordedOf returns a revision of a parent.
func RecordedOf(t *testing.T, parent *corev1.ConfigMap, number int64, uid types.UID) *appsv1.ControllerRevision {
	t.Helper()
	target, err := revision.FieldPaths(nil, revision.Path{"data"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	named := revision.Hash(s.Data(), nil)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings-" + named, UID: uid,
			Labels:          map[string]string{"configmap": "settings", appsv1.ControllerRevisionHashLabelKey: named},
			Annotations:     map[string]string{history.FieldPathsAnnotation: "data"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Data: runtime.RawExtension{Raw: s.Data()}, Revision: number,
	}
}
