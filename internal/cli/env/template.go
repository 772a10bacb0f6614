package env

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// This file prints what a user picks out of a document: kubectl's templates, and its custom columns.

// templates are the formats that are followed by what is picked.
var templates = []string{"jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "go-template=", "go-template-file=", customColumns}

const customColumns = "custom-columns="

func templated(format string) bool {
	return slices.ContainsFunc(templates, func(t string) bool { return strings.HasPrefix(format, t) })
}

func printerOf(format string) (printers.ResourcePrinter, error) {
	if spec, ok := strings.CutPrefix(format, customColumns); ok {
		return readColumns(spec)
	}
	return genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(format)
}

// byTemplate prints a document, which is JSON.
func byTemplate(w io.Writer, format string, document []byte) error {
	p, err := printerOf(format)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(document, &o.Object); err != nil {
		return err
	}
	return p.PrintObj(o, w)
}

// column is a column that a user wants: NAME:.path.
type column struct {
	name string
	path *jsonpath.JSONPath
}

type customTable []column

// inBraces is a path as kubectl takes it: {.a}, .a or a.
var inBraces = regexp.MustCompile(`^\{?\.?([^{}]+)\}?$`)

func readColumns(spec string) (customTable, error) {
	var out customTable
	for part := range strings.SplitSeq(spec, ",") {
		name, path, ok := strings.Cut(part, ":")
		inner := inBraces.FindStringSubmatch(path)
		if !ok || name == "" || inner == nil {
			return nil, fmt.Errorf("%q is no column; it is written NAME:.path, as in %sREVISION:.revision,CAUSE:.changeCause", part, customColumns)
		}
		c := column{name, jsonpath.New(name).AllowMissingKeys(true)}
		if err := c.path.Parse("{." + inner[1] + "}"); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// PrintObj implements [printers.ResourcePrinter]. A row is a revision, a problem, or an object.
func (t customTable) PrintObj(o runtime.Object, w io.Writer) error {
	table := &metav1.Table{}
	for _, c := range t {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: c.name, Type: "string"})
	}
	for _, row := range rows(o.(*unstructured.Unstructured).Object) {
		var cells []any
		for _, c := range t {
			text, err := c.of(row)
			if err != nil {
				return err
			}
			cells = append(cells, text)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, w)
}

func (c column) of(row any) (string, error) {
	found, err := c.path.FindResults(row)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", c.name, err)
	}
	var texts []string
	for _, values := range found {
		for _, v := range values {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				texts = append(texts, fmt.Sprint(v.Interface()))
			}
		}
	}
	if len(texts) == 0 {
		return "<none>", nil
	}
	return strings.Join(texts, ","), nil
}

// rows are what a document is about. Those of the documents of a list are those of all; each knows its parent.
func rows(document map[string]any) []any {
	if items, ok := document["items"].([]any); ok {
		var out []any
		for _, item := range items {
			if o, ok := item.(map[string]any); ok {
				out = append(out, rows(o)...)
			}
		}
		return out
	}
	field := map[any]string{"History": "revisions", "Verification": "problems"}[document["kind"]]
	each, ok := document[field].([]any)
	if !ok {
		return []any{document}
	}
	for _, row := range each {
		if o, ok := row.(map[string]any); ok && o["parent"] == nil {
			o["parent"] = document["parent"]
		}
	}
	return each
}
