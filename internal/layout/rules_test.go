package layout_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// This file holds the rules of the house as functions of what was read, so that layout_test.go can show them a house
// that breaks each of them.

const modulePath = "github.com/cairn-dev/cairn"

// law says which rooms a room may import. A room is a folder of the root module with all that is below it, except that
// every controller, in controllers or in controllers/metacontroller, is a room of its own, called controllers/* or
// controllers/metacontroller/* unless it has a line, and so is every folder of internal. A folder that is not here may
// not exist: a new room is a decision, to be written down in docs/design and here.
var law = map[string][]string{
	// What is promised to others.
	"":          {},
	"revision":  {},
	"rollout":   {},
	"api":       {},
	"ownership": {"revision", "internal/anyobject"},
	"history":   {"revision", "rollback", "ownership", "api", "internal/anyobject", "internal/bounded", "internal/podtemplate", "internal/readiness"},
	"rollback":  {"rollout", "internal/readiness"},
	"pass":      {"revision", "rollout", "rollback", "ownership", "history", "internal/anyobject"},
	"builder": {
		"revision", "rollout", "rollback", "ownership", "history", "pass", "internal/anyobject", "internal/readiness", "internal/schemas",
	},
	"inspect":     {"revision", "rollback", "history", "ownership", "api", "internal/anyobject", "internal/author", "internal/podtemplate", "internal/printable", "internal/readiness"},
	"deploy":      {"api"},
	"controllers": {},
	"controllers/*": {
		"revision", "rollout", "ownership", "history", "pass", "internal/anyobject", "internal/readiness", "internal/schemas",
	},
	"controllers/recorder": {
		"revision", "ownership", "history", "pass", "api",
		"internal/anyobject", "internal/author", "internal/hosting", "internal/schemas", "internal/watching",
	},
	"controllers/metacontroller/*": {
		"revision", "rollout", "rollback", "ownership", "history", "pass", "api", "internal/anyobject", "internal/hosting",
		"internal/metacontroller", "internal/readiness", "internal/watching",
	},
	// What nobody is promised.
	"internal/author":      {"revision"},
	"internal/anyobject":   {},
	"internal/bounded":     {},
	"internal/readiness":   {},
	"internal/podtemplate": {"revision"},
	"internal/printable":   {},
	"internal/schemas":     {"revision"},
	"internal/watching":    {"ownership", "api"},
	"internal/hosting":     {"ownership", "api", "internal/watching"},
	"internal/metacontroller": {
		"revision", "ownership", "pass", "api",
		"internal/anyobject", "internal/bounded", "internal/hosting", "internal/watching",
	},
	"internal/manager": {
		"controllers/*", "controllers/recorder", "controllers/metacontroller/*", "api", "internal/metacontroller",
		"pass", "inspect",
	},
	"internal/cli": {"inspect", "deploy", "api", "internal/manager", "internal/printable"},
	"cmd":          {"internal/cli"},
	// Tests only.
	"internal/fakeserver": {"ownership", "internal/anyobject"},
	"internal/goldenfile": {},
	"internal/inspecttest": {
		"revision", "history", "api", "internal/fakeserver",
	},
	"internal/layout": {},
	"examples":        {"builder", "inspect"}, // for people to copy: hooks know nothing of us, controllers stand on builder
	// Makes what people download. A module that is not of the workspace and imports nothing of ours.
	"release": {},
	// Two nested modules, of which neither starts a main package of ours: Kubernetes in one process, and what tests us in
	// it.
	"sandbox": {"api", "deploy", "internal/manager"},
	"proof": {
		"revision", "rollout", "ownership", "history", "pass", "api", "controllers/*", "controllers/recorder",
		"controllers/metacontroller/*", "builder", "inspect", "rollback", "deploy", "examples", "sandbox", "internal/anyobject", "internal/cli",
		"internal/hosting", "internal/manager", "internal/metacontroller", "internal/watching",
	},
}

// forTests are rooms that every test may import, and nothing else.
var forTests = []string{"internal/fakeserver", "internal/goldenfile", "internal/inspecttest"}

// pureRooms hold functions of their arguments.
var pureRooms = []string{"revision", "rollout", "rollback"}

// impureImports may not stand in an import declaration of a pure room's code: clients, clocks, I/O, chance. An entry
// stands for all that is below it as well. Tests may: they read golden files.
var impureImports = []string{
	"context", "crypto/rand", "io/fs", "io/ioutil", "log", "math/rand", "net", "os", "plugin", "syscall", "testing",
	"github.com/go-logr", "k8s.io/klog",
	"k8s.io/cli-runtime", "k8s.io/client-go", "k8s.io/kubectl", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime",
}

// harmless are exceptions from impureImports: they compute only.
var harmless = []string{"net/netip", "net/url"}

// impureDeps may not be reached through other people's packages either. The list is shorter than impureImports, because
// k8s.io/apimachinery's own types reach net/http and klog; no client and no clock is behind them.
var impureDeps = []string{
	"k8s.io/cli-runtime", "k8s.io/client-go", "k8s.io/kubectl", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime",
}

// clockNames are what package time does with the clock. Durations and given times are values; pure rooms may use them.
var clockNames = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// leftovers are names for packages that have no subject.
var leftovers = []string{"common", "helper", "helpers", "misc", "shared", "util", "utils"}

