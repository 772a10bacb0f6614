package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
)

// This file has ReplicaSets and ReplicationControllers, with upstream's Deployment controller and garbage collector on
// top.

func (e *env) replicaCairn() (stop func()) {
	e.Helper()
	return e.cairnWith(func(*rest.Config) {}, manager.Options{Controllers: []string{"replicaset", "replicationcontroller"}, AskServer: true})
}

// replicaUpstream runs the upstream controllers of both kinds.
func (e *env) replicaUpstream() (stop func()) {
	e.Helper()
	first, second := e.upstreamOf(sandbox.ReplicaSet), e.upstreamOf(sandbox.ReplicationController)
	return func() {
		first()
		second()
	}
}

// appTemplate is the template of one container.
func appTemplate(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// replicaSet returns a ReplicaSet that is not created yet.
func (e *env) replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	template := appTemplate(name, "app:1")
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		},
	}
}

// replicationController returns a ReplicationController that is not created yet.
func (e *env) replicationController(name string, replicas int32) *corev1.ReplicationController {
	template := appTemplate(name, "app:1")
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       corev1.ReplicationControllerSpec{Replicas: &replicas, Selector: template.Labels, Template: &template},
	}
}

// rescale scales as an autoscaler does, through the subresource.
func (e *env) rescale(o client.Object, replicas int32) {
	e.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	must(e, e.SubResource("scale").Patch(e.Context(), o, patch, client.WithSubResourceBody(&autoscalingv1.Scale{})))
}

// replicasReady waits until a parent of app=<name> says that it has so many ready pods, and has just those.
func (e *env) replicasReady(o client.Object, want int) {
	e.Helper()
	e.eventually(fmt.Sprintf("wait for %d pods of %s", want, o.GetName()), func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		var observed int64
		var counts [4]int32
		switch o := o.(type) {
		case *appsv1.ReplicaSet:
			observed = o.Status.ObservedGeneration
			counts = [4]int32{o.Status.Replicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas, o.Status.FullyLabeledReplicas}
		case *corev1.ReplicationController:
			observed = o.Status.ObservedGeneration
			counts = [4]int32{o.Status.Replicas, o.Status.ReadyReplicas, o.Status.AvailableReplicas, o.Status.FullyLabeledReplicas}
		}
		n := int32(want)
		if pods := e.appPods(o.GetName()); observed < o.GetGeneration() || counts != [4]int32{n, n, n, n} || len(pods) != want {
			return errorf("generation %d of %d, replicas, ready, available and fully labeled are %v, %d pods", observed, o.GetGeneration(), counts, len(pods))
		}
		return nil
	})
}

// appPods returns the pods of app=<name>, those that are going left out.
func (e *env) appPods(name string) map[string]corev1.Pod {
	e.Helper()
	return e.podsOf(e.namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}})
}

// TestDeployment: upstream's Deployment controller rolls on our ReplicaSets, inside its budget, and rolls back; and the
// garbage collector takes all of it away.
func TestDeployment(t *testing.T) {
	e := newEnv(t)
	e.replicaCairn()
	one := intstr.FromInt32(1)
	d := e.deployment("web", "app:1", 4)
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &one, MaxSurge: &one}
	e.create(d)
	e.deployed(d)
	t.Run("rolls and rolls back", func(t *testing.T) { e.with(t).rollsAndRollsBack(d) })
	must(t, e.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	e.eventually("wait until all is gone", func() error {
		var pods corev1.PodList
		if err := e.List(t.Context(), &pods, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) || len(pods.Items) > 0 {
			return errorf("%d pods, Deployment: %v", len(pods.Items), err)
		}
		return nil
	})
}

// with is e for a part of its test.
func (e *env) with(t *testing.T) *env {
	t.Helper()
	part := *e
	part.T = t
	return &part
}

// rollsAndRollsBack changes the image of a Deployment and takes that back, inside its budget.
func (e *env) rollsAndRollsBack(d *appsv1.Deployment) {
	e.Helper()
	// The Deployment controller counts its surge in what it asked for: while one ReplicaSet has not taken away what it no
	// longer has to have, the other one makes what it has to have now.
	e.budgetOf(d.Name, d.Namespace, d.Spec.Selector, 4, 3, 8)
	sets := map[string]string{}
	for i, image := range []string{"app:2", "app:1"} {
		e.eventually("edit the Deployment", func() error {
			if err := e.Get(e.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}
			d.Spec.Template.Spec.Containers[0].Image = image
			return e.Update(e.Context(), d)
		})
		e.deployed(d)
		for name, pod := range e.appPods("web") {
			if pod.Spec.Containers[0].Image != image || pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "" ||
				len(strings.Split(name, "-")) != 3 {
				e.Errorf("pod %s runs %s, labels %v", name, pod.Spec.Containers[0].Image, pod.Labels)
			}
		}
		var list appsv1.ReplicaSetList
		must(e, e.List(e.Context(), &list, client.InNamespace(e.namespace)))
		for _, set := range list.Items {
			sets[set.Spec.Template.Spec.Containers[0].Image] = set.Annotations["deployment.kubernetes.io/revision"]
		}
		want := map[string]string{"app:1": "1", "app:2": "2"}
		if i == 1 { // the first ReplicaSet is used again
			want["app:1"] = "3"
		}
		if !maps.Equal(sets, want) || len(list.Items) != 2 {
			e.Errorf("ReplicaSets %v, want %v", sets, want)
		}
	}
}

