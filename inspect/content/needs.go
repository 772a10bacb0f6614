package content

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file finds the objects that pods need: an old template may name a ConfigMap that is deleted by now.

// Need is an object that pods need.
type Need struct {
	// Kind is the kind of the object: a class, or a kind whose objects are in the namespace of the pods.
	Kind schema.GroupVersionKind
	// Name is the name of the object.
	Name string
	// Admission is true if the API server creates no pod while the object is missing. Otherwise the pod does not start.
	Admission bool
}

// AddedNeeds compares all pod specs in two JSON documents, and returns the objects that only the second one needs, by
// kind and name. Errors: a document is not JSON.
func AddedNeeds(before, after []byte) ([]Need, error) {
	has, err := needsIn(before)
	if err != nil {
		return nil, err
	}
	needs, err := needsIn(after)
	if err != nil {
		return nil, err
	}
	needs = slices.DeleteFunc(needs, func(n Need) bool { return slices.Contains(has, n) })
	slices.SortFunc(needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(needs), nil
}

// needsIn returns the objects that the pod specs in a JSON document need.
func needsIn(document []byte) (out []Need, err error) {
	specs, err := podSpecs(document)
	for _, s := range specs {
		out = append(out, s.needs()...)
	}
	return out, err
}

// needs returns the objects without which pods are not created, or do not start.
func (s *podSpec) needs() (out []Need) {
	add := func(kind schema.GroupVersionKind, name string, admission bool) {
		if name != "" {
			out = append(out, Need{kind, name, admission})
		}
	}
	add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), s.account(), true)
	add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), s.PriorityClassName, true)
	add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), s.RuntimeClassName, true)
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil {
			add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), v.PersistentVolumeClaim.ClaimName, false)
		}
	}
	for _, r := range s.references() {
		if !r.Optional {
			add(corev1.SchemeGroupVersion.WithKind(r.kind), r.Name, false)
		}
	}
	return out
}

// reference is a ConfigMap or a Secret that a pod spec names.
type reference struct {
	named

	kind string
}

// references returns the ConfigMaps and Secrets in volumes and in the environment of containers.
func (s *podSpec) references() (out []reference) {
	add := func(configMap, secret *named) {
		if configMap != nil {
			out = append(out, reference{*configMap, "ConfigMap"})
		}
		if secret != nil {
			out = append(out, reference{*secret, "Secret"})
		}
	}
	for _, v := range s.Volumes {
		add(v.ConfigMap, nil)
		if v.Secret != nil {
			add(nil, &named{v.Secret.SecretName, v.Secret.Optional})
		}
		for _, source := range v.Projected.Sources {
			add(source.ConfigMap, source.Secret)
		}
	}
	for _, c := range s.containers() {
		for _, from := range c.EnvFrom {
			add(from.ConfigMapRef, from.SecretRef)
		}
		for _, variable := range c.Env {
			add(variable.ValueFrom.ConfigMapKeyRef, variable.ValueFrom.SecretKeyRef)
		}
	}
	return out
}
