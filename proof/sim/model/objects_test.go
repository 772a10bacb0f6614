package model_test

// This file holds the objects of the random sequences, and what can be changed in them.

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// edit makes a change, as a merging patch.
func (p *program) edit(k model.Kind) m {
	if p.chance(2) {
		return p.editMeta(k)
	}
	switch kind := k.Kind.Kind; kind {
	case "ControllerRevision":
		return pick(p.random, m{"revision": int64(p.random.IntN(3))}, m{"revision": int64(-1)}, m{"data": m{"spec": "changed"}}, m{"data": m{"spec": m{"z": int64(1), "a": "b"}}}, m{"data": nil})
	case "Pod":
		return p.editPod()
	case claim:
		return pick(p.random, m{"spec": m{"accessModes": []any{"ReadOnlyMany"}}}, m{"spec": m{"resources": m{"requests": m{"storage": pick(p.random, "1Gi", "2Gi")}}}},
			m{"spec": m{"storageClassName": "fast"}}, m{"status": m{"conditions": []any{m{"type": "Resizing", "status": "True"}}}})
	case "Widget", "Gadget":
		return pick(p.random, m{"spec": m{"size": int64(p.random.IntN(3))}}, m{"spec": nil}, m{"spec": m{"deep": m{"er": []any{"x"}}}}, m{"other": "field"},
			m{"status": m{"seen": int64(p.random.IntN(3))}}, m{"status": nil}, m{"spec": m{"size": int64(7)}, "status": m{"seen": int64(8)}})
	default:
		return p.editWorkload(kind)
	}
}

// editMeta changes metadata.
func (p *program) editMeta(k model.Kind) m {
	edits := []m{
		{"labels": m{"tier": pick[any](p.random, "a", "b", nil)}},
		{"labels": m{"app": "web", "tier": "not valid!"}},
		{"annotations": m{"note": pick[any](p.random, "x", "y", "", nil)}},
		{"annotations": nil},
		{"generation": int64(17)},
		{"creationTimestamp": "2020-01-01T00:00:00Z"},
		{"deletionTimestamp": "2020-01-01T00:00:00Z"},
		{"deletionGracePeriodSeconds": int64(3)},
		{"generateName": "other-"},
		{"name": p.prefix + "other"},
		{"namespace": "elsewhere"},
	}
	if k.Kind.Kind != claim {
		edits = append(edits, []m{
			{"finalizers": []any{"cairn.dev/hold"}},
			{"finalizers": []any{}},
			{"finalizers": nil},
			{"finalizers": []any{"nodomain"}},
			{"finalizers": []any{"cairn.dev/hold", "cairn.dev/other"}},
			{"ownerReferences": p.owners(k)},
			{"ownerReferences": p.owners(k)},
			{"ownerReferences": nil},
		}...)
	}
	return m{"metadata": pick(p.random, edits...)}
}

// editWorkload changes a kind with a pod template.
func (p *program) editWorkload(kind string) m {
	image := m{"spec": m{"template": m{"spec": m{"containers": []any{m{"name": "web", "image": pick(p.random, "web:1", "web:2", "")}}}}}}
	edits := []m{
		image, image,
		{"spec": m{"minReadySeconds": int64(p.random.IntN(3))}},
		{"spec": m{"template": m{"metadata": m{"labels": m{"app": "web", "extra": pick[any](p.random, "1", nil)}}}}},
		{"spec": m{"template": m{"metadata": m{"annotations": m{"restarted": pick[any](p.random, "1", "2", nil)}}}}},
		{"spec": m{"selector": m{"matchLabels": m{"app": pick(p.random, "web", "db")}}}},
		{"status": m{"observedGeneration": int64(p.random.IntN(3))}},
		{"status": m{"conditions": []any{m{"type": "Good", "status": "True", "reason": pick(p.random, "A", "B")}}}},
		{"status": m{"observedGeneration": int64(-1)}, "spec": m{"minReadySeconds": int64(5)}},
	}
	replicas := []m{
		{"spec": m{"replicas": int64(p.random.IntN(3))}},
		{"spec": m{"replicas": int64(-1)}},
		{"status": m{"replicas": int64(3), "readyReplicas": int64(p.random.IntN(5))}},
		{"status": m{"replicas": int64(p.random.IntN(3))}, "spec": m{"replicas": int64(9)}},
	}
	switch kind {
	case "DaemonSet":
		edits = append(edits, m{"spec": m{"updateStrategy": m{"type": pick(p.random, "OnDelete", "RollingUpdate", "Never")}}},
			m{"spec": m{"updateStrategy": m{"rollingUpdate": m{"maxUnavailable": pick[any](p.random, int64(2), "30%", "130%", "x")}}}},
			m{"spec": m{"revisionHistoryLimit": int64(p.random.IntN(3) - 1)}},
			m{"metadata": m{"annotations": m{appsv1.DeprecatedTemplateGeneration: pick[any](p.random, "5", "x", nil)}}},
			m{"status": m{"desiredNumberScheduled": int64(p.random.IntN(3) - 1), "collisionCount": int64(p.random.IntN(2))}})
	case "StatefulSet":
		edits = append(append(edits, replicas...), m{"spec": m{"serviceName": pick(p.random, "web", "other")}},
			m{"spec": m{"podManagementPolicy": pick(p.random, "Parallel", "OrderedReady")}},
			m{"spec": m{"updateStrategy": m{"rollingUpdate": m{"partition": int64(p.random.IntN(4) - 1)}}}},
			m{"spec": m{"ordinals": m{"start": int64(p.random.IntN(3))}}},
			m{"spec": m{"persistentVolumeClaimRetentionPolicy": m{"whenDeleted": pick(p.random, "Delete", "Retain", "Maybe")}}},
			m{"spec": m{"revisionHistoryLimit": int64(p.random.IntN(3) - 1)}},
			m{"status": m{"currentReplicas": int64(p.random.IntN(3) - 1), "updateRevision": pick(p.random, "a", "b")}})
	case "ReplicaSet":
		edits = append(edits, replicas...)
	case "ReplicationController":
		edits = append(append(edits, replicas...), m{"spec": m{"selector": m{"app": pick(p.random, "web", "db")}}})
	}
	return pick(p.random, edits...)
}

