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

func show(w io.Writer, found *env.Found, trees []*tree.Tree, format string, now time.Time) error {
	if env.Encodes(format) {
		documents := make([]document, 0, len(trees))
		for _, t := range trees {
			documents = append(documents, document{Header: env.HeaderOf("Tree"), Root: encoded(t.Root), Warnings: t.Warnings})
		}
		return env.EncodeAll(w, format, found, "Tree", documents)
	}
	t := table()
	for _, one := range trees {
		if format == "name" {
			names(w, one.Root)
			continue
		}
		namespace := one.Root.Namespace
		if found.Everywhere {
			namespace = ""
		}
		add(t, one.Root, "", "", namespace, now)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, w)
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

func table() *metav1.Table {
	return &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Object", Type: "string", Format: "name"},
		{Name: "Revision", Type: "string"},
		{Name: "State", Type: "string"},
		{Name: "Age", Type: "string"},
		{Name: "Message", Type: "string"},
	}}
}

// add adds a row for a node, and for those below it.
func add(t *metav1.Table, n *tree.Node, first, rest, namespace string, now time.Time) {
	t.Rows = append(t.Rows, metav1.TableRow{Cells: row(n, first, namespace, now)})
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			add(t, child, rest+"└─ ", rest+"   ", n.Namespace, now)
		} else {
			add(t, child, rest+"├─ ", rest+"│  ", n.Namespace, now)
		}
	}
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
