package model

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The top-level fields of a custom resource that follow rules of their own.
const (
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
	fieldMetadata   = "metadata"
	fieldStatus     = "status"
)

// Schema is what a custom resource definition says of its objects, as far as a Server heeds it. The zero value allows
// everything, as a schema does that preserves unknown fields.
type Schema struct {
	// Default sets defaults. It may change the object. Nil sets none.
	Default func(object *unstructured.Unstructured)
	// Validate finds what is wrong with an object; old is nil when it is created. It must not change them. Nil finds
	// nothing.
	Validate func(object, old *unstructured.Unstructured) field.ErrorList
}

// Custom makes an entry for a custom resource. Its objects are stored as *unstructured.Unstructured.
func Custom(kind schema.GroupVersionKind, resource string, namespaced, status bool, s Schema) Kind {
	r := &customRules{kind: kind, namespaced: namespaced, status: status, schema: s}
	k := Kind{
		Resource:   kind.GroupVersion().WithResource(resource),
		Kind:       kind,
		Namespaced: namespaced,
		Status:     status,
		schema:     s,
		rules:      r,
		newObject: func() client.Object {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(kind)
			return u
		},
	}
	if status {
		k.statusRules = &customStatusRules{r}
	}
	return k
}

// customRules are how the API server treats a custom resource.
type customRules struct {
	kind               schema.GroupVersionKind
	namespaced, status bool
	schema             Schema
}

func (r *customRules) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{r.kind}, false, nil
}
func (r *customRules) Recognizes(kind schema.GroupVersionKind) bool { return kind == r.kind }

func (r *customRules) GenerateName(base string) string               { return base } // the server makes names up itself
func (r *customRules) NamespaceScoped() bool                         { return r.namespaced }
func (r *customRules) AllowCreateOnUpdate(context.Context) bool      { return false }
func (r *customRules) AllowUnconditionalUpdate(context.Context) bool { return false }
func (r *customRules) Canonicalize(runtime.Object)                   {}

func (r *customRules) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

func (r *customRules) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }

func (r *customRules) PrepareForCreate(_ context.Context, object runtime.Object) {
	u := content(object)
	if r.status {
		delete(u.Object, fieldStatus)
	}
	u.SetGeneration(1)
}

func (r *customRules) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	u, before := content(object), content(old)
	if r.status {
		setField(u.Object, fieldStatus, before.Object[fieldStatus])
	}
	if !apiequality.Semantic.DeepEqual(r.desired(u), r.desired(before)) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
}

// desired is the part of an object whose changes its generation counts.
func (r *customRules) desired(u *unstructured.Unstructured) map[string]any {
	desired := make(map[string]any, len(u.Object))
	for name, value := range u.Object {
		if name != fieldMetadata && (name != fieldStatus || !r.status) {
			desired[name] = value
		}
	}
	return desired
}

func (r *customRules) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	u := content(object)
	errs := validation.ValidateObjectMetaAccessor(u, r.namespaced, validation.NameIsDNSSubdomain, field.NewPath(fieldMetadata))
	if r.schema.Validate != nil {
		errs = append(errs, r.schema.Validate(u, nil)...)
	}
	return errs
}

func (r *customRules) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	u, before := content(object), content(old)
	errs := validation.ValidateObjectMetaAccessorUpdate(u, before, field.NewPath(fieldMetadata))
	if r.schema.Validate != nil {
		errs = append(errs, r.schema.Validate(u, before)...)
	}
	return errs
}

// customStatusRules are how the API server treats the status subresource of a custom resource.
type customStatusRules struct{ *customRules }

// PrepareForUpdate takes nothing but the status.
func (r *customStatusRules) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	u := content(object)
	status := u.Object[fieldStatus]
	u.Object = runtime.DeepCopyJSON(content(old).Object)
	setField(u.Object, fieldStatus, status)
}

var errNoMetadata = errors.New("metadata: must be an object")

// content is the content of a custom resource.
func content(object runtime.Object) *unstructured.Unstructured {
	return object.(*unstructured.Unstructured)
}

// coerceMeta brings the metadata of a custom resource into the form in which it is stored. The rest of it follows its
// schema only.
func coerceMeta(u *unstructured.Unstructured) error {
	given, ok := u.Object[fieldMetadata].(map[string]any)
	if !ok {
		return errNoMetadata
	}
	var typed metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &typed); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	coerced, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if typed.CreationTimestamp.IsZero() {
		delete(coerced, "creationTimestamp")
	}
	u.Object[fieldMetadata] = coerced
	return nil
}

// setField sets a field, or drops it if there is no value.
func setField(object map[string]any, name string, value any) {
	if value == nil {
		delete(object, name)
		return
	}
	object[name] = value
}
