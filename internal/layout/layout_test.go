package layout_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is where the repository begins.
const root = "../.."

// TestLayout walks through all modules with the rules of rules_test.go.
func TestLayout(t *testing.T) {
	files := readFiles(t)
	t.Logf("%d files", len(files))
	for name, check := range map[string]func([]file) []string{
		"imports":  checkImports,
		"pure":     checkPure,
		"names":    checkNames,
		"comments": checkComments,
		"lengths":  checkLengths,
	} {
		t.Run(name, func(t *testing.T) { report(t, check(files)) })
	}
	t.Run("deps", func(t *testing.T) { report(t, checkDeps(readDeps(t))) })
	t.Run("replace", func(t *testing.T) { report(t, checkReplace(t, filepath.Join(root, "go.mod"))) })
}

func report(t *testing.T, broken []string) {
	t.Helper()
	for _, sentence := range broken {
		t.Error(sentence)
	}
}

// readFiles parses every Go file of the repository, whatever its build tags, but not what the go command ignores.
func readFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			ignored := base == "testdata" || base == "vendor" || base == "bin"
			if name != root && (ignored || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(base) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parseFile(filepath.ToSlash(inside), src)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readDeps returns what every package of the pure rooms reaches, by its folder.
func readDeps(t *testing.T) map[string][]string {
	t.Helper()
	deps := map[string][]string{}
	for _, room := range pureRooms {
		// -e: a package that does not compile is another test's business.
		out := run(t, "go", "list", "-e", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, modulePath+"/"+room+"/...")
		for line := range strings.Lines(out) {
			words := strings.Fields(line)
			deps[strings.TrimPrefix(words[0], modulePath+"/")] = words[1:]
		}
		if len(deps[room]) == 0 {
			t.Errorf("go list knows nothing that package %s reaches: it is not there, or this test looks past it", room)
		}
	}
	return deps
}

// checkReplace finds replace lines in a module file. The go command ignores them in a module that somebody imports, so
// what we tested would not be what they get.
func checkReplace(t *testing.T, name string) (broken []string) {
	t.Helper()
	var mod struct {
		Module struct {
			Path string `json:"Path"`
		} `json:"Module"`
		Replace []struct {
			Old struct {
				Path string `json:"Path"`
			} `json:"Old"`
		} `json:"Replace"`
	}
	if err := json.Unmarshal([]byte(run(t, "go", "mod", "edit", "-json", name)), &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != modulePath {
		broken = append(broken, name+": this is module "+mod.Module.Path+", not "+modulePath)
	}
	for _, r := range mod.Replace {
		broken = append(broken, name+": replaces "+r.Old.Path)
	}
	return broken
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

// The tests below show each rule a house that breaks it, and one that does not.

func TestImportsBite(t *testing.T) {
	for _, c := range []struct {
		path, imports string
		wrong         bool
	}{
		{path: "revision/a.go", imports: "rollout", wrong: true},
		{path: "revision/a_test.go", imports: "history", wrong: true},
		{path: "revision/sub/a.go", imports: "revision"},
		{path: "rollout/a.go", imports: "revision", wrong: true},
		{path: "rollout/a.go", imports: "", wrong: true},
		{path: "history/a.go", imports: "revision"},
		{path: "history/a.go", imports: "revision/sub"},
		{path: "history/a.go", imports: "ownership"},
		{path: "history/a.go", imports: "rollout", wrong: true},
		{path: "ownership/a.go", imports: "history", wrong: true},
		{path: "api/v1alpha1/a.go", imports: "revision", wrong: true},
		{path: "internal/bounded/a.go", imports: "ownership", wrong: true},
		{path: "controllers/daemonset/a.go", imports: "rollout"},
		{path: "controllers/daemonset/a.go", imports: "internal/schemas"},
		{path: "controllers/daemonset/a.go", imports: "internal/metacontroller/hook", wrong: true},
		{path: "controllers/recorder/a.go", imports: "internal/hosting"},
		{path: "controllers/recorder/a.go", imports: "internal/metacontroller/host", wrong: true},
		{path: "controllers/daemonset/sub/a.go", imports: "controllers/daemonset"},
		{path: "controllers/daemonset/a.go", imports: "controllers/statefulset", wrong: true},
		{path: "controllers/daemonset/a.go", imports: "controllers", wrong: true},
		{path: "controllers/daemonset/a.go", imports: "internal/manager", wrong: true},
		{path: "controllers/daemonset/a.go", imports: "internal/fakeserver", wrong: true},
		{path: "controllers/daemonset/a_test.go", imports: "internal/fakeserver"},
		{path: "controllers/metacontroller/composite/a.go", imports: "internal/metacontroller/hook"},
		{path: "controllers/metacontroller/composite/a.go", imports: "controllers/metacontroller/decorator", wrong: true},
		{path: "internal/metacontroller/hook/a.go", imports: "controllers/metacontroller/composite", wrong: true},
		{path: "internal/metacontroller/hook/a.go", imports: "internal/metacontroller/host"},
		{path: "controllers/daemonset/a.go", imports: "internal/cli", wrong: true},
		{path: "inspect/a.go", imports: "history"},
		{path: "inspect/a.go", imports: "rollout", wrong: true},
		{path: "inspect/a.go", imports: "controllers/daemonset", wrong: true},
		{path: "internal/manager/a.go", imports: "controllers/daemonset"},
		{path: "internal/manager/a.go", imports: "internal/cli", wrong: true},
		{path: "internal/cli/undo/a.go", imports: "inspect"},
		{path: "internal/cli/undo/a.go", imports: "internal/cli/history"},
		{path: "internal/cli/undo/a.go", imports: "history", wrong: true},
		{path: "internal/cli/undo/a.go", imports: "sandbox", wrong: true},
		{path: "cmd/cairn/main.go", imports: "internal/cli"},
		{path: "cmd/cairn/main.go", imports: "inspect", wrong: true},
		{path: "cmd/cairn/main.go", imports: "cmd/other", wrong: true},
		{path: "sandbox/a.go", imports: "internal/manager"},
		{path: "sandbox/a.go", imports: "proof/check", wrong: true},
		{path: "proof/bench/a.go", imports: "sandbox"},
		{path: "sandbox/a_test.go", imports: "cmd/cairn", wrong: true},
		{path: "doc.go", imports: "revision", wrong: true},
		{path: "toolbox/a.go", imports: "revision", wrong: true},
		{path: "internal/toolbox/a.go", imports: "revision", wrong: true},
	} {
		imported := strings.TrimSuffix(modulePath+"/"+c.imports, "/")
		f := file{path: c.path, imports: []string{"fmt", "github.com/cairn-dev/cairngorm", imported}}
		if broken := checkImports([]file{f}); (len(broken) > 0) != c.wrong {
			t.Errorf("%s imports %q: wrong is %t, but the rule says %q", c.path, c.imports, c.wrong, broken)
		}
	}
}

func TestPureBites(t *testing.T) {
	const head = "package p\n\nimport "
	for _, c := range []struct {
		src   string
		wrong bool
	}{
		{src: head + `"os"`, wrong: true},
		{src: head + `"net/http"`, wrong: true},
		{src: head + `"net/url"`},
		{src: head + "`k8s.io/client-go/kubernetes`", wrong: true},
		{src: head + `"sigs.k8s.io/controller-runtime/pkg/client"`, wrong: true},
		{src: head + `clock "k8s.io/utils/clock/testing"`, wrong: true},
		{src: head + `"math/rand/v2"`, wrong: true},
		{src: head + `"osmosis"`},
		{src: head + `"time"; const d = time.Second; func age(now time.Time) { now.Add(d) }`},
		{src: head + `"time"; var _ = time.Now()`, wrong: true},
		{src: head + `t "time"; var f = t.Since`, wrong: true},
		{src: head + `. "time"`, wrong: true},
		{src: head + `"fmt"; var time struct{ Now int }; var _ = fmt.Sprint(time.Now)`},
	} {
		for _, name := range []string{"revision/a.go", "rollout/sub/a.go", "rollout/a_test.go", "history/a.go"} {
			f, err := parseFile(name, []byte(c.src))
			if err != nil {
				t.Fatal(err)
			}
			wrong := c.wrong && slices.Contains(pureRooms, f.room()) && !f.test()
			if broken := checkPure([]file{f}); (len(broken) > 0) != wrong {
				t.Errorf("%s: %q: wrong is %t, but the rule says %q", name, c.src, wrong, broken)
			}
		}
	}
}

func TestDepsBite(t *testing.T) {
	reached := []string{"fmt", "net/http", "k8s.io/api/apps/v1", "k8s.io/client-go/rest"}
	if broken := checkDeps(map[string][]string{"revision": reached[:3], "history": reached}); len(broken) > 0 {
		t.Errorf("nothing is wrong, but the rule says %q", broken)
	}
	if broken := checkDeps(map[string][]string{"rollout/sub": reached}); len(broken) != 1 {
		t.Errorf("a client behind rollout/sub: the rule says %q", broken)
	}
}

func TestNamesCommentsLengthsBite(t *testing.T) {
	good := []file{
		{path: "history/a.go", pkg: "history", doc: true, lines: maxLines},
		{path: "history/b.go", pkg: "history", lines: 3},
		{path: "history/a_test.go", pkg: "history_test", lines: maxLines + 1},
		{path: "api/zz.go", pkg: "api", doc: true, generated: true, lines: maxLines + 1},
		{path: "sandbox/scenarios/a_test.go", pkg: "scenarios"},
	}
	bad := []file{
		{path: "history/internal/util/a.go", pkg: "helm", lines: maxLines + 1},
		{path: "history/a.go", pkg: "helpers", lines: maxLines + 1},
	}
	for name, check := range map[string]func([]file) []string{
		"names": checkNames, "comments": checkComments, "lengths": checkLengths,
	} {
		if broken := check(good); len(broken) > 0 {
			t.Errorf("%s: nothing is wrong, but the rule says %q", name, broken)
		}
		if broken := check(bad); len(broken) != len(bad) {
			t.Errorf("%s: %d things are wrong, but the rule says %q", name, len(bad), broken)
		}
	}

	generated, err := parseFile("api/a.go", []byte("// Code generated by hand. DO NOT EDIT.\n\n// Package api is.\npackage api\n"))
	if err != nil || !generated.generated || !generated.doc || generated.lines != 4 {
		t.Errorf("parseFile says %+v, %v", generated, err)
	}
}

func TestReplaceBites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "go.mod")
	src := "module " + modulePath + "\n\ngo 1.26.0\n"
	for _, c := range []struct {
		more  string
		wrong int
	}{{"", 0}, {"replace k8s.io/api => ../api\n", 1}, {"replace (\n\ta.b/c v1.0.0 => a.b/d v1.0.0\n\tx.y/z => ../z\n)\n", 2}} {
		if err := os.WriteFile(name, []byte(src+c.more), 0o600); err != nil {
			t.Fatal(err)
		}
		if broken := checkReplace(t, name); len(broken) != c.wrong {
			t.Errorf("%q: %d things are wrong, but the rule says %q", c.more, c.wrong, broken)
		}
	}
}
