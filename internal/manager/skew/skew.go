// Package skew compares the Kubernetes types that were compiled in with the API server that they are used on. A typed
// client drops fields that its types do not have: a controller would then create pods, and record snapshots, without
// fields that a user has set, and report nothing.
//
// What may not come in: what to do about it. That is the manager's.
package skew

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

const (
	// types is the minor version of the types, if the build does not say it: 1.37 for k8s.io/api v0.37. A test compares it
	// with go.mod.
	types = 37
	// Oldest is the minor version of the oldest API server that is supported. Resource versions of older ones may not be
	// compared.
	Oldest = 34
	// Tolerated is by how many minor versions an API server may be newer than the types: what cluster administrators are
	// used to from Kubernetes' own components, and long enough to upgrade these.
	Tolerated = 1
)

// Types returns the minor version of the Kubernetes types that were compiled in: 37 for those of Kubernetes 1.37.
func Types() int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return types
	}
	for _, module := range info.Deps {
		if module.Path != "k8s.io/api" {
			continue
		}
		if module.Replace != nil {
			module = module.Replace
		}
		if minor, err := strconv.Atoi(strings.Split(module.Version+"..", ".")[1]); err == nil {
			return minor
		}
	}
	return types
}

// Skew says how far an API server and the types are apart.
type Skew struct {
	// Server and Types are minor versions.
	Server, Types int
}

// Newer returns by how many minor versions the API server is newer than the types; below zero it is older.
func (s Skew) Newer() int { return s.Server - s.Types }

// TooNew reports whether typed controllers could lose much of what the API server knows.
func (s Skew) TooNew() bool { return s.Newer() > Tolerated }

// TooOld reports whether the API server is older than any that is supported.
func (s Skew) TooOld() bool { return s.Server < Oldest }

// Of asks an API server for its version, and compares.
func Of(ctx context.Context, server rest.Interface) (Skew, error) {
	raw, err := server.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return Skew{}, err
	}
	var is version.Info
	if err := json.Unmarshal(raw, &is); err != nil {
		return Skew{}, fmt.Errorf("read the API server's version: %w", err)
	}
	// Some distributions say "36+".
	minor, err := strconv.Atoi(strings.TrimRightFunc(is.Minor, func(r rune) bool { return r < '0' || r > '9' }))
	if err != nil || is.Major != "1" {
		return Skew{}, fmt.Errorf("the API server calls itself %s (%q.%q), which is not a supported version", is.GitVersion, is.Major, is.Minor)
	}
	return Skew{Server: minor, Types: Types()}, nil
}