// editPod changes a pod.
func (p *program) editPod() m {
	return pick(p.random,
		m{"spec": m{"containers": []any{m{"name": "web", "image": pick(p.random, "web:1", "web:2", "")}}}},
		m{"spec": m{"nodeName": pick(p.random, p.prefix+"node", "there")}},
		m{"spec": m{"activeDeadlineSeconds": pick[any](p.random, int64(20), int64(10), int64(0), nil)}},
		m{"spec": m{"terminationGracePeriodSeconds": int64(p.random.IntN(3))}},
		m{"spec": m{"hostname": "h"}},
		m{"spec": m{"schedulingGates": []any{}}},
		m{"status": m{"phase": pick(p.random, "Running", "Failed", "Succeeded", "Pending")}},
		m{"status": m{"phase": "Running", "podIP": "10.0.0.1", "podIPs": []any{m{"ip": "10.0.0.1"}}}},
		m{"status": m{"conditions": []any{m{"type": "Ready", "status": pick(p.random, "True", "False")}}}},
		m{"status": m{"observedGeneration": int64(p.random.IntN(3))}},
		m{"status": m{"message": "m"}, "spec": m{"hostname": "i"}},
	)
}

// fresh is a new object of a kind, without a name. Where the real server's admission plugins would set something it is
// set here.
func fresh(kind string) m {
	podSpec := m{
		"containers":    []any{m{"name": "web", "image": "web:1"}},
		"schedulerName": "nobody",
	}
	template := m{"metadata": m{"labels": m{"app": "web"}}, "spec": podSpec}
	selector := m{"matchLabels": m{"app": "web"}}
	switch kind {
	case "Pod":
		forever := []any{}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			forever = append(forever, m{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
		}
		merge(podSpec, m{
			"serviceAccountName": "default", "automountServiceAccountToken": false, "tolerations": forever,
			"priority": int64(0), "preemptionPolicy": "PreemptLowerPriority",
		})
		return m{"spec": podSpec}
	case "ControllerRevision":
		return m{"revision": int64(1), "data": m{"spec": m{"b": "c", "a": []any{int64(1), int64(2)}}}}
	case claim:
		return m{
			"metadata": m{"finalizers": []any{"kubernetes.io/pvc-protection"}},
			// Of no storage class: the sandbox has a default one, and fills it in by an admission plugin that is not modelled.
			"spec": m{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "", "resources": m{"requests": m{"storage": "1Gi"}}},
		}
	case "ReplicationController":
		return m{"spec": m{"template": template, "selector": m{"app": "web"}}}
	case "StatefulSet":
		return m{"spec": m{"template": template, "selector": selector, "serviceName": "web"}}
	case "Widget", "Gadget":
		return m{"spec": m{"size": int64(1)}, "status": m{"seen": int64(1)}}
	default:
		return m{"spec": m{"template": template, "selector": selector}}
	}
}

// merge merges a patch into an object, as RFC 7386 says.
func merge(object, patch m) {
	for name, value := range patch {
		inner, ok := value.(m)
		switch {
		case value == nil:
			delete(object, name)
		case ok:
			current, _ := object[name].(m)
			if current == nil {
				current = m{}
			} else {
				current = runtime.DeepCopyJSON(current)
			}
			merge(current, inner)
			object[name] = current
		default:
			object[name] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// objectOf makes an object of a kind of its JSON; nil if it is none.
func objectOf(k model.Kind, content m) client.Object {
	var object client.Object = &unstructured.Unstructured{}
	switch k.Kind.Kind {
	case "DaemonSet":
		object = &appsv1.DaemonSet{}
	case "StatefulSet":
		object = &appsv1.StatefulSet{}
	case "ReplicaSet":
		object = &appsv1.ReplicaSet{}
	case "ControllerRevision":
		object = &appsv1.ControllerRevision{}
	case "ReplicationController":
		object = &corev1.ReplicationController{}
	case "Pod":
		object = &corev1.Pod{}
	case claim:
		object = &corev1.PersistentVolumeClaim{}
	}
	content["apiVersion"], content["kind"] = k.Kind.ToAPIVersionAndKind()
	data, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	if json.Unmarshal(data, object) != nil {
		return nil
	}
	return object
}

// contentOf is the JSON of an object.
func contentOf(object client.Object) m {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	return runtime.DeepCopyJSON(content)
}
