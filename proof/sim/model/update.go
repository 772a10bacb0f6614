package model

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errModified is the reason in every optimistic lock conflict.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// update serves an update, of an object or of its status.
func (s *Server) update(t *table, r Request) (client.Object, error) {
	object, err := t.kind.adopt(r.Object)
	if err != nil {
		return nil, err
	}
	if err := addressed(object, r); err != nil {
		return nil, err
	}
	dedupOwners(object)
	t.kind.applyDefaults(object)
	hub, err := t.kind.toHub(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	stored, err := t.find(r)
	if err != nil {
		return nil, err
	}
	if uid := object.GetUID(); uid != "" {
		if err := checkPreconditions(t, stored, &metav1.Preconditions{UID: &uid}); err != nil {
			return nil, err
		}
	}
	return s.replace(t, r, stored, hub)
}

// addressed checks an object against the name and the namespace in its request, and sets the namespace.
func addressed(object client.Object, r Request) error {
	if object.GetName() != r.Name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), r.Name))
	}
	return admissible(object, r.Namespace)
}

// replace applies the rules of an update and stores the object, which comes in the internal version. The last finalizer
// of an object that is being deleted takes the object with it.
func (s *Server) replace(t *table, r Request, stored client.Object, hub runtime.Object) (client.Object, error) {
	rules := t.kind.updateRules(r.Subresource)
	wanted, err := meta.Accessor(hub)
	if err != nil {
		return nil, unknown(err)
	}
	given, err := parseRV(wanted.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	switch {
	case given == 0 && rules.AllowUnconditionalUpdate(scope(t, r)):
		wanted.SetResourceVersion(stored.GetResourceVersion())
	case given == 0:
		return nil, apierrors.NewInvalid(t.kind.Kind.GroupKind(), r.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata").Child("resourceVersion"), given, "must be specified for an update"),
		})
	case formatRV(given) != stored.GetResourceVersion():
		return nil, apierrors.NewConflict(t.kind.Resource.GroupResource(), r.Name, errModified)
	}
	old, err := t.kind.toHub(stored)
	if err != nil {
		return nil, unknown(err)
	}
	if err := rest.BeforeUpdate(rules, scope(t, r), hub, old); err != nil {
		return nil, err //nolint:wrapcheck // what the API server answers
	}
	object, err := t.kind.fromHub(hub)
	if err != nil {
		return nil, unknown(err)
	}
	if len(object.GetFinalizers()) == 0 && deletable(stored) {
		s.drop(t, stored, r.DryRun)
		return object, nil
	}
	written, err := s.write(t, object, r.DryRun)
	return written, unknown(err)
}

// deletable tells whether nothing but finalizers holds an object.
func deletable(object client.Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return object.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

// checkPreconditions compares an object to what a request wants it to be.
func checkPreconditions(t *table, stored client.Object, want *metav1.Preconditions) error {
	if want == nil {
		return nil
	}
	resource := t.kind.Resource.GroupResource()
	if want.UID != nil && *want.UID != stored.GetUID() {
		return apierrors.NewConflict(resource, stored.GetName(),
			fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", *want.UID, stored.GetUID()))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(resource, stored.GetName(),
			fmt.Errorf("precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s",
				*want.ResourceVersion, stored.GetResourceVersion()))
	}
	return nil
}

// bind serves a create of pods/binding: it gives a pod its node.
func (s *Server) bind(t *table, r Request) (client.Object, error) {
	binding, ok := r.Object.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", r.Object))
	}
	if binding.Name != r.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if binding.Target.Name == "" || (binding.Target.Kind != "" && binding.Target.Kind != "Node") {
		return nil, unknown(errors.New("target: must be the name of a Node"))
	}
	stored, err := t.find(r)
	if err != nil {
		return nil, err
	}
	want := metav1.Preconditions{}
	if binding.UID != "" {
		want.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		want.ResourceVersion = &binding.ResourceVersion
	}
	if err := checkPreconditions(t, stored, &want); err != nil {
		return nil, err
	}
	pod := stored.(*corev1.Pod).DeepCopy()
	if err := assign(pod, binding, s.timestamp()); err != nil {
		return nil, apierrors.NewConflict(schemaBinding, r.Name, err)
	}
	written, err := s.write(t, pod, r.DryRun)
	return written, unknown(err)
}

// schemaBinding is what a refused binding names.
var schemaBinding = corev1.Resource("pods/binding")

// assign changes a pod as its binding says.
func assign(pod *corev1.Pod, binding *corev1.Binding, now metav1.Time) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.NominatedNodeName = ""
	for name, value := range binding.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, value)
	}
	for name, value := range binding.Labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, name, value)
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type != corev1.PodScheduled {
			continue
		}
		if condition.Status != corev1.ConditionTrue {
			condition.LastTransitionTime = now
		}
		since := condition.LastTransitionTime
		*condition = corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: since}
		return nil
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now,
	})
	return nil
}