// deployment returns a Deployment that is not created yet.
func (e *env) deployment(name, image string, replicas int32) *appsv1.Deployment {
	template := appTemplate(name, image)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
}

// deployed waits for what kubectl rollout status asks of a Deployment.
func (e *env) deployed(d *appsv1.Deployment) {
	e.Helper()
	e.eventually("wait for the rollout of "+d.Name, func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		s, n := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != n || s.Replicas != n || s.AvailableReplicas != n {
			return errorf("generation %d, status %+v", d.Generation, s)
		}
		return nil
	})
}

// parents are the parents of both kinds.
func (e *env) parents(name string, replicas int32) map[string]client.Object {
	return map[string]client.Object{
		"ReplicaSet": e.replicaSet(name+"-rs", replicas), "ReplicationController": e.replicationController(name+"-rc", replicas),
	}
}

// TestReplicasHandover: neither the way to cairn nor the way back touches a pod, at rest or half-way up, where a quota
// stopped the first controller and the second goes on.
func TestReplicasHandover(t *testing.T) {
	for name, c := range map[string]struct{ first, second func(*env) func() }{
		"upstream to cairn": {(*env).replicaUpstream, (*env).replicaCairn},
		"cairn to upstream": {(*env).replicaCairn, (*env).replicaUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			stop := c.first(e)
			parents := e.parents("web", 3)
			for _, o := range parents {
				e.create(o)
				e.replicasReady(o, 3)
			}
			stop()
			before := map[string]map[string]corev1.Pod{}
			for kind, o := range parents {
				before[kind] = e.appPods(o.GetName())
			}
			stop = c.second(e)
			for kind, o := range parents {
				e.touch(o)
				e.replicasReady(o, 3)
				e.sameVersions(kind, before[kind], e.appPods(o.GetName()))
			}

			quota := &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "few"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("8")}},
			}
			e.create(quota)
			e.eventually("wait for the quota", func() error {
				if err := e.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) == 0 {
					return errorf("%v, status %v", err, quota.Status)
				}
				return nil
			})
			for kind, o := range parents {
				e.rescale(o, 6)
				e.eventually("wait for the condition of the "+kind, func() error { return e.failing(o, "FailedCreate", "exceeded quota") })
			}
			stop()
			half := map[string]map[string]corev1.Pod{}
			for kind, o := range parents {
				half[kind] = e.appPods(o.GetName())
			}
			if got := len(half["ReplicaSet"]) + len(half["ReplicationController"]); got != 8 {
				t.Errorf("%d pods under a quota of 8", got)
			}
			must(t, e.Delete(t.Context(), quota))
			c.first(e)
			for kind, o := range parents {
				e.replicasReady(o, 6)
				after := e.appPods(o.GetName())
				for name, pod := range half[kind] {
					if after[name].UID != pod.UID {
						t.Errorf("%s was replaced", name)
					}
				}
				e.eventually("wait until the condition is gone", func() error {
					if err := e.failing(o, "FailedCreate", ""); err == nil {
						return errorf("it is there")
					}
					return nil
				})
			}
		})
	}
}

// touch changes the spec of a parent where it makes no difference to any pod, so that the controller looks again.
func (e *env) touch(o client.Object) {
	e.Helper()
	e.eventually("edit "+o.GetName(), func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		switch o := o.(type) {
		case *appsv1.ReplicaSet:
			o.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(29))
		case *corev1.ReplicationController:
			o.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(29))
		}
		return e.Update(e.Context(), o)
	})
}

// failing returns an error unless the condition ReplicaFailure has a reason, and some words in its message.
func (e *env) failing(o client.Object, reason, words string) error {
	e.Helper()
	if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	var got []string
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		for _, c := range o.Status.Conditions {
			got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	case *corev1.ReplicationController:
		for _, c := range o.Status.Conditions {
			got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "ReplicaFailure True "+reason+": ") || !strings.Contains(got[0], words) {
		return errorf("conditions %q", got)
	}
	return nil
}

// TestAPodIsAdoptedAndReleased: an orphan that matches is taken in place of a new pod, and one whose labels match no
// more is released and replaced.
func TestAPodIsAdoptedAndReleased(t *testing.T) {
	e := newEnv(t)
	e.replicaCairn()
	template := appTemplate("web", "app:0")
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "orphan", Labels: template.Labels}, Spec: template.Spec,
	}
	e.create(orphan)
	rs := e.replicaSet("web", 1)
	e.create(rs)
	e.eventually("the orphan is adopted", func() error {
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan); err != nil || !metav1.IsControlledBy(orphan, rs) {
			return errorf("its owners are %v, %v", orphan.OwnerReferences, err)
		}
		return nil
	})
	e.replicasReady(rs, 1)
	must(t, e.Patch(t.Context(), orphan, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`))))
	e.eventually("the pod is released", func() error {
		if err := e.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan); err != nil || len(orphan.OwnerReferences) > 0 {
			return errorf("its owners are %v, %v", orphan.OwnerReferences, err)
		}
		return nil
	})
	e.replicasReady(rs, 1)
}
