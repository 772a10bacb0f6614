package release

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// This file packs the command line for people: program, licence, manual pages, completions.

// file is one file of an archive or of a layer. A folder has a name that ends in a slash.
type file struct {
	name string
	mode int64
	data []byte
}

// Archive packs the command line for a platform, and returns the path of the archive: a zip for Windows, which opens
// nothing else by itself.
func (r *Release) Archive(ctx context.Context, p Platform) (string, error) {
	files, err := r.contents(ctx, p)
	if err != nil {
		return "", err
	}
	name := filepath.Join(r.Out, r.archiveName(p))
	return name, create(name, func(w io.Writer) error {
		if p.OS == "windows" {
			return zipped(w, files, r.Time)
		}
		return gzipped(w, files, r.Time)
	})
}

func (r *Release) archiveName(p Platform) string {
	kind := ".tar.gz"
	if p.OS == "windows" {
		kind = ".zip"
	}
	return fmt.Sprintf("cairn_%s_%s%s", r.Version, p, kind)
}

// contents are the files of an archive.
func (r *Release) contents(ctx context.Context, p Platform) ([]file, error) {
	program, err := r.Binary(ctx, p)
	if err != nil {
		return nil, err
	}
	out, err := read(nil, program, p.program(), 0o755)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		if out, err = read(out, filepath.Join(r.Source, name), name, 0o644); err != nil {
			return nil, err
		}
	}
	documents, err := r.documents(ctx)
	return append(out, documents...), err
}

// read adds a file of the disk.
func read(files []file, from, name string, mode int64) ([]file, error) {
	data, err := os.ReadFile(from)
	return append(files, file{name, mode, data}), err
}

// shells are those that cobra completes in, with the names under which their completions are looked for.
var shells = []struct{ name, file string }{
	{"bash", "completions/cairn.bash"},
	{"zsh", "completions/_cairn"},
	{"fish", "completions/cairn.fish"},
	{"powershell", "completions/cairn.ps1"},
}

// documents are the manual pages and completions, made once, by the program for this machine.
func (r *Release) documents(ctx context.Context) ([]file, error) {
	var err error
	if r.documented == nil {
		r.documented, err = r.document(ctx)
	}
	return r.documented, err
}

func (r *Release) document(ctx context.Context) ([]file, error) {
	program, err := r.Binary(ctx, host())
	if err != nil {
		return nil, err
	}
	var out []file
	for _, shell := range shells {
		script, err := run(ctx, "", nil, program, "completion", shell.name)
		if err != nil {
			return nil, err
		}
		out = append(out, file{shell.file, 0o644, script})
	}
	// kubectl asks a program of this name what may follow "kubectl cairn".
	asked := filepath.Join(r.Source, "cmd", "cairn", "kubectl_complete-cairn")
	if out, err = read(out, asked, "completions/kubectl_complete-cairn", 0o755); err != nil {
		return nil, err
	}
	pages, err := os.MkdirTemp("", "cairn-man-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(pages)
	env := []string{"GOWORK=off", "CGO_ENABLED=0", fmt.Sprint("SOURCE_DATE_EPOCH=", r.Time.Unix())}
	if _, err := run(ctx, r.Source, env, "go", "run", "-ldflags", "-s -w", "./internal/cli/man", pages); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1")) // sorted
	for _, name := range names {
		if out, err = read(out, name, path.Join("man/man1", filepath.Base(name)), 0o644); err != nil {
			return nil, err
		}
	}
	return out, err
}

// tarred writes files as a tar archive, all of one date, owned by nobody in particular.
func tarred(w io.Writer, files []file, date time.Time) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := out.Write(f.data); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	return out.Close()
}

// gzipped is tarred, compressed.
func gzipped(w io.Writer, files []file, date time.Time) error {
	z := gzip.NewWriter(w)
	if err := tarred(z, files, date); err != nil {
		return err
	}
	return z.Close()
}

func zipped(w io.Writer, files []file, date time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(os.FileMode(f.mode))
		in, err := out.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := in.Write(f.data); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	return out.Close()
}

// save writes a file that is data.
func save(name string, data []byte) error {
	return create(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// create writes a file, whole or not at all.
func create(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a release is for all to read
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(name), ".part-")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	if err := write(part); err != nil {
		part.Close()
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	if err := os.Chmod(part.Name(), 0o644); err != nil { //nolint:gosec // a release is for all to read
		return err
	}
	return os.Rename(part.Name(), name)
}
