package revision_test

// Every exported function and method is called by some test: whoever adds one without is told here.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

func TestEveryExportedFunctionIsTested(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	exported, called := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || file.Name() == "example_test.go" { // an example shows, it does not search
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		inTest := strings.HasSuffix(file.Name(), "_test.go")
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if !inTest && n.Name.IsExported() {
					exported[n.Name.Name] = true
				}
			case *ast.SelectorExpr:
				if inTest {
					called[n.Sel.Name] = true
				}
			}
			return true
		})
	}
	if len(exported) < 20 {
		t.Errorf("found only %d exported functions", len(exported))
	}
	for name := range exported {
		if !called[name] {
			t.Errorf("%s: no test calls it", name)
		}
	}
}
