package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file names new revisions as kube-controller-manager 1.37 does. Either of the two controllers finds a lost log
// again by the labels of its children. A name decides nothing else. See
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
	return daemonSetName(ds.Name, ds.Spec.Template)(collisionCount)
}

// daemonSetName returns the name and the hash by the collision count. What costs most, the dump, is made once.
func daemonSetName(ds string, template corev1.PodTemplateSpec) func(collisionCount *int32) (name, hash string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dump.ForHash(template))) // a hash never fails to write
	return func(collisionCount *int32) (name, hash string) {
		sum := h.Sum32()
		if collisionCount != nil {
			for _, b := range binary.LittleEndian.AppendUint64(nil, uint64(uint32(*collisionCount))) { // its bits, as upstream
				const prime = 16777619 // of FNV-32a
				sum = (sum ^ uint32(b)) * prime
			}
		}
		hash = rand.SafeEncodeString(strconv.FormatUint(uint64(sum), 10))
		return daemonSetRevision(ds, hash), hash
	}
}

// namedWith returns the name of a revision of parent by its hash.
func namedWith(parent client.Object) func(hash string) string {
	return func(hash string) string {
		if _, ok := parent.(*appsv1.DaemonSet); ok {
			return daemonSetRevision(parent.GetName(), hash)
		}
		return revision.Name(parent.GetName(), hash)
	}
}

// daemonSetRevision does not cut a name that the API server takes. Upstream records none with a longer name.
func daemonSetRevision(ds, hash string) string {
	if name := ds + "-" + hash; len(name) <= maxName {
		return name
	}
	return revision.Name(ds, hash)
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
	if ds, ok := parent.(*appsv1.DaemonSet); ok {
		var held appsv1.DaemonSet
		if err := utiljson.Unmarshal(stored.Data.Raw, &held); err != nil {
			return false, false
		}
		genuine := probed(stored.Name, daemonSetName(ds.Name, held.Spec.Template))
		return genuine, genuine
	}
	data := [][]byte{stored.Data.Raw}
	var compact bytes.Buffer
	if json.Compact(&compact, stored.Data.Raw) == nil && compact.Len() < len(stored.Data.Raw) {
		data = append(data, compact.Bytes())
	}
	naming := f.Named
	if naming == nil {
		naming = named
	}
	for _, d := range data {
		if probed(stored.Name, func(count *int32) (name, hash string) { return naming(parent, d, count) }) {
			return true, true
		}
	}
	return false, true
}

// probed reports whether a name is one of those that [Log.Create] tries.
func probed(want string, naming func(collisionCount *int32) (name, hash string)) bool {
	if name, _ := naming(nil); name == want {
		return true
	}
	for count := range int32(maxProbes) {
		if name, _ := naming(&count); name == want {
			return true
		}
	}
	return false
}
