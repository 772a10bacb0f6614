package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/cairn-dev/cairn/release"
)

// here is the platform of this machine; what is tested is of it alone.
var here = release.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}

// version is that of the release that the tests make.
const version = "v0.0.1"

// newRelease returns a release of this repository, with the program that "make build" has made.
func newRelease(t *testing.T) *release.Release {
	t.Helper()
	r, err := release.New(t.Context(), version, "..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.Binaries = t.TempDir()
	program, err := filepath.Abs("../bin/cairn")
	if err == nil {
		_, err = os.Stat(program)
	}
	folder := filepath.Join(r.Binaries, here.String())
	if err := errors.Join(err, os.Mkdir(folder, 0o755), os.Symlink(program, filepath.Join(folder, "cairn"))); err != nil {
		t.Fatal(err, "(make build first)")
	}
	return r
}

// TestVersion: a commit without a tag has a version that Helm, krew and registries take.
func TestVersion(t *testing.T) {
	for said, want := range map[string]string{"v1.2.3": "v1.2.3", "v0.1.0-rc.1": "v0.1.0-rc.1", "01a2b3c-dirty": "v0.0.0-g01a2b3c-dirty", "dev": "v0.0.0-gdev"} {
		if r, err := release.New(t.Context(), said, "..", "dist"); err != nil || r.Version != want {
			t.Errorf("%s: %+v, %v", said, r, err)
		}
	}
}

// TestImage: two builds have one digest, and the program runs in what is unpacked, as the image's user, with nothing
// else there that could be run.
func TestImage(t *testing.T) {
	if here.OS != "linux" {
		t.Skip("the image is of Linux")
	}
	r := newRelease(t)
	digest, folder, archive, err := r.Image(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	again := newRelease(t)
	digestAgain, _, archiveAgain, err := again.Image(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	if digest != digestAgain {
		t.Errorf("two builds: %s and %s", digest, digestAgain)
	}
	if second, err := os.ReadFile(archiveAgain); err != nil || !bytes.Equal(first, second) {
		t.Errorf("two builds, and two archives: %v", err)
	}
	image := theImage(t, folder, digest)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/cairn"}) {
		t.Errorf("it runs %v as %s", c.Entrypoint, c.User)
	}
	root := unpacked(t, image)
	var programs []string
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			programs = append(programs, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil || !slices.Equal(programs, []string{"/cairn"}) {
		t.Errorf("it has the programs %v, %v", programs, err)
	}
	if said := inside(t, root, "/cairn", "version"); !strings.HasPrefix(said, "cairn ") {
		t.Errorf("it says %q", said)
	}
}

// theImage reads the image of this machine out of a layout.
func theImage(t *testing.T, folder string, digest v1.Hash) v1.Image {
	t.Helper()
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	if p := manifest.Manifests[0].Platform; p.OS != here.OS || p.Architecture != here.Arch {
		t.Errorf("it is for %s", p)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpacked writes the files of an image to a folder.
func unpacked(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	for dir := root; dir != "/"; dir = filepath.Dir(dir) { // another user has to reach it
		if err := os.Chmod(dir, 0o755); err != nil {
			break
		}
	}
	files := mutate.Extract(image)
	defer files.Close()
	in := tar.NewReader(files)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		name, mode := filepath.Join(root, filepath.Clean("/"+header.Name)), os.FileMode(header.Mode).Perm()
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, mode)
		} else {
			var data []byte
			data, err = io.ReadAll(in)
			err = errors.Join(err, os.WriteFile(name, data, mode), os.Chmod(name, mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// inside runs a program of a folder: as the image's user, with the folder as the root, if the test may do that.
func inside(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: release.User, Gid: release.User}}
	} else {
		cmd.Path = filepath.Join(root, args[0])
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestArchive: what people download has the program, what it needs to be found and read, and krew takes it.
func TestArchive(t *testing.T) {
	r := newRelease(t)
	archive, err := r.Archive(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, archive)
	for _, want := range []string{
		"cairn", "LICENSE", "README.md", "man/man1/cairn.1", "man/man1/cairn-undo.1",
		"completions/cairn.bash", "completions/_cairn", "completions/cairn.fish", "completions/cairn.ps1", "completions/kubectl_complete-cairn",
	} {
		if len(files[want]) == 0 {
			t.Errorf("%s is missing", want)
		}
	}
	if page := string(files["man/man1/cairn-undo.1"]); !strings.Contains(page, "--to-revision") || !strings.Contains(page, r.Time.Format("Jan 2006")) {
		t.Errorf("the page of undo, of %s: %.300s", r.Time, page)
	}
	if again, err := newRelease(t).Archive(t.Context(), here); err != nil || !bytes.Equal(readFile(t, archive), readFile(t, again)) {
		t.Errorf("two builds, and two archives: %v", err)
	}
	manifest, err := r.Krew(here)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", manifest)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("krew: %v\n%s\n%s", err, out, readFile(t, manifest))
	}
	sums, err := r.Checksums(archive, manifest)
	if err != nil {
		t.Fatal(err)
	}
	sha := exec.CommandContext(t.Context(), "sha256sum", "--check", filepath.Base(sums))
	sha.Dir = r.Out
	if out, err := sha.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

// TestOrigin: the bill of materials is valid SPDX and names what the program is linked from; the provenance names the
// commit and the file.
func TestOrigin(t *testing.T) {
	r := newRelease(t)
	bill, err := r.BillOfMaterials(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(readFile(t, bill)))
	if err == nil {
		err = spdxlib.ValidateDocument(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, p := range doc.Packages {
		names[p.PackageName] = p.PackageVersion
	}
	if names["github.com/cairn-dev/cairn"] != version || names["k8s.io/apimachinery"] == "" || names["std"] != runtime.Version() {
		t.Errorf("it names %v", names)
	}
	provenance, err := r.Provenance(t.Context(), "test", bill)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Subject   []struct{ Name string }
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err := json.Unmarshal(readFile(t, provenance), &said); err != nil {
		t.Fatal(err)
	}
	if said.Subject[0].Name != filepath.Base(bill) || said.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != r.Commit {
		t.Errorf("%+v", said)
	}
}

// contents are the files of an archive, by name.
func contents(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	in := tar.NewReader(z)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err == nil {
			out[header.Name], err = io.ReadAll(in)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
