package replicaset

import (
	"encoding/binary"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"
)

// This file names pods. It is pure.

const (
	// alphabet leaves out vowels and what looks like one, as the names that the API server generates do.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength is how many letters of it end a name: about 14 million names for a parent.
	suffixLength = 5
	// maxPrefix keeps names short enough to be host names.
	maxPrefix = 63 - suffixLength
)

// names returns the first n free names of a parent's sequence. The sequence follows from the UID: a parent that is
// recreated under the same name has another one. It has more names than there can be pods, so that the search ends.
// Names whose create got no response come first: see [unanswered]. One that a pod had before is given to no other: see
// [gone].
func names(parent string, uid types.UID, n int, asked []string, taken, had func(name string) bool) []string {
	var out []string
	chosen := map[string]bool{}
	for _, name := range asked {
		if len(out) < n && !taken(name) {
			chosen[name] = true
			out = append(out, name)
		}
	}
	for i := uint64(0); len(out) < n; i++ {
		name := prefix(parent) + suffix(uid, i)
		if chosen[name] || had != nil && had(name) || taken(name) {
			continue
		}
		chosen[name] = true
		out = append(out, name)
	}
	return out
}

func prefix(parent string) string {
	p := parent + "-"
	return p[:min(len(p), maxPrefix)]
}

// suffix is the i-th of the sequence. Two may be the same; the second is passed over.
func suffix(uid types.UID, i uint64) string {
	h := fnv.New64a()
	_, _ = h.Write(append([]byte(uid), 0))
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, i))
	sum := h.Sum64()
	sum ^= sum >> 32 // the low digits alone hardly depend on the first bytes
	out := make([]byte, suffixLength)
	for j := range out {
		out[j] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(out)
}
