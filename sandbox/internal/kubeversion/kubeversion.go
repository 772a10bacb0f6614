// Package kubeversion makes every Kubernetes package that is linked into a binary report the release it was really
// built from. Import it for its effect, or for Version.
//
// A Kubernetes release gets its version from linker flags; the published modules carry a placeholder. Without this
// package the API server and kubectl would call themselves v0.0.0-master, `kubectl version` would warn about a skew of
// 37 minor versions, and `go test` and a binary built without flags would differ from one built by the Makefile.
package kubeversion

import (
	"fmt"
	_ "unsafe" // for go:linkname

	_ "k8s.io/client-go/pkg/version" // has the client variables below
	"k8s.io/component-base/version"
)

// Version is the Kubernetes release that go.mod selects: the version of k8s.io/kubernetes. k8s.io/client-go and the
// other published libraries are at v0.37.2. A test compares it with the build information of the binary.
const Version = "v1.37.2"

// The variables below are the ones the Kubernetes release scripts set with `-ldflags -X`; they are unexported and have
// no other door. SetDynamicVersion, the exported setter, refuses any version that is not equal in major, minor and
// patch to the value these hold.
var (
	//go:linkname baseVersion k8s.io/component-base/version.gitVersion
	baseVersion string
	//go:linkname baseMajor k8s.io/component-base/version.gitMajor
	baseMajor string
	//go:linkname baseMinor k8s.io/component-base/version.gitMinor
	baseMinor string
	//go:linkname baseTree k8s.io/component-base/version.gitTreeState
	baseTree string
	//go:linkname baseCommit k8s.io/component-base/version.gitCommit
	baseCommit string

	//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
	clientVersion string
	//go:linkname clientMajor k8s.io/client-go/pkg/version.gitMajor
	clientMajor string
	//go:linkname clientMinor k8s.io/client-go/pkg/version.gitMinor
	clientMinor string
	//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
	clientCommit string
)

func init() { //nolint:gochecknoinits // the point of the package is that nobody has to call it
	for _, v := range []*string{&baseVersion, &clientVersion} {
		*v = Version
	}
	for _, v := range []*string{&baseMajor, &clientMajor} {
		*v = "1"
	}
	for _, v := range []*string{&baseMinor, &clientMinor} {
		*v = "37"
	}
	// The module proxy does not say which commit a module was cut from, so we say nothing.
	baseCommit, clientCommit = "", ""
	baseTree = "clean"

	// component-base copied the placeholder in its own init, before this one ran.
	if err := version.SetDynamicVersion(Version); err != nil {
		panic(fmt.Sprintf("kubeversion: %v", err))
	}
}
