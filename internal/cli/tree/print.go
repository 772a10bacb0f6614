package tree

import (
	"fmt"
	"io"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/cairn-dev/cairn/inspect/tree"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// document is a tree as json and yaml show it.
type document struct {
	env.Header

	Root     *object  `json:"root"`
	Warnings []string `json:"warnings,omitempty"`
}

type object struct {
	env.Parent

	Created  *time.Time `json:"created,omitempty"`
	State    string     `json:"state"`
	Message  string     `json:"message,omitempty"`
	Revision int64      `json:"revision,omitempty"`
	Children []*object  `json:"children,omitempty"`
}

func show(w io.Writer, t *tree.Tree, format string, now time.Time) error {
	switch format {
	case "json", "yaml":
		return env.Encode(w, format, document{Header: env.HeaderOf("Tree"), Root: encoded(t.Root), Warnings: t.Warnings})
	case "name":
		names(w, t.Root)
		return nil
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{})
	return printer.PrintObj(table(t.Root, now), w)
}

func encoded(n *tree.Node) *object {
	out := &object{Parent: env.ParentOf(n.Parent), State: n.State, Message: n.Message, Revision: n.Revision}
	if !n.Created.IsZero() {
		created := n.Created.UTC()
		out.Created = &created
	}
	for _, child := range n.Children {
		out.Children = append(out.Children, encoded(child))
	}
	return out
}

func names(w io.Writer, n *tree.Node) {
	fmt.Fprintln(w, n.Parent)
	for _, child := range n.Children {
		names(w, child)
	}
}

func table(root *tree.Node, now time.Time) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Object", Type: "string", Format: "name"},
		{Name: "Revision", Type: "string"},
		{Name: "State", Type: "string"},
		{Name: "Age", Type: "string"},
		{Name: "Message", Type: "string"},
	}}
	var add func(n *tree.Node, first, rest, namespace string)
	add = func(n *tree.Node, first, rest, namespace string) {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: row(n, first, namespace, now)})
		for i, child := range n.Children {
			if i == len(n.Children)-1 {
				add(child, rest+"└─ ", rest+"   ", n.Namespace)
			} else {
				add(child, rest+"├─ ", rest+"│  ", n.Namespace)
			}
		}
	}
	add(root, "", "", root.Namespace)
	return t
}

// row names the namespace of an object that is in another one than its owner.
func row(n *tree.Node, indent, namespace string, now time.Time) []any {
	name := n.String()
	if n.Namespace != namespace {
		name += " -n " + n.Namespace
	}
	revision, age := "", ""
	if n.Revision > 0 {
		revision = strconv.FormatInt(n.Revision, 10)
	}
	if !n.Created.IsZero() {
		age = duration.HumanDuration(now.Sub(n.Created))
	}
	return []any{indent + name, revision, n.State, age, n.Message}
}
