package builder

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file takes snapshots of typed parents. encoding/json writes an empty struct where a user has written nothing
// ("resources": {}), and whoever reads the parent without its Go type, as the command line does, would find it
// different from its own revision; an undo would write it into the parent.

// format is that of apps/v1 ControllerRevisions, with snapshots as a user would write them.
type format struct{ *history.Apps }

// Snapshot implements [history.Format].
func (f format) Snapshot(parent client.Object) (*revision.Snapshot, error) {
	tree, err := treeOf(parent)
	if err != nil {
		return nil, err
	}
	dropUnset(reflect.ValueOf(parent), tree)
	return f.Versioned.Snapshot(tree)
}

// dropUnset removes from the JSON of a value the structs that are zero and may be left out: nothing tells them from
// those that were never written. A pointer to an empty struct (emptyDir: {}) is a choice, and stays.
func dropUnset(v reflect.Value, tree any) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if object, ok := tree.(map[string]any); ok {
			dropUnsetFields(v, object)
		}
	case reflect.Slice:
		list, _ := tree.([]any)
		for i := range min(v.Len(), len(list)) {
			dropUnset(v.Index(i), list[i])
		}
	case reflect.Map:
		object, _ := tree.(map[string]any)
		for _, key := range v.MapKeys() {
			dropUnset(v.MapIndex(key), object[fmt.Sprint(key.Interface())])
		}
	default: // scalars
	}
}

func dropUnsetFields(v reflect.Value, object map[string]any) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "" || strings.Contains(options, "inline"):
			dropUnset(v.Field(i), object)
		case name == "":
		case f.Type.Kind() == reflect.Struct && v.Field(i).IsZero() && strings.Contains(options, "omit"):
			delete(object, name)
		default:
			dropUnset(v.Field(i), object[name])
		}
	}
}
