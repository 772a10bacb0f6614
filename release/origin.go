package release

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// This file says what a release is made of, and where it comes from.

// Home is where the source is.
const Home = "https://github.com/cairn-dev/cairn"

// BillOfMaterials writes what a program is made of, as SPDX: the modules that its linker has noted in it.
func (r *Release) BillOfMaterials(ctx context.Context, p Platform) (string, error) {
	program, err := r.Binary(ctx, p)
	if err != nil {
		return "", err
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("what is %s made of: %w", program, err)
	}
	digest, err := sum(program)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("cairn_%s_%s", r.Version, p)
	main := r.module("cairn", &debug.Module{Path: built.Main.Path, Version: r.Version})
	main.PackageLicenseDeclared, main.PackageChecksums = "Apache-2.0", []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: Home + "/releases/download/" + r.Version + "/" + name + ".spdx.json#" + digest[:16],
		CreationInfo: &spdx.CreationInfo{
			Created: r.Time.Format("2006-01-02T15:04:05Z"), Creators: []common.Creator{{CreatorType: "Organization", Creator: "cairn"}},
		},
		Packages:      []*spdx.Package{main},
		Relationships: []*spdx.Relationship{related("DOCUMENT", "DESCRIBES", main)},
	}
	modules := append([]*debug.Module{{Path: "std", Version: built.GoVersion}}, built.Deps...)
	for i, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		part := r.module(common.ElementID(fmt.Sprint("module-", i)), m)
		doc.Packages = append(doc.Packages, part)
		doc.Relationships = append(doc.Relationships, related(main.PackageSPDXIdentifier, "DEPENDS_ON", part))
	}
	out := filepath.Join(r.Out, name+".spdx.json")
	return out, writeJSON(out, doc)
}

// module is a Go module as a package of SPDX.
func (r *Release) module(id common.ElementID, m *debug.Module) *spdx.Package {
	const unknown = "NOASSERTION"
	return &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: id, PackageVersion: m.Version, PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{
			{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + m.Path + "@" + m.Version},
		},
	}
}

func related(from common.ElementID, how string, to *spdx.Package) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: how, RefB: common.MakeDocElementID("", string(to.PackageSPDXIdentifier)),
	}
}

// statement is an in-toto statement about files of a release: https://in-toto.io/Statement/v1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []artifact `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type artifact struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// provenance is https://slsa.dev/provenance/v1, as far as the files alone can say it. Whoever publishes a release adds
// who built it, and signs.
type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []artifact        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder map[string]string `json:"builder"`
	} `json:"runDetails"`
}

// Provenance writes from what, and how, files of the release were made, in SLSA's format.
func (r *Release) Provenance(ctx context.Context, builder string, files ...string) (string, error) {
	goVersion, err := run(ctx, r.Source, nil, "go", "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range files {
		digest, err := sum(name)
		if err != nil {
			return "", err
		}
		s.Subject = append(s.Subject, artifact{Name: filepath.Base(name), Digest: map[string]string{"sha256": digest}})
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = Home + "/blob/main/release"
	d.ExternalParameters = map[string]string{"command": "make release VERSION=" + r.Version}
	d.InternalParameters = map[string]string{"go": strings.TrimSpace(string(goVersion))}
	d.ResolvedDependencies = []artifact{{URI: "git+" + Home, Digest: map[string]string{"gitCommit": r.Commit}}}
	s.Predicate.RunDetails.Builder = map[string]string{"id": builder}
	out := filepath.Join(r.Out, fmt.Sprintf("cairn_%s_provenance.json", r.Version))
	return out, writeJSON(out, s)
}

// Checksums writes the SHA-256 of files as "sha256sum --check" reads it.
func (r *Release) Checksums(files ...string) (string, error) {
	var out strings.Builder
	for _, name := range files {
		digest, err := sum(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s  %s\n", digest, filepath.Base(name))
	}
	name := filepath.Join(r.Out, "checksums.txt")
	return name, save(name, []byte(out.String()))
}

// sum is the SHA-256 of a file.
func sum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeJSON(name string, v any) error {
	return create(name, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(v)
	})
}
