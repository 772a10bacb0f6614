package layout_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file lists what a user can read: every text in the code of the root module that is more than a word. It goes
// into errors, events, conditions, help and logs.
//
//	go test ./internal/layout -run TestTexts -texts /tmp/texts.md

var textsFile = flag.String("texts", "", "write the list of all texts to this file")

// unused are words of ours that a user would have to learn; docs/glossary.md says what to write instead.
var unused = regexp.MustCompile(`(?i)\b(is going|are going|still going|is gone|are gone|gone again|let go of|are let go|is told|are told|be told|` +
	`made again|strangers?|stand-ins?|twins?|hears of|wakes|comes again|looks again|nobody wants|sends everybody)\b`)

// text is one of them.
type text struct {
	path string
	line int
	kind string // of the call that it is part of
	text string
}

func TestTexts(t *testing.T) {
	var texts []text
	for _, name := range goFiles(t) {
		found, err := textsOf(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, found...)
	}
	if len(texts) < 500 {
		t.Fatalf("%d texts are too few: the test looks past them", len(texts))
	}
	for _, x := range texts {
		if word := unused.FindString(x.text); word != "" {
			t.Errorf("%s:%d says %q: docs/glossary.md has the field's word\n\t%s", x.path, x.line, word, x.text)
		}
	}
	if *textsFile != "" {
		if err := os.WriteFile(*textsFile, list(texts), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// goFiles are the files of the root module that are part of a program, from the root of the repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, f := range readFiles(t) {
		first, _, _ := strings.Cut(f.path, "/")
		if !f.test() && !f.generated && !slices.Contains([]string{"sandbox", "proof", "examples"}, first) && !slices.Contains(forTests, f.room()) {
			out = append(out, f.path)
		}
	}
	slices.Sort(out)
	return out
}

// textsOf returns the texts of one file. A sentence that is put together of several literals is one text.
func textsOf(name string) ([]text, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []text
	var stack []ast.Node
	ast.Inspect(parsed, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false // import paths and tags
		case *ast.BinaryExpr, *ast.BasicLit:
			if said, ok := joined(n.(ast.Expr)); ok {
				if strings.Contains(strings.TrimSpace(said), " ") {
					out = append(out, text{path: name, line: fset.Position(n.Pos()).Line, kind: kindOfText(stack), text: said})
				}
				return false
			}
		}
		stack = append(stack, n)
		return true
	})
	return out, nil
}

// joined returns the text of a literal, or of literals that are added.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, left := joined(e.X)
		b, right := joined(e.Y)
		return a + b, left && right && e.Op == token.ADD
	}
	return "", false
}

// kindOfText names the innermost call or field around a text.
func kindOfText(stack []ast.Node) string {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				return f.Sel.Name
			case *ast.Ident:
				return f.Name
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				return key.Name
			}
		}
	}
	return "text"
}

// list writes the texts down, folder by folder.
func list(texts []text) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What a user can read: %d texts\n", len(texts))
	last := ""
	for _, x := range texts {
		if dir := path.Dir(x.path); dir != last {
			fmt.Fprintf(&out, "\n## %s\n\n", dir)
			last = dir
		}
		fmt.Fprintf(&out, "- %s:%d %s: %s\n", path.Base(x.path), x.line, x.kind, strings.ReplaceAll(x.text, "\n", "\n  "))
	}
	return out.Bytes()
}
