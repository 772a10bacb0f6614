package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the API server's own
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch serves a patch, of an object or of its status.
func (s *Server) patch(t *table, r Request) (client.Object, error) {
	p, err := t.kind.readPatch(r)
	if err != nil {
		return nil, err
	}
	stored, err := t.find(r)
	if err != nil {
		return nil, err
	}
	object, err := t.kind.apply(p, stored)
	if err != nil {
		return nil, err
	}
	if err := addressed(object, r); err != nil {
		return nil, err
	}
	dedupOwners(object)
	t.kind.applyDefaults(object)
	hub, err := t.kind.toHub(object)
	if err != nil && r.PatchType != types.StrategicMergePatchType {
		return nil, invalidPatch(err)
	}
	if err != nil {
		return nil, unknown(err)
	}
	return s.replace(t, r, stored, hub)
}

// change is a patch that was read. It looks at a few top-level fields of an object only, so that the others need not be
// brought into the form of JSON and back.
type change struct {
	fields []string // sorted; nil means all
	on     func(object map[string]any) (map[string]any, error)
}

// readPatch reads the patch of a request.
func (k *Kind) readPatch(r Request) (change, error) {
	switch r.PatchType {
	case types.JSONPatchType:
		return readJSONPatch(r.Patch)
	case types.MergePatchType:
		patch, err := readObject(r.Patch)
		if err != nil {
			return change{}, err
		}
		return change{fields: fieldsOf(patch), on: func(object map[string]any) (map[string]any, error) {
			return merge(object, patch), nil
		}}, nil
	case types.StrategicMergePatchType:
		if !k.builtIn() {
			break
		}
		patch, err := readObject(r.Patch)
		if err != nil {
			return change{}, err
		}
		return change{fields: fieldsOf(patch), on: func(object map[string]any) (map[string]any, error) {
			return k.mergeStrategically(object, patch)
		}}, nil
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
	}
	return change{}, apierrors.NewGenericServerResponse(415, r.Verb, k.Resource.GroupResource(), r.Name,
		fmt.Sprintf("the body of the request was in an unknown format: %s", r.PatchType), 0, false)
}

// readObject reads a patch that is an object.
func readObject(patch []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(patch, &object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return object, nil
}

// fieldsOf are the top-level fields that a merging patch changes; nil if it does more than that.
func fieldsOf(patch map[string]any) []string {
	names := slices.Sorted(maps.Keys(patch))
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "$") }) {
		return nil
	}
	return append([]string{}, names...)
}

// merge is RFC 7386. It changes the object.
func merge(object, patch map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, name)
		case isObject:
			current, _ := object[name].(map[string]any)
			object[name] = merge(current, inner)
		default:
			object[name] = value
		}
	}
	return object
}

// mergeStrategically merges with the merge keys and directives of the kind's Go type.
func (k *Kind) mergeStrategically(object, patch map[string]any) (map[string]any, error) {
	tags, err := strategicpatch.NewPatchMetaFromStruct(k.newObject())
	if err != nil {
		return nil, unknown(err)
	}
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, patch, tags)
	switch {
	case slices.Contains(badPatches, err):
		return nil, apierrors.NewBadRequest(err.Error())
	case slices.Contains(misfitPatches, err):
		return nil, unprocessable(err)
	default:
		return merged, unknown(err)
	}
}

// What can be wrong with a strategic merge patch in itself, and with one for the object at hand.
var (
	badPatches = []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	}
	misfitPatches = []error{mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys}
)

// unprocessable is the answer to a patch that cannot be applied to the object.
func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// readJSONPatch reads a patch that is a list of operations.
func readJSONPatch(patch []byte) (change, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return change{}, apierrors.NewBadRequest(err.Error())
	}
	var names []string
	for _, operation := range operations {
		for _, pointer := range []string{"path", "from"} {
			var path string
			if raw := operation[pointer]; raw == nil || json.Unmarshal(*raw, &path) != nil {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return change{fields: slices.Compact(names), on: func(object map[string]any) (map[string]any, error) {
		return operate(object, operations)
	}}, nil
}

// operate applies the operations of a JSON patch.
func operate(object map[string]any, operations jsonpatch.Patch) (map[string]any, error) {
	before, err := json.Marshal(object)
	if err != nil {
		return nil, unknown(err)
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, unprocessable(err)
	}
	var patched map[string]any
	if err := utiljson.Unmarshal(after, &patched); err != nil {
		return nil, invalidPatch(err)
	}
	return patched, nil
}

// invalidPatch is the answer to a patch that makes something that is no object of the kind.
func invalidPatch(err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "", err.Error())})
}

// apply returns a patched copy of an object.
func (k *Kind) apply(p change, stored client.Object) (client.Object, error) {
	object := k.fork(stored)
	before, err := k.open(object, p.fields)
	if err != nil {
		return nil, unknown(err)
	}
	after, err := p.on(before)
	if err != nil {
		return nil, err
	}
	if err := k.close(object, p.fields, after); err != nil {
		return nil, invalidPatch(err)
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		if err := coerceMeta(u); err != nil {
			return nil, invalidPatch(err)
		}
	}
	return object, nil
}