// maxLines is the length at which a file holds two things.
const maxLines = 500

// file is a Go source file, as far as the rules look at it.
type file struct {
	path      string // from the root of the repository, with slashes
	pkg       string
	doc       bool // has a package comment
	generated bool
	imports   []string
	clock     []string // what it takes from package time's clock, as "time.Now"
	lines     int
}

func (f file) test() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f file) room() string { return roomOf(path.Dir(f.path)) }

// roomOf returns the room to which a folder belongs.
func roomOf(dir string) string {
	parts := strings.Split(dir, "/")
	depth := 1
	switch parts[0] {
	case ".":
		return ""
	case "internal", "controllers":
		depth = 2
	}
	if strings.HasPrefix(dir, "controllers/metacontroller/") {
		depth = 3
	}
	return path.Join(parts[:min(depth, len(parts))]...)
}

// kindOf returns the name under which a room stands in the law.
func kindOf(room string) string {
	if _, its := law[room]; its || !strings.HasPrefix(room, "controllers/") {
		return room
	}
	return path.Join(path.Dir(room), "*")
}

// parseFile reads what the rules look at.
func parseFile(name string, src []byte) (file, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	f := file{
		path:      name,
		pkg:       parsed.Name.Name,
		doc:       parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != "",
		generated: ast.IsGenerated(parsed),
		lines:     strings.Count(string(src), "\n"),
	}
	timeName := ""
	for _, spec := range parsed.Imports {
		imported := strings.Trim(spec.Path.Value, "\"`")
		f.imports = append(f.imports, imported)
		if imported == "time" {
			timeName = "time"
			if spec.Name != nil {
				timeName = spec.Name.Name
			}
		}
	}
	if timeName == "." {
		f.clock = append(f.clock, "a dot import of time")
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == timeName && slices.Contains(clockNames, sel.Sel.Name) {
				f.clock = append(f.clock, "time."+sel.Sel.Name)
			}
		}
		return true
	})
	return f, nil
}

// checkImports finds imports that run the wrong way. Tests are bound as well: a test that needs a room above its own
// belongs there, or into sandbox.
func checkImports(files []file) (broken []string) {
	for _, f := range files {
		from := f.room()
		allowed, known := law[kindOf(from)]
		if !known {
			broken = append(broken, fmt.Sprintf("%s: there is no room %q in the design", f.path, from))
			continue
		}
		for _, imported := range f.imports {
			dir, ours := strings.CutPrefix(imported, modulePath)
			if !ours || (dir != "" && dir[0] != '/') {
				continue
			}
			to := roomOf(path.Clean("./" + dir))
			if f.test() && slices.Contains(forTests, to) {
				continue
			}
			if to != from && !slices.Contains(allowed, kindOf(to)) || to == "cmd" {
				broken = append(broken, fmt.Sprintf("%s: room %q may not import %s", f.path, from, imported))
			}
		}
	}
	return broken
}

// checkPure finds clients, clocks and I/O in what the code of the pure rooms says itself.
func checkPure(files []file) (broken []string) {
	for _, f := range files {
		if f.test() || !slices.Contains(pureRooms, f.room()) {
			continue
		}
		for _, imported := range f.imports {
			if under(imported, impureImports) && !under(imported, harmless) {
				broken = append(broken, fmt.Sprintf("%s: a pure package may not import %s", f.path, imported))
			}
		}
		for _, use := range f.clock {
			broken = append(broken, fmt.Sprintf("%s: a pure package gets the time as an argument, not from %s", f.path, use))
		}
	}
	return broken
}

// checkDeps finds clients and clocks behind other people's packages. deps holds, by the folder of each package of ours,
// everything that it reaches.
func checkDeps(deps map[string][]string) (broken []string) {
	for dir, reached := range deps {
		if !slices.Contains(pureRooms, roomOf(dir)) {
			continue
		}
		for _, imported := range reached {
			if under(imported, impureDeps) {
				broken = append(broken, fmt.Sprintf("%s: a pure package may not reach %s", dir, imported))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// under reports whether an import path is one of roots or below one. A major version belongs to its root.
func under(imported string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

// checkNames finds packages without a subject.
func checkNames(files []file) (broken []string) {
	for _, f := range files {
		name := strings.TrimSuffix(f.pkg, "_test")
		for _, word := range []string{name, path.Base(path.Dir(f.path))} {
			if slices.Contains(leftovers, word) {
				broken = append(broken, fmt.Sprintf("%s: a package called %q is a drawer, not a room", f.path, word))
				break
			}
		}
	}
	return broken
}

// checkComments finds packages that do not say what they are. Folders that hold nothing but tests may be silent.
func checkComments(files []file) (broken []string) {
	documented := map[string]bool{}
	for _, f := range files {
		if dir := path.Dir(f.path); !f.test() {
			documented[dir] = documented[dir] || f.doc
		}
	}
	for dir, ok := range documented {
		if !ok {
			broken = append(broken, dir+": no file has a package comment")
		}
	}
	slices.Sort(broken)
	return broken
}

// checkLengths finds files that hold two things.
func checkLengths(files []file) (broken []string) {
	for _, f := range files {
		if !f.test() && !f.generated && f.lines > maxLines {
			broken = append(broken, fmt.Sprintf("%s: %d lines; over %d, two things share a room", f.path, f.lines, maxLines))
		}
	}
	return broken
}
