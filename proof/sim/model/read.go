package model

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find returns the stored object that a request names.
func (t *table) find(r Request) (client.Object, error) {
	stored, exists := t.records[key(r.Namespace, r.Name)]
	if !exists {
		return nil, apierrors.NewNotFound(t.kind.Resource.GroupResource(), r.Name)
	}
	return stored.object, nil
}

// get serves a get.
func (s *Server) get(t *table, r Request) (client.Object, error) {
	if err := s.reached(r.ResourceVersion); err != nil {
		return nil, err
	}
	return t.find(r)
}

// list serves a list.
func (s *Server) list(t *table, r Request) ([]client.Object, error) {
	if err := s.reached(r.ResourceVersion); err != nil {
		return nil, err
	}
	if err := t.kind.checkFields(r.FieldSelector); err != nil {
		return nil, err
	}
	keys := t.within(r.Namespace)
	items := make([]client.Object, 0, len(keys))
	for _, k := range keys {
		object := t.records[k].object
		selected, err := t.kind.selects(object, r.LabelSelector, r.FieldSelector)
		if err != nil {
			return nil, unknown(err)
		}
		if selected {
			items = append(items, object)
		}
	}
	return items, nil
}

// reached refuses to read a state that is not there yet.
func (s *Server) reached(rv string) error {
	want, err := parseRV(rv)
	if err != nil {
		return err
	}
	if want > s.rv {
		return apierrors.NewTimeoutError("Too large resource version", 1)
	}
	return nil
}

// checkFields refuses selectors that name fields which the kind cannot be selected by.
func (k *Kind) checkFields(selector fields.Selector) error {
	if selector == nil {
		return nil
	}
	for _, requirement := range selector.Requirements() {
		var err error
		if k.builtIn() {
			_, _, err = legacyscheme.Scheme.ConvertFieldLabel(k.Kind, requirement.Field, requirement.Value)
		} else if requirement.Field != metadataName && requirement.Field != metadataNamespace {
			return apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return nil
}

// The fields that every kind can be selected by.
const (
	metadataName      = "metadata.name"
	metadataNamespace = "metadata.namespace"
)

// selects tells whether selectors select an object. A nil selector selects every object.
func (k *Kind) selects(object client.Object, byLabel labels.Selector, byField fields.Selector) (bool, error) {
	if byLabel != nil && !byLabel.Matches(labels.Set(object.GetLabels())) {
		return false, nil
	}
	if byField == nil || byField.Empty() {
		return true, nil
	}
	set := fields.Set{metadataName: object.GetName(), metadataNamespace: object.GetNamespace()}
	if k.selectable != nil {
		hub, err := k.toHub(object)
		if err != nil {
			return false, err
		}
		set = k.selectable(hub)
	}
	return byField.Matches(set), nil
}
