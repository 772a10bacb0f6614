package release_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestGoInstall: "go install" of the commit that is checked out works from an empty folder, through a proxy that serves
// it, and the program knows its version. A replace line in go.mod, or a package that is not of the module, would fail.
func TestGoInstall(t *testing.T) {
	const path = "github.com/cairn-dev/cairn"
	commit := output(t, "..", "git", "log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--abbrev=12", "--format=%H %cd %h")
	words := strings.Fields(commit)
	stamp, err := time.Parse("20060102150405", words[1])
	if err != nil {
		t.Fatal(err)
	}
	m := module.Version{Path: path, Version: "v0.0.0-test.c" + words[2]}
	proxy := serve(t, m, words[0], stamp)
	cache := strings.TrimSpace(output(t, ".", "go", "env", "GOMODCACHE"))
	forget := func() {
		files, err := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", m.Version+"*"))
		if err != nil {
			t.Error(err)
		}
		for _, at := range append(files, filepath.Join(cache, path+"@"+m.Version)) {
			_ = filepath.WalkDir(at, func(name string, _ os.DirEntry, _ error) error { return os.Chmod(name, 0o755) })
			if err := os.RemoveAll(at); err != nil {
				t.Error(err)
			}
		}
	}
	forget()
	t.Cleanup(forget)
	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "-ldflags", "-s -w", path+"/cmd/cairn@"+m.Version)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOBIN="+bin, "GONOSUMDB="+path,
		"GOPROXY=file://"+proxy+","+strings.TrimSpace(output(t, ".", "go", "env", "GOPROXY")))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := output(t, bin, "./cairn", "version"); !strings.HasPrefix(said, "cairn "+m.Version+" ") {
		t.Errorf("it says %q", said)
	}
}

// serve writes what a module proxy serves of one version, and returns the folder.
func serve(t *testing.T, m module.Version, commit string, date time.Time) string {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, m.Path, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := os.Create(filepath.Join(folder, m.Version+".zip"))
	if err == nil {
		err = errors.Join(zip.CreateFromVCS(sources, m, source, commit, ""), sources.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": date})
	if err != nil {
		t.Fatal(err)
	}
	mod := output(t, "..", "git", "show", commit+":go.mod")
	for name, data := range map[string][]byte{
		m.Version + ".info": info, m.Version + ".mod": []byte(mod), "list": []byte(m.Version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TZ=UTC")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
