package release

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// This file makes the image of the manager: the program and the certificates that a hook's server may need, and nothing
// else. No shell, no base image, no daemon.

// User is whom the image runs as: what distroless images call "nonroot".
const User = 65532

// Repository is where the image is published.
const Repository = "ghcr.io/cairn-dev/cairn"

// Image writes the image for each of the platforms, all of Linux, as one index: an OCI layout, and the same as an
// archive for "docker load", "ctr images import" or "skopeo". It returns the digest of the index and both paths.
func (r *Release) Image(ctx context.Context, platforms ...Platform) (digest v1.Hash, folder, archive string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := r.image(ctx, p)
		if err != nil {
			return v1.Hash{}, "", "", fmt.Errorf("make the image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
	}
	if digest, err = index.Digest(); err != nil {
		return v1.Hash{}, "", "", err
	}
	folder = filepath.Join(r.Out, "image")
	if err := os.RemoveAll(folder); err != nil {
		return v1.Hash{}, "", "", err
	}
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, "", "", err
	}
	name := Repository + ":" + r.Version
	annotations := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.Version, "io.containerd.image.name": name})
	if err := at.AppendIndex(index, annotations); err != nil {
		return v1.Hash{}, "", "", err
	}
	archive = filepath.Join(r.Out, fmt.Sprintf("cairn_%s_image.tar", r.Version))
	files, err := tree(folder)
	if err != nil {
		return v1.Hash{}, "", "", err
	}
	return digest, folder, archive, create(archive, func(w io.Writer) error { return tarred(w, files, r.Time) })
}

// image is the image for one platform.
func (r *Release) image(ctx context.Context, p Platform) (v1.Image, error) {
	program, err := r.Binary(ctx, p)
	if err != nil {
		return nil, err
	}
	files, err := read(nil, program, "cairn", 0o755)
	if err != nil {
		return nil, err
	}
	var layers []v1.Layer
	for _, part := range [][]file{base(), files} {
		layer, err := r.layer(part)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	blank := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(blank, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.OS, p.Arch, v1.Time{Time: r.Time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", User, User), WorkingDir: "/", Entrypoint: []string{"/cairn"}, Cmd: []string{"manager"},
		Env: []string{"PATH=/"}, Labels: r.labels(),
	}
	return mutate.ConfigFile(image, config)
}

// labels are those that the OCI names.
func (r *Release) labels() map[string]string {
	const at = "org.opencontainers.image."
	return map[string]string{
		at + "title": "cairn", at + "version": r.Version, at + "revision": r.Commit, at + "licenses": "Apache-2.0",
		at + "source": Home, at + "created": r.Time.Format("2006-01-02T15:04:05Z"),
	}
}

// base are the files that a static program may look for.
func base() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot say what one is not good for
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return []file{
		{"etc/", 0o755, nil},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()},
		{"etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%[1]d:%[1]d:nonroot:/:/sbin/nologin\n", User)},
		{"etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", User)},
		{"tmp/", 0o1777, nil},
	}
}

func (r *Release) layer(files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	if err := tarred(&archive, files, r.Time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// tree returns what is in a folder, in the order of the names.
func tree(folder string) ([]file, error) {
	var out []file
	err := filepath.WalkDir(folder, func(at string, d os.DirEntry, err error) error {
		if err != nil || at == folder {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(at, folder+string(filepath.Separator)))
		if d.IsDir() {
			out = append(out, file{name + "/", 0o755, nil})
			return nil
		}
		out, err = read(out, at, name, 0o644)
		return err
	})
	return out, err
}
