package hook

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/bounded"
)

// This file remembers answers. An answer is valid as long as the question stays the same, not for some time: it is used
// again if and only if the hook would be sent the same.

// Memory keeps the last answer of each hook for each parent and revision. It is safe for concurrent use, and one is
// enough for all hooks. Make one with [NewMemory].
type Memory struct {
	answers *bounded.Map[memoryKey, *memory]
}

// Answers for two revisions of one parent are independent, even their etags; so are those of two hooks, which
// controller tells apart: no two [Hook]s have the same.
type memoryKey struct {
	controller *Hook
	parent     types.UID
	revision   string
}

// memory is one answer, decoded, and what it answered. body says what it was made of.
type memory struct {
	question [sha256.Size]byte
	etag     string
	body     [sha256.Size]byte
	answer   any // *Answer or []Rule
	size     int // decoded
}

// NewMemory returns a memory that keeps answers that take at most about limit bytes together, decoded. What is larger
// is not kept, so that its hook is asked on each pass. All memories of a process together should not be given more than
// [MostRemembered].
func NewMemory(limit int) *Memory {
	return &Memory{answers: bounded.New[memoryKey, *memory](limit)}
}

// Forget drops what is remembered of a deleted parent. Otherwise that is dropped when the memory is full.
func (m *Memory) Forget(parent types.UID) { m.answers.Forget(parent) }

// forget drops the answers of a hook.
func (m *Memory) forget(h *Hook) {
	m.answers.Drop(func(k memoryKey) bool { return k.controller == h })
}

// digest returns the content of a question in few bytes. UID and resourceVersion stand for an object; objects without
// them are taken as they are.
func (h *Hook) digest(q *Question) ([sha256.Size]byte, error) {
	d := digester{}
	d.addParent(q)
	for _, part := range []struct {
		name   string
		groups []Group
	}{{"child", h.withDeclared(q.Children)}, {"related", q.Related}} {
		for _, g := range part.groups {
			kind := part.name + " " + kindKey(g.GroupVersionKind)
			d.parts = append(d.parts, kind) // a kind without objects is sent as well
			for _, o := range g.Objects {
				d.add(kind, o, o.GetResourceVersion(), "")
			}
		}
	}
	return d.sum(), d.err
}

// digestCustomize is digest for customize hooks, which get the parent only. Like Metacontroller it looks at what users
// write into a parent, not at its status: that changes with every step of a rollout, and a hook that chose related
// objects by it would be called again by its own effects.
func (h *Hook) digestCustomize(q *Question) ([sha256.Size]byte, error) {
	d := digester{}
	p := q.Parent
	if p.GetGeneration() == 0 {
		d.addParent(q)
		return d.sum(), d.err
	}
	d.parts = append(d.parts, "parent "+join(string(p.GetUID()), strconv.FormatInt(p.GetGeneration(), 10), q.Revision,
		strconv.FormatBool(p.GetDeletionTimestamp() != nil)))
	for name, values := range map[string]map[string]string{"label": p.GetLabels(), "annotation": p.GetAnnotations()} {
		for key, value := range values {
			d.parts = append(d.parts, join(name, key, value))
		}
	}
	return d.sum(), nil
}

// digester collects parts. Their order does not count: the hook gets maps.
type digester struct {
	parts []string
	err   error
}

func (d *digester) addParent(q *Question) {
	version := q.Version
	if version == "" {
		version = q.Parent.GetResourceVersion()
	}
	d.add("parent", q.Parent, version, q.Revision)
}

func (d *digester) add(kind string, o *unstructured.Unstructured, version, revision string) {
	uid := string(o.GetUID())
	if uid != "" && version != "" {
		d.parts = append(d.parts, join(kind, uid, version, revision))
		return
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		d.err = err
	}
	d.parts = append(d.parts, join(kind, string(raw), revision))
}

func (d *digester) sum() [sha256.Size]byte {
	slices.Sort(d.parts)
	d.parts = slices.Compact(d.parts) // the same kind, declared and observed
	hash := sha256.New()
	var length [8]byte
	for _, part := range d.parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// join makes one string of several, so that no two lists make the same.
func join(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(' ')
		b.WriteString(p)
	}
	return b.String()
}
