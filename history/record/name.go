package record

import (
	"crypto/sha1" //nolint:gosec // Metacontroller's names; nothing relies on it being hard to forge
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/revision"
)

// This file names revisions.

const (
	// coreGroup stands for the empty group in names.
	coreGroup = "core"
	// maxPrefix leaves room for a dash and 40 hexadecimal digits in the 253 bytes of a name.
	maxPrefix = 212
)

// Name returns the name of the revision that stores s for the parent with that UID: resource, group, and the SHA-1 of the
// UID and the data, which is Metacontroller's name for it as long as probe is 0. Where an object that is something else
// has that name already ([Format.Holds]) the caller counts probe up until a name is free; Metacontroller would fail for
// ever.
//
// The prefix is cut to 212 bytes. A cut that would end in a dot or a dash goes on, because no name may have that.
func (f *Format) Name(parent types.UID, s *revision.Snapshot, probe int) string {
	group := f.resource.Group
	if group == "" {
		group = coreGroup
	}
	prefix := f.resource.Resource + "." + group
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], ".-")
	}
	h := sha1.New() //nolint:gosec // as above
	h.Write([]byte(parent))
	h.Write(s.Data())
	if probe > 0 { // the data ends with a brace, so no data looks like other data and a count
		h.Write(strconv.AppendInt(nil, int64(probe), 10))
	}
	return prefix + "-" + hex.EncodeToString(h.Sum(nil))
}

// FreeName returns the first name that is not taken, and its probe, for [Format.New].
func (f *Format) FreeName(parent types.UID, s *revision.Snapshot, taken func(name string) bool) (name string, probe int) {
	for name = f.Name(parent, s, 0); taken(name); name = f.Name(parent, s, probe) {
		probe++
	}
	return name, probe
}
