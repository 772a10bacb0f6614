package inspect

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/cairn-dev/cairn/revision"
)

// This file lists the reasons why a revision is not a default target of an undo.

// unwanted returns a clause about why an entry is not a default target of an undo, empty if it may be one.
func (h *History) unwanted(e Entry) string {
	current := h.Current()
	switch {
	case e.Current:
		return ""
	case e.Unreadable != nil:
		return e.Unreadable.Error()
	case e.Failed != "":
		return "the rollout to it failed"
	case len(e.stored.Completed) > 0 && !e.Completed: // others had been when it was recorded, so its controller watched
		return "its children were never all available"
	case current == nil:
		return ""
	case e.stored.Snapshot != nil && current.stored.Snapshot != nil && restartOnly(e, *current):
		return "it differs from the spec only by a restart"
	case !e.Good && current.stored.Stamp.ParentUID == h.Parent.UID && h.Parent.UID != "" && e.stored.Stamp.ParentUID != h.Parent.UID:
		return "its controller did not record it for this object"
	default:
		return ""
	}
}

// restartedAt is the annotation of the pod template by which kubectl restarts all pods.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// restart is the path of that annotation.
var restart = revision.Path{"spec", "template", "metadata", "annotations", restartedAt}

// restartOnly reports whether two revisions differ only in the time at which the pods were restarted.
func restartOnly(a, b Entry) bool {
	x, errX := a.content()
	y, errY := b.content()
	if errX != nil || errY != nil || bytes.Equal(x, y) || !bytes.Contains(x, []byte(restartedAt)) && !bytes.Contains(y, []byte(restartedAt)) {
		return false
	}
	return bytes.Equal(notRestarted(x), notRestarted(y))
}

// notRestarted removes the time of a restart from the content of a revision.
func notRestarted(text []byte) []byte {
	var tree map[string]any
	if json.Unmarshal(text, &tree) != nil {
		return text
	}
	out, err := json.Marshal(without(tree, restart))
	if err != nil {
		return text
	}
	return out
}

// without returns a tree without a field, and without the maps on the way that are empty then. It does not change tree.
func without(tree map[string]any, path revision.Path) map[string]any {
	out := maps.Clone(tree)
	inner, isMap := tree[path[0]].(map[string]any)
	if len(path) > 1 && !isMap {
		return out
	}
	delete(out, path[0])
	if len(path) > 1 {
		if inner = without(inner, path[1:]); len(inner) > 0 {
			out[path[0]] = inner
		}
	}
	return out
}
