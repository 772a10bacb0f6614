package cli_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is the world of objects that are run by others, and of pods that cannot become ready.

// settled returns a Deployment that has given up, a ReplicaSet that may not create pods, Jobs, and a ConfigMap.
func settled() []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1, Labels: map[string]string{"app": "web"}}
	}
	owned := func(name string, by client.Object, kind schema.GroupVersionKind) metav1.ObjectMeta {
		m := meta(name)
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(by, kind)}
		return m
	}
	deployment, replicaSet := appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	api := &appsv1.Deployment{ObjectMeta: meta("api"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template("api:2"),
	}}
	api.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, Conditions: []appsv1.DeploymentCondition{{
		Type: "Progressing", Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: `ReplicaSet "api-5d8f" has timed out progressing.`,
	}}}
	set := &appsv1.ReplicaSet{ObjectMeta: owned("api-5d8f", api, deployment), Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": "5d8f"}}, Template: template("api:2"),
	}}
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1"}
	set.Spec.Template.Labels["pod-template-hash"] = "5d8f"
	nowhere, crashing := &corev1.Pod{ObjectMeta: owned("api-5d8f-a", set, replicaSet)}, &corev1.Pod{ObjectMeta: owned("api-5d8f-b", set, replicaSet)}
	nowhere.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/5 nodes are available: 5 Insufficient cpu.",
	}}
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", RestartCount: 4, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"},
	}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
	refused := &appsv1.ReplicaSet{ObjectMeta: meta("alone"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Template: template("a:1")}}
	refused.Status.ObservedGeneration = 1
	running := &batchv1.Job{ObjectMeta: meta("backup"), Spec: batchv1.JobSpec{BackoffLimit: new(int32(6))}}
	running.Status = batchv1.JobStatus{Active: 1, StartTime: &metav1.Time{Time: now}}
	worker := &corev1.Pod{ObjectMeta: owned("backup-x", running, batchv1.SchemeGroupVersion.WithKind("Job"))}
	worker.Spec.NodeName, worker.Status.Phase = "n1", corev1.PodPending
	failed := &batchv1.Job{ObjectMeta: meta("broken")}
	failed.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit",
	}}
	return []client.Object{
		api, set, nowhere, crashing, refused, running, worker, failed, &corev1.ConfigMap{ObjectMeta: meta("plain")},
		&corev1.Event{
			ObjectMeta: meta("e1"), InvolvedObject: corev1.ObjectReference{UID: "alone"}, Type: corev1.EventTypeWarning, Reason: "FailedCreate",
			Message:       `Error creating: pods "alone-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`,
			LastTimestamp: metav1.NewTime(now.Add(-time.Minute)),
		},
	}
}
