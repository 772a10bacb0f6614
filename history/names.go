package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file names new revisions as kube-controller-manager 1.36 does, so that either of the two controllers finds a
// lost log again by the labels of its children. A name decides nothing else. See
// docs/design/log/2026-11-22-names-of-revisions.md.

// maxName is the length of the longest name that the API server takes.
const maxName = 253

// Naming returns the name and the hash of a new revision that holds data, taken from parent. It is asked only when a
// revision is made.
type Naming func(parent client.Object, data []byte, collisionCount *int32) (name, hash string)

// named is the Naming of kinds that have none of their own.
func named(parent client.Object, data []byte, collisionCount *int32) (name, hash string) {
	hash = revision.Hash(data, collisionCount)
	return revision.Name(parent.GetName(), hash), hash
}

// namedAsDaemonSet hashes the template as a Go value: FNV-32a over its dump, and over the collision count in eight
// bytes, little-endian, if there is one. A field that a new version of the API adds changes every such hash; names of
// revisions that exist are kept all the same.
func namedAsDaemonSet(parent client.Object, data []byte, collisionCount *int32) (name, hash string) {
	ds, ok := parent.(*appsv1.DaemonSet)
	if !ok {
		return named(parent, data, collisionCount)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(ds.Spec.Template))) // a hash never fails to write
	if collisionCount != nil {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(uint32(*collisionCount)))) // its bits, as upstream
	}
	hash = rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
	if name = ds.Name + "-" + hash; len(name) > maxName {
		return revision.Name(ds.Name, hash), hash // upstream records none
	}
	return name, hash
}

// namedAsStatefulSet hashes data: FNV-32, not 32a, over it and the collision count in decimal. No count is a count of
// 0.
func namedAsStatefulSet(parent client.Object, data []byte, collisionCount *int32) (name, hash string) {
	h := fnv.New32()
	_, _ = h.Write(data)
	count := int64(0)
	if collisionCount != nil {
		count = int64(*collisionCount)
	}
	_, _ = h.Write(strconv.AppendInt(nil, count, 10))
	hash = rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
	return revision.Name(parent.GetName(), hash), hash
}

// Genuine reports whether the name of a stored revision of parent follows from its content, as it does for every
// revision that a controller has made. known is false for what nothing can be said of: the built-in controller hashes a
// DaemonSet's template as a value of the Go type of its release.
func (f *Apps) Genuine(parent client.Object, stored *appsv1.ControllerRevision) (genuine, known bool) {
	if f.Foreign {
		return false, false
	}
	of := parent
	if ds, ok := parent.(*appsv1.DaemonSet); ok {
		held := &appsv1.DaemonSet{}
		s, err := f.Versioned.Decode(stored.Data.Raw)
		if err != nil || s.Into(held) != nil {
			return false, false
		}
		held.Name, of = ds.Name, held
	}
	data := [][]byte{stored.Data.Raw}
	var compact bytes.Buffer
	if json.Compact(&compact, stored.Data.Raw) == nil && compact.Len() < len(stored.Data.Raw) {
		data = append(data, compact.Bytes())
	}
	for _, d := range data {
		for count := int32(-1); count < maxProbes; count++ {
			collisions := &count
			if count < 0 {
				collisions = nil
			}
			name, _ := named(of, d, collisions)
			if f.Named != nil {
				name, _ = f.Named(of, d, collisions)
			}
			if name == stored.Name {
				return true, true
			}
		}
	}
	_, daemons := parent.(*appsv1.DaemonSet)
	return false, !daemons
}
