package model

import (
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errVersionOnCreate = errors.New("resourceVersion should not be set on objects to be created")

// create serves a create.
func (s *Server) create(t *table, r Request) (client.Object, error) {
	object, err := t.kind.adopt(r.Object)
	if err != nil {
		return nil, err
	}
	if err := admissible(object, r.Namespace); err != nil {
		return nil, err
	}
	if err := s.admitNamespace(t, object, r.Namespace); err != nil {
		return nil, err
	}
	rest.WipeObjectMetaSystemFields(object)
	dedupOwners(object)
	t.kind.applyDefaults(object)
	if object.GetName() == "" && object.GetGenerateName() != "" {
		return s.createNamed(t, r, object)
	}
	return s.insert(t, r, object)
}

// createNamed creates an object whose name the server makes up.
func (s *Server) createNamed(t *table, r Request, object client.Object) (client.Object, error) {
	var err error
	for range nameAttempts {
		attempt := object.DeepCopyObject().(client.Object)
		attempt.SetName(s.generateName(object.GetGenerateName()))
		var created client.Object
		if created, err = s.insert(t, r, attempt); !apierrors.IsAlreadyExists(err) {
			return created, err
		}
	}
	return nil, err
}

// insert applies the rules of creation and stores the object.
func (s *Server) insert(t *table, r Request, object client.Object) (client.Object, error) {
	object.SetUID(s.uid())
	object.SetCreationTimestamp(s.timestamp())
	hub, err := t.kind.toHub(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := rest.BeforeCreate(t.kind.rules, scope(t, r), hub); err != nil {
		return nil, err //nolint:wrapcheck // what the API server answers
	}
	object, err = t.kind.fromHub(hub)
	if err != nil {
		return nil, unknown(err)
	}
	if object.GetResourceVersion() != "" && !r.DryRun {
		return nil, unknown(errVersionOnCreate)
	}
	if stored, exists := t.records[key(object.GetNamespace(), object.GetName())]; exists {
		conflict := apierrors.NewAlreadyExists(t.kind.Resource.GroupResource(), object.GetName())
		if object.GetGenerateName() != "" {
			conflict = apierrors.NewGenerateNameConflict(t.kind.Resource.GroupResource(), object.GetName(), 1)
		}
		if stored.object.GetDeletionTimestamp() != nil {
			conflict.ErrStatus.Message = "object is being deleted: " + conflict.ErrStatus.Message
		}
		return nil, conflict
	}
	written, err := s.write(t, object, r.DryRun)
	return written, unknown(err)
}

// admissible checks an object against the namespace of its request, and sets it.
func admissible(object client.Object, namespace string) error {
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(namespace, object); err != nil {
		return err //nolint:wrapcheck // what the API server answers
	}
	return nil
}

// admitNamespace refuses creation in a namespace that is being deleted.
func (s *Server) admitNamespace(t *table, object client.Object, namespace string) error {
	if namespace == "" || !s.ending[namespace] {
		return nil
	}
	refusal := apierrors.NewForbidden(t.kind.Resource.GroupResource(), object.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    "NamespaceTerminating", // corev1.NamespaceTerminatingCause
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return refusal
}

// dedupOwners drops owner references that are there twice.
func dedupOwners(object client.Object) {
	given := object.GetOwnerReferences()
	if len(given) < 2 {
		return
	}
	var owners []metav1.OwnerReference
	for _, owner := range given {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return apiequality.Semantic.DeepEqual(o, owner) }) {
			owners = append(owners, owner)
		}
	}
	if len(owners) != len(given) {
		object.SetOwnerReferences(owners)
	}
}

// unknown makes an API status of an error that the API server has no word for.
func unknown(err error) error {
	if err == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Message: err.Error(),
	}}
}
