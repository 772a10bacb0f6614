package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// This file compiles mutated packages up to the type check, in this process.

// compiler type-checks packages of the root module against the export data of everything that they import.
type compiler struct {
	fset *token.FileSet
	// files are the paths of the Go files of each package, by the package's folder as Mutant.Packages returns it.
	files map[string][]string
	types types.Config
}

// newCompiler compiles the packages that the mutants change, unchanged, and what these import.
func newCompiler(t *testing.T, mutants []*Mutant) *compiler {
	t.Helper()
	changed := map[string]bool{}
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,GoFiles,Export"}
	for _, m := range mutants {
		for _, dir := range m.Packages() {
			if !changed[dir] {
				args = append(args, dir)
			}
			changed[dir] = true
		}
	}
	listed, err := run(t.Context(), root(t), "go", args...)
	if err != nil {
		t.Fatal(err)
	}
	c := &compiler{fset: token.NewFileSet(), files: map[string][]string{}}
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewBufferString(listed)); ; {
		var p struct {
			Dir        string   `json:"Dir"`
			ImportPath string   `json:"ImportPath"`
			Export     string   `json:"Export"`
			GoFiles    []string `json:"GoFiles"`
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(root(t), p.Dir); err == nil && changed["./"+filepath.ToSlash(dir)] {
			c.files["./"+filepath.ToSlash(dir)] = p.GoFiles
		}
	}
	c.types.Importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check type-checks the package in a folder. mutated is the content of the files that differ from the disk, by their
// path from the root of the repository.
func (c *compiler) check(dir string, mutated map[string]string) error {
	var parsed []*ast.File
	for _, name := range c.files[dir] {
		file := path.Join(dir, name)
		var content any // nil: the parser reads the file
		if text, ok := mutated[file]; ok {
			content = text
		}
		f, err := parser.ParseFile(c.fset, filepath.Join("..", "..", filepath.FromSlash(file)), content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	if len(parsed) == 0 {
		return fmt.Errorf("%s has no Go files", dir)
	}
	_, err := c.types.Check(dir, c.fset, parsed, nil)
	return err
}
