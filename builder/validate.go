package builder

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file refuses what cannot work before the controller starts. Without it, such mistakes are found when pods are
// rolled over and over, or never: docs/design/log/2026-11-23-a-controller-as-a-value.md.

// described is a controller that was found to be sound.
type described struct {
	versioned

	kinds []childKind
	// rolled are those of them that belong to revisions.
	rolled []schema.GroupVersionKind
}

// childKind is what a rule is about.
type childKind struct {
	Rule

	gvk      schema.GroupVersionKind
	resource schema.GroupResource
}

// rolls reports whether the controller of a kind replaces pods by itself.
func rolls(kind schema.GroupKind) bool {
	return kind.Group == appsv1.GroupName && (kind.Kind == "Deployment" || kind.Kind == "StatefulSet" || kind.Kind == "DaemonSet")
}

// describe checks a controller, and asks the API server about its kinds. The error joins all that is wrong.
func (c Controller[P]) describe(scheme *runtime.Scheme, mapper meta.RESTMapper) (*described, error) {
	v, err := describeParent(scheme, mapper, c.Parent, c.Versions, arguments{"field Parent", "field Versions"})
	errs := []error{err}
	d := &described{versioned: v}
	if c.Children == nil {
		errs = append(errs, errors.New("field Children is not set: it has to return the children that a parent wants"))
	}
	if len(c.Owns) == 0 {
		errs = append(errs, errors.New("field Owns is empty: it has to name the kinds of children"))
	}
	if c.Workers < 0 {
		errs = append(errs, fmt.Errorf("field Workers is %d: it has to be positive, or zero for the usual number", c.Workers))
	}
	seen := map[schema.GroupVersionKind]bool{}
	for i, rule := range c.Owns {
		if isNil(rule.kind) {
			errs = append(errs, fmt.Errorf("field Owns[%d] is not a valid rule: make it with builder.Rolled", i))
			continue
		}
		gvk, resource, err := served(scheme, mapper, rule.kind)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %w", i, err))
		case seen[gvk]:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %s is listed twice", i, gvk.Kind))
		case !rule.applied && !rule.named && rolls(gvk.GroupKind()):
			errs = append(errs, fmt.Errorf("field Owns[%d]: a %s rolls its own pods, and deleting one takes them all down: make the rule with "+
				"builder.Applied, or NamedByRevision, so that the new one is there before the old one goes", i, gvk.Kind))
		case rule.applied && rule.named:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %s is applied, and NamedByRevision is for kinds that are rolled", i, gvk.Kind))
		}
		seen[gvk] = true
		d.kinds = append(d.kinds, childKind{rule, gvk, resource})
		if !rule.applied {
			d.rolled = append(d.rolled, gvk)
		}
	}
	return d, errors.Join(errs...)
}
