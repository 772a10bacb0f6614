package metacontroller

import (
	"crypto/sha1" //nolint:gosec // Metacontroller's names; nothing relies on it being hard to forge
	"encoding/hex"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file names revisions.

const (
	// coreGroup stands for the empty group in names.
	coreGroup = "core"
	// maxPrefix leaves room for a dash and 40 hexadecimal digits in the 253 bytes of a name.
	maxPrefix = 212
)

// Name implements [history.Format]: resource, group, and the SHA-1 of the parent's UID and the data, which is
// Metacontroller's name for it as long as that name is free; Metacontroller would fail for ever.
//
// The prefix is cut to 212 bytes. If it then ends in a dot or a dash, it is cut further, because no part of a name may.
func (f *Format) Name(parent client.Object, s *revision.Snapshot, collisions *int32) string {
	group := f.resource.Group
	if group == "" {
		group = coreGroup
	}
	prefix := f.resource.Resource + "." + group
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], ".-")
	}
	h := sha1.New() //nolint:gosec // as above
	h.Write([]byte(parent.GetUID()))
	h.Write(s.Data())
	if collisions != nil && *collisions > 0 { // the data ends with a brace, so no data looks like other data and a count
		h.Write(strconv.AppendInt(nil, int64(*collisions), 10))
	}
	return prefix + "-" + hex.EncodeToString(h.Sum(nil))
}

// FreeName returns the first free name, and how many names were taken before it, nil for none.
func (f *Format) FreeName(parent client.Object, s *revision.Snapshot, taken func(name string) bool) (name string, collisions *int32) {
	for name = f.Name(parent, s, nil); taken(name); name = f.Name(parent, s, collisions) {
		if collisions == nil {
			collisions = new(int32)
		}
		*collisions++
	}
	return name, collisions
}
