package kinds

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is the table.

var apps, batch, core = appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, corev1.SchemeGroupVersion

// What belongs to parents, and what is around them.
var (
	Revision = Object{
		Word: "revision", GVK: apps.WithKind("ControllerRevision"), GVR: apps.WithResource("controllerrevisions"),
		Image: "data.spec.template.spec.containers[0].image",
	}
	Pod = Object{
		Word: "pod", GVK: core.WithKind("Pod"), GVR: core.WithResource("pods"), Image: "spec.containers[0].image",
	}
	Job = Object{
		Word: "job", GVK: batch.WithKind("Job"), GVR: batch.WithResource("jobs"), Image: "spec.template.spec.containers[0].image",
	}
	Claim     = Object{Word: "pvc", GVK: core.WithKind("PersistentVolumeClaim"), GVR: core.WithResource("persistentvolumeclaims")}
	ConfigMap = Object{Word: "configmap", GVK: core.WithKind("ConfigMap"), GVR: core.WithResource("configmaps"), New: object}
	Quota     = Object{Word: "quota", GVK: core.WithKind("ResourceQuota"), GVR: core.WithResource("resourcequotas"), New: object}
	Node      = Object{Word: "node", GVK: core.WithKind("Node"), GVR: core.WithResource("nodes"), Cluster: true}
)

// Parents.
var (
	DaemonSet = Kind{
		Controller: "daemonset",
		Parent:     apps.WithKind("DaemonSet"), Parents: apps.WithResource("daemonsets"),
		Children: Pod.GVR, Revisions: Revision.GVR, Reads: []schema.GroupVersionResource{Node.GVR},
		Selector: matchLabels, New: workload, Options: templated(map[string]string{
			"maxUnavailable": "spec.updateStrategy.rollingUpdate.maxUnavailable",
			"maxSurge":       "spec.updateStrategy.rollingUpdate.maxSurge",
			"strategy":       "spec.updateStrategy.type",
		}),
	}
	StatefulSet = Kind{
		Controller: "statefulset",
		Parent:     apps.WithKind("StatefulSet"), Parents: apps.WithResource("statefulsets"),
		Children: Pod.GVR, Revisions: Revision.GVR, Claims: Claim.GVR,
		Selector: matchLabels, New: workload, Options: templated(map[string]string{
			"replicas":       "spec.replicas",
			"partition":      "spec.updateStrategy.rollingUpdate.partition",
			"maxUnavailable": "spec.updateStrategy.rollingUpdate.maxUnavailable",
			"strategy":       "spec.updateStrategy.type",
			"podManagement":  "spec.podManagementPolicy",
		}),
	}
	ReplicaSet = Kind{
		Controller: "replicaset",
		Parent:     apps.WithKind("ReplicaSet"), Parents: apps.WithResource("replicasets"), Children: Pod.GVR,
		Selector: matchLabels, New: workload, Options: templated(map[string]string{"replicas": "spec.replicas"}),
	}
	ReplicationController = Kind{
		Controller: "replicationcontroller",
		Parent:     core.WithKind("ReplicationController"), Parents: core.WithResource("replicationcontrollers"), Children: Pod.GVR,
		Selector: "spec.selector", New: replicationController, Options: templated(map[string]string{"replicas": "spec.replicas"}),
	}
	CronJob = Kind{
		Controller: "cronjob",
		Parent:     batch.WithKind("CronJob"), Parents: batch.WithResource("cronjobs"),
		Children: Job.GVR, Revisions: Revision.GVR,
		New: cronJob, Options: map[string]string{
			"image":       "spec.jobTemplate.spec.template.spec.containers[0].image",
			"schedule":    "spec.schedule",
			"timeZone":    "spec.timeZone",
			"suspend":     "spec.suspend",
			"concurrency": "spec.concurrencyPolicy",
			"deadline":    "spec.startingDeadlineSeconds",
			"successful":  "spec.successfulJobsHistoryLimit",
			"failed":      "spec.failedJobsHistoryLimit",
			"ttl":         "spec.jobTemplate.spec.ttlSecondsAfterFinished",
		},
	}
)

const matchLabels = "spec.selector.matchLabels"

// Parents are the kinds of parents that Kubernetes has.
func Parents() []Kind {
	return []Kind{DaemonSet, StatefulSet, ReplicaSet, ReplicationController, CronJob}
}

// Objects are all kinds that have a word.
func Objects() []Object {
	var out []Object
	for _, k := range Parents() {
		out = append(out, k.Object())
	}
	return append(out, Revision, Pod, Job, Claim, ConfigMap, Quota, Node)
}

// Served returns the kind whose controller has this name.
func Served(controller string) (Kind, bool) {
	all := Parents()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Controller == controller })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// templated are the options of every kind that has a pod template, and some more.
func templated(more map[string]string) map[string]string {
	out := map[string]string{
		"image":           "spec.template.spec.containers[0].image",
		"minReadySeconds": "spec.minReadySeconds",
		"historyLimit":    "spec.revisionHistoryLimit",
		"readyAfter":      "spec.template.metadata.annotations[sandbox.cairn.dev/ready-after]",
	}
	maps.Copy(out, more)
	return out
}

func object(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

// workload has one container and selects by the label app, which is its name.
func workload(name string) map[string]any {
	labels := map[string]any{"app": name}
	o := object(name)
	o["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": maps.Clone(labels)},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "app:1"}}},
		},
	}
	return o
}

func replicationController(name string) map[string]any {
	o := workload(name)
	if spec, ok := o["spec"].(map[string]any); ok {
		spec["selector"] = map[string]any{"app": name}
	}
	return o
}

// cronJob starts a Job with one container every five minutes.
func cronJob(name string) map[string]any {
	o := object(name)
	o["spec"] = map[string]any{
		"schedule": "*/5 * * * *",
		"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never",
			"containers":    []any{map[string]any{"name": "main", "image": "app:1"}},
		}}}},
	}
	return o
}
