package revision

import (
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
)

// This file names revisions. A name identifies; it never decides whether two snapshots are equal.

// maxPrefix leaves room for a dash and the longest hash in the 253 bytes of a name, and then some: it is the length at
// which Kubernetes cuts, and the names must be the same.
const maxPrefix = 223

// Hash returns the hash under which data is stored: FNV-32a over the data and, if there is one, the decimal collision
// count, safe-encoded so that it holds no vowels and no bad words (proposal, "Hashing"). It is 1 to 10 characters long
// and a valid label value. The built-in kinds have hashes of their own, which package history knows.
func Hash(data []byte, collisionCount *int32) string {
	h := fnv.New32a()
	_, _ = h.Write(data) // a hash never fails to write
	if collisionCount != nil {
		_, _ = h.Write(strconv.AppendInt(nil, int64(*collisionCount), 10))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// Name returns the name of a revision object: prefix-hash, with the prefix cut to 223 bytes. A cut that would end in a
// dot or a dash is shortened further, because "a.-hash" is no valid object name.
func Name(prefix, hash string) string {
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], ".-")
	}
	return prefix + "-" + hash
}

// LabelValue returns the value by which children point at a revision that carries no hash label: its own name, as
// Kubernetes does, or the end of it where the name is longer than the 63 bytes a label value may have. The end holds
// the hash.
func LabelValue(name string) string {
	const maxLabel = 63
	if len(name) <= maxLabel {
		return name
	}
	return strings.TrimLeft(name[len(name)-maxLabel:], ".-")
}
