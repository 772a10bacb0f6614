package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file writes what a hook is sent. It joins objects that are encoded already, so that a pass in which one child of
// a hundred changed encodes one; the bytes are those of encoding/json.

// Question is what a hook is sent for a parent. The hook does not change it, and nothing may change it during the call.
type Question struct {
	// Parent is the parent, restored from Revision if there is one.
	Parent *unstructured.Unstructured
	// Revision names the revision whose field paths Parent was overwritten with. It is empty for the parent as it is. Two
	// revisions of one parent share no remembered answer.
	Revision string
	// Version is the resourceVersion under which Parent is remembered; empty means its own. A caller that wrote the
	// parent's status, and saw no other writer's change since, gives the version from before: the hook need not be called
	// for the status that it answered itself. A hook that is called gets Parent as it is.
	Version string
	// Children are the observed children. Declared kinds that have none may be left out.
	Children []Group
	// Related are the objects that the customize hook asked for. A kind that it asked for and that has no objects is an
	// empty Group.
	Related []Group
	// Again calls in any case, as a resync does.
	Again bool
}

// Group is objects of one kind.
type Group struct {
	schema.GroupVersionKind
	Objects []*unstructured.Unstructured
}

// writer puts one question together.
type writer struct {
	bytes.Buffer
	encoder *Encoder
	version v1alpha1.HookVersion
	parent  *unstructured.Unstructured
}

// objects counts the objects of a question.
func (q *Question) objects() int64 {
	n := 1
	for _, g := range q.Children {
		n += len(g.Objects)
	}
	for _, g := range q.Related {
		n += len(g.Objects)
	}
	return int64(n)
}

// write returns the body of a sync or finalize call.
func (h *Hook) write(q *Question) ([]byte, error) {
	w := &writer{encoder: h.encoder, version: h.version, parent: q.Parent}
	n := q.objects()
	w.Grow(int(n * h.share.Load()))
	defer func() { h.share.Store(int64(w.Len())*9/8/n + 1) }() // a little more than it took
	t := h.controller.Type
	w.begin(h.controller.Object, t.parentField())
	if err := w.asked(q); err != nil {
		return nil, err
	}
	w.key(",", t.childrenField())
	if err := w.groups(h.withDeclared(q.Children), false); err != nil {
		return nil, err
	}
	w.key(",", "related")
	if err := w.groups(q.Related, true); err != nil {
		return nil, err
	}
	w.key(",", "finalizing")
	if h.kind == Finalize {
		w.WriteString("true}")
	} else {
		w.WriteString("false}")
	}
	return w.Bytes(), nil
}

// writeCustomize returns the body of a customize call.
func (h *Hook) writeCustomize(q *Question) ([]byte, error) {
	w := &writer{encoder: h.encoder, version: h.version, parent: q.Parent}
	w.begin(h.controller.Object, "parent")
	if err := w.asked(q); err != nil {
		return nil, err
	}
	w.WriteByte('}')
	return w.Bytes(), nil
}

// withDeclared adds an empty group for each declared kind.
func (h *Hook) withDeclared(groups []Group) []Group {
	all := slices.Clip(groups)
	for _, k := range h.controller.Children {
		all = append(all, Group{GroupVersionKind: k.GroupVersionKind})
	}
	return all
}

func (w *writer) begin(controller json.RawMessage, parentField string) {
	w.key("{", "controller")
	if len(controller) == 0 {
		w.WriteString("null")
	} else {
		w.Write(controller)
	}
	w.key(",", parentField)
}

// key writes a field name that needs no escaping.
func (w *writer) key(before, name string) {
	w.WriteString(before)
	w.WriteByte('"')
	w.WriteString(name)
	w.WriteString(`":`)
}

// asked writes the parent.
func (w *writer) asked(q *Question) error {
	if q.Revision == "" {
		return w.object(q.Parent)
	}
	raw, err := json.Marshal(q.Parent.Object)
	w.Write(raw)
	return err
}

func (w *writer) object(o *unstructured.Unstructured) error {
	raw, err := w.encoder.encode(o)
	w.Write(raw)
	return err
}

// groups writes the map of maps: outer keys are kinds, inner ones are names. Groups of one kind become one entry.
func (w *writer) groups(groups []Group, related bool) error {
	byKind := map[string]map[string]*unstructured.Unstructured{}
	for _, g := range groups {
		kind := kindKey(g.GroupVersionKind)
		objects := byKind[kind]
		if objects == nil {
			objects = make(map[string]*unstructured.Unstructured, len(g.Objects))
			byKind[kind] = objects
		}
		for _, o := range g.Objects {
			if name, ok := objectKey(w.version, w.parent, o, related); ok {
				objects[name] = o
			}
		}
	}
	return writeMap(w, byKind, func(objects map[string]*unstructured.Unstructured) error {
		return writeMap(w, objects, w.object)
	})
}

// writeMap writes a map as encoding/json does, keys sorted.
func writeMap[V any](w *writer, m map[string]V, value func(V) error) error {
	type entry struct {
		key   string
		value V
	}
	entries := make([]entry, 0, len(m))
	for k, v := range m {
		entries = append(entries, entry{k, v})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	w.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			w.WriteByte(',')
		}
		key, err := json.Marshal(e.key)
		if err != nil {
			return err
		}
		w.Write(key)
		w.WriteByte(':')
		if err := value(e.value); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

// kindKey is the key of a kind: Pod.v1, StatefulSet.apps/v1.
func kindKey(k schema.GroupVersionKind) string {
	return k.Kind + "." + k.GroupVersion().String()
}

// objectKey is the key of an object within its kind, and whether the hook gets it at all. In v1, children are named
// relative to the parent, so a namespaced parent's are those of its namespace; all related objects are sent.
func objectKey(v v1alpha1.HookVersion, parent, o *unstructured.Unstructured, related bool) (string, bool) {
	name, namespace := o.GetName(), o.GetNamespace()
	qualified := name
	if namespace != "" {
		qualified = namespace + "/" + name
	}
	if v == v1alpha1.HookVersionV2 {
		return qualified, true
	}
	at := parent.GetNamespace()
	if at == "" {
		return qualified, true
	}
	return name, related || namespace == at
}
