package model

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // defaults and conversions
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // defaults and conversions
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // defaults and conversions
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install" // defaults and conversions
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/kinds"
)

// BuiltIn returns the kinds of Kubernetes that cairn's controllers touch. Their defaults, conversions and rules are
// those of the API server, from k8s.io/kubernetes.
func BuiltIn() []Kind {
	// Alpha in 1.37. The controllers have it, so the simulation plays it.
	recreate := map[string]bool{string(features.StatefulSetRecreateStrategy): true}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(recreate); err != nil {
		panic(err) // Kubernetes no longer has this gate
	}
	return []Kind{
		upstream[appsv1.DaemonSet, apps.DaemonSet](kinds.DaemonSet.Object(),
			daemonset.Strategy, daemonset.StatusStrategy),
		upstream[appsv1.StatefulSet, apps.StatefulSet](kinds.StatefulSet.Object(),
			statefulset.Strategy, statefulset.StatusStrategy),
		upstream[appsv1.ReplicaSet, apps.ReplicaSet](kinds.ReplicaSet.Object(),
			replicaset.Strategy, replicaset.StatusStrategy),
		upstream[appsv1.ControllerRevision, apps.ControllerRevision](kinds.Revision,
			controllerrevision.Strategy, nil),
		upstream[corev1.ReplicationController, core.ReplicationController](kinds.ReplicationController.Object(),
			replicationcontroller.Strategy, replicationcontroller.StatusStrategy),
		podKind(),
		upstream[corev1.PersistentVolumeClaim, core.PersistentVolumeClaim](kinds.Claim,
			persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy),
		upstream[corev1.Node, core.Node](kinds.Node, node.Strategy, node.StatusStrategy),
	}
}

// Batch returns the kinds of batch/v1, made like those of BuiltIn. They are apart because the real Job controller
// writes to every Job at once, so that no sequence of requests has one answer.
func Batch() []Kind {
	return []Kind{
		upstream[batchv1.CronJob, batch.CronJob](kinds.CronJob.Object(), cronjob.Strategy, cronjob.StatusStrategy),
		upstream[batchv1.Job, batch.Job](kinds.Job, job.Strategy, job.StatusStrategy),
	}
}

// NetworkPolicy returns the kind of that name. It stands for all whose objects no controller of ours knows.
func NetworkPolicy() Kind {
	group := networkingv1.SchemeGroupVersion
	return upstream[networkingv1.NetworkPolicy, networking.NetworkPolicy](
		kinds.Object{GVK: group.WithKind("NetworkPolicy"), GVR: group.WithResource("networkpolicies")}, networkpolicy.Strategy, nil)
}

// podKind is the entry of pods.
func podKind() Kind {
	k := upstream[corev1.Pod, core.Pod](kinds.Pod, pod.Strategy, pod.StatusStrategy)
	k.selectable = func(hub runtime.Object) fields.Set {
		return pod.ToSelectableFields(hub.(*core.Pod))
	}
	return k
}

// upstream makes an entry of what k8s.io/kubernetes knows about a kind: V is its published type, H its internal one.
func upstream[V, H any, PV interface {
	*V
	client.Object
}, PH interface {
	*H
	runtime.Object
}](o kinds.Object, r rules, status rest.RESTUpdateStrategy) Kind {
	return Kind{
		Resource:    o.GVR,
		Kind:        o.GVK,
		Namespaced:  r.NamespaceScoped(),
		Status:      status != nil,
		rules:       r,
		statusRules: status,
		newObject:   func() client.Object { return PV(new(V)) },
		newHub:      func() runtime.Object { return PH(new(H)) },
	}
}
