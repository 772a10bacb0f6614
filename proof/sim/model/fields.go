package model

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file brings single top-level fields of an object into the form of JSON, and back. Most patches change one.

// open returns the named top-level fields of an object, as decoded JSON of its own. Nil names all.
func (k *Kind) open(object client.Object, names []string) (map[string]any, error) {
	opened := map[string]any{}
	if u, ok := object.(*unstructured.Unstructured); ok {
		for name, value := range u.Object {
			if names == nil || slices.Contains(names, name) {
				opened[name] = runtime.DeepCopyJSONValue(value)
			}
		}
		return opened, nil
	}
	v := reflect.ValueOf(object).Elem()
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		if name == "" || (names != nil && !slices.Contains(names, name)) {
			continue
		}
		value, err := encodeField(v.Field(i))
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		setField(opened, name, value)
	}
	opened[fieldAPIVersion], opened[fieldKind] = k.Kind.GroupVersion().String(), k.Kind.Kind
	return opened, nil
}

// close sets the named top-level fields of an object that nobody else looks at.
func (k *Kind) close(object client.Object, names []string, fields map[string]any) error {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if names == nil {
			u.Object = fields
		}
		for _, name := range names {
			setField(u.Object, name, fields[name])
		}
		return nil
	}
	v := reflect.ValueOf(object).Elem()
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		if name == "" || (names != nil && !slices.Contains(names, name)) {
			continue
		}
		if err := decodeField(fields[name], v.Field(i)); err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
	}
	return nil
}

// jsonName is the name of a field in JSON; empty for the one that holds kind and version.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// plain tells whether a field is a struct without a JSON form of its own, which takes a shorter way.
func plain(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	_, own := reflect.TypeAssert[json.Unmarshaler](v.Addr())
	return !own
}

func encodeField(v reflect.Value) (any, error) {
	if plain(v) {
		return runtime.DefaultUnstructuredConverter.ToUnstructured(v.Addr().Interface()) //nolint:wrapcheck // open does
	}
	data, err := json.Marshal(v.Addr().Interface())
	if err != nil {
		return nil, err //nolint:wrapcheck // open does
	}
	var value any
	err = utiljson.Unmarshal(data, &value)
	return value, err //nolint:wrapcheck // open does
}

func decodeField(value any, v reflect.Value) error {
	fresh := reflect.New(v.Type())
	object, isObject := value.(map[string]any)
	switch {
	case value == nil:
	case isObject && plain(fresh.Elem()):
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, fresh.Interface()); err != nil {
			return err //nolint:wrapcheck // close does
		}
	default:
		data, err := json.Marshal(value)
		if err != nil {
			return err //nolint:wrapcheck // close does
		}
		if err := json.Unmarshal(data, fresh.Interface()); err != nil {
			return err //nolint:wrapcheck // close does
		}
	}
	v.Set(fresh.Elem())
	return nil
}
