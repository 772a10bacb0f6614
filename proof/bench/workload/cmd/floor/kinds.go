package main

// This file is the three kinds: what is wanted of one, and its status.

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// parent is an object that wants pods.
type parent struct {
	metav1.Object

	kind     string
	template *corev1.PodTemplateSpec
	// pods is how many are wanted, unavailable how many of them may be so in a rollout.
	pods, unavailable int32
	recorded          bool // it has revisions
	// write writes a status: all pods, those of the template, and those that are Ready.
	write func(ctx context.Context, all, updated, ready int32) error
}

// informed is the informer of a kind, and how to read its objects as parents.
type informed struct {
	informer cache.SharedIndexInformer
	read     func(any) (*parent, bool)
}

// kinds are the kinds by their names.
var kinds = map[string]func(kubernetes.Interface, informers.SharedInformerFactory) informed{
	"daemonset": func(client kubernetes.Interface, all informers.SharedInformerFactory) informed {
		nodes := all.Core().V1().Nodes().Lister()
		return informed{all.Apps().V1().DaemonSets().Informer(), func(o any) (*parent, bool) {
			set, ok := o.(*appsv1.DaemonSet)
			if !ok {
				return nil, false
			}
			found, err := nodes.List(labels.Everything())
			n := int32(len(found))
			return &parent{
				set, "DaemonSet", &set.Spec.Template, n, max(1, n/10), true,
				func(ctx context.Context, all, updated, ready int32) error {
					set := set.DeepCopy()
					s := &set.Status
					s.ObservedGeneration, s.DesiredNumberScheduled, s.CurrentNumberScheduled = set.Generation, n, all
					s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable, s.NumberUnavailable = updated, ready, ready, n-ready
					_, err := client.AppsV1().DaemonSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
					return err
				},
			}, err == nil
		}}
	},
	"statefulset": func(client kubernetes.Interface, all informers.SharedInformerFactory) informed {
		return informed{all.Apps().V1().StatefulSets().Informer(), func(o any) (*parent, bool) {
			set, ok := o.(*appsv1.StatefulSet)
			if !ok {
				return nil, false
			}
			return &parent{
				set, "StatefulSet", &set.Spec.Template, *set.Spec.Replicas, 1, true,
				func(ctx context.Context, all, updated, ready int32) error {
					set := set.DeepCopy()
					s := &set.Status
					s.ObservedGeneration, s.Replicas, s.UpdatedReplicas = set.Generation, all, updated
					s.ReadyReplicas, s.AvailableReplicas = ready, ready
					_, err := client.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
					return err
				},
			}, true
		}}
	},
	"replicaset": func(client kubernetes.Interface, all informers.SharedInformerFactory) informed {
		return informed{all.Apps().V1().ReplicaSets().Informer(), func(o any) (*parent, bool) {
			set, ok := o.(*appsv1.ReplicaSet)
			if !ok {
				return nil, false
			}
			return &parent{
				set, "ReplicaSet", &set.Spec.Template, *set.Spec.Replicas, 0, false,
				func(ctx context.Context, all, updated, ready int32) error {
					set := set.DeepCopy()
					s := &set.Status
					s.ObservedGeneration, s.Replicas, s.FullyLabeledReplicas = set.Generation, all, updated
					s.ReadyReplicas, s.AvailableReplicas = ready, ready
					_, err := client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
					return err
				},
			}, true
		}}
	},
}

// pod is the pod of a number.
func (p *parent) pod(n int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.GetNamespace(), Name: p.name(n), Labels: p.template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, appsv1.SchemeGroupVersion.WithKind(p.kind))},
		},
		Spec: p.template.Spec,
	}
}

func (p *parent) name(n int32) string { return fmt.Sprintf("%s-%d", p.GetName(), n) }

// revision is what such a controller records: the template.
func (p *parent) revision() (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(p.template)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.GetNamespace(), Name: fmt.Sprintf("%s-r%d", p.GetName(), p.GetGeneration()), Labels: p.template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, appsv1.SchemeGroupVersion.WithKind(p.kind))},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: p.GetGeneration(),
	}, err
}
