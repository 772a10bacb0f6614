package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// This file says what a release is of, and builds its programs.

// Release is one version of cairn, made from one commit.
type Release struct {
	// Version is the tag: v0.1.0.
	Version string
	// Source is the folder of the repository, Out the one that everything is written to.
	Source, Out string
	// Commit is the hash of the commit, Time when it was made. Every file of the release has that date.
	Commit string
	Time   time.Time
	// Binaries is a folder with programs that are built already, as linux_amd64/cairn. Empty means that they are built.
	Binaries string

	// built are the programs that this release has built, documented what it has made of the manual pages and completions.
	built      map[Platform]string
	documented []file
}

// New returns the release of the commit that is checked out in source. A version that is no semantic one, as that of a
// commit without a tag, becomes a prerelease: v0.0.0-g1a2b3c4.
func New(ctx context.Context, version, source, out string) (*Release, error) {
	said, err := run(ctx, source, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, fmt.Errorf("which commit is it: %w", err)
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("when was commit %s made: %w", commit, err)
	}
	if !semver.IsValid(version) {
		version = "v0.0.0-g" + version
	}
	return &Release{
		Version: version, Source: source, Out: out, Commit: commit, Time: time.Unix(unix, 0).UTC(), built: map[Platform]string{},
	}, nil
}

// Platform is what a program runs on, as Go calls it.
type Platform struct{ OS, Arch string }

// Platforms are those that the command line is released for. The image is for those of Linux.
func Platforms() []Platform {
	return []Platform{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
	}
}

func (p Platform) String() string { return p.OS + "_" + p.Arch }

// program is what the command line is called.
func (p Platform) program() string {
	if p.OS == "windows" {
		return "cairn.exe"
	}
	return "cairn"
}

// Binary builds the program for a platform, once, and returns its path. It is built as "go install" would, by the root
// module alone, without C, symbols, and paths of this machine.
func (r *Release) Binary(ctx context.Context, p Platform) (string, error) {
	if r.Binaries != "" {
		return filepath.Join(r.Binaries, p.String(), p.program()), nil
	}
	path, err := filepath.Abs(filepath.Join(r.Out, "programs", p.String(), p.program()))
	if err != nil {
		return "", err
	}
	if r.built[p] == path {
		return path, nil
	}
	env := []string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Arch, "GOAMD64=v1", "GOARM64=v8.0"}
	_, err = run(ctx, r.Source, env, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+r.Version, "-o", path, "./cmd/cairn")
	if err == nil {
		r.built[p] = path
	}
	return path, err
}

// host is the platform of this machine.
func host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

// run runs a command in a folder and returns what it prints. The error has what it prints as errors.
func run(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}
