package status

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// report is a status as json and yaml show it.
type report struct {
	env.Header

	Parent     env.Parent  `json:"parent"`
	Controller string      `json:"controller,omitempty"` // a CompositeController; absent for kinds that have their own
	Complete   bool        `json:"complete"`
	Conditions []condition `json:"conditions"`
	Update     *env.Ref    `json:"update"` // null if the spec is recorded in no revision
	Children   counts      `json:"children"`
	Revisions  []share     `json:"revisions"`
	Waits      []wait      `json:"waits"`
	Held       []string    `json:"held,omitempty"`
	Warnings   []string    `json:"warnings,omitempty"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type counts struct {
	Total   int `json:"total"`
	Passing int `json:"passing"`
	Rolled  int `json:"rolled"` // of kinds that are rolled out
	Updated int `json:"updated"`
}

type share struct {
	*env.Ref // absent for children that belong to no revision

	Current  bool `json:"current"`
	Children int  `json:"children"`
	Passing  int  `json:"passing"`
}

type wait struct {
	Child    string   `json:"child"`
	Revision *env.Ref `json:"revision,omitempty"`
	For      string   `json:"for"`
}

func show(w io.Writer, s *inspect.Status, format string) error {
	switch format {
	case "json", "yaml":
		return env.Encode(w, format, encoded(s))
	case "name":
		fmt.Fprintln(w, s.Parent)
		return nil
	}
	head := s.Parent.String()
	if s.Controller != "" {
		head += ", run by CompositeController " + s.Controller
	}
	tables := []*metav1.Table{conditions(s), shares(s), waits(s)}
	if s.Children == "" {
		fmt.Fprintf(w, "%s: %s\n", head, recorded(s))
		tables = tables[:1]
	} else if s.Runs {
		fmt.Fprintf(w, "%s: %d of %d %s come from the current revision\n", head, s.Updated, s.Total, s.Children)
		tables = nil
	} else {
		fmt.Fprintf(w, "%s: %d of %d %s are updated, %d of %d pass their checks\n", head, s.Updated, s.Rolled, s.Children, s.Passing, s.Total)
	}
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, w); err != nil {
			return err
		}
	}
	if len(s.Held) > 0 {
		fmt.Fprintln(w)
	}
	for _, sentence := range s.Held {
		fmt.Fprintln(w, sentence)
	}
	return nil
}

// recorded is all there is to say where revisions do not say what is made from them.
func recorded(s *inspect.Status) string {
	if s.Update == nil {
		return "it is recorded in no revision as it is now"
	}
	return fmt.Sprintf("it is recorded as %s, which does not say what is made from it", s.Update)
}

func columns(names ...string) *metav1.Table {
	t := &metav1.Table{}
	for _, name := range names {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return t
}

func add(t *metav1.Table, cells ...any) { t.Rows = append(t.Rows, metav1.TableRow{Cells: cells}) }

func conditions(s *inspect.Status) *metav1.Table {
	t := columns("Condition", "Status", "Reason", "Message")
	for _, c := range s.Conditions {
		add(t, c.Type, c.Status, c.Reason, c.Message)
	}
	return t
}

func shares(s *inspect.Status) *metav1.Table {
	t := columns("Revision", "Current", s.Children, "Passing", "Name")
	for _, share := range s.Shares {
		number, current, name := "<none>", "", "<none>"
		if e := share.Entry; e != nil {
			number, name = env.Number(e.Number), e.Name
			if e.Current {
				current = "*"
			}
		}
		add(t, number, current, share.Children, share.Passing, name)
	}
	return t
}

func waits(s *inspect.Status) *metav1.Table {
	t := columns("Waits for", "Revision", "Because")
	for _, wait := range s.Waits {
		number := "<none>"
		if wait.Entry != nil {
			number = env.Number(wait.Entry.Number)
		}
		add(t, wait.Child, number, wait.For)
	}
	return t
}

func encoded(s *inspect.Status) report {
	out := report{
		Header: env.HeaderOf("Status"),
		Parent: env.ParentOf(s.Parent), Controller: s.Controller, Complete: s.Complete(), Update: env.RefTo(s.Update),
		Children:   counts{Total: s.Total, Passing: s.Passing, Rolled: s.Rolled, Updated: s.Updated},
		Conditions: []condition{}, Revisions: []share{}, Waits: []wait{}, Held: s.Held, Warnings: s.Warnings,
	}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, condition(c))
	}
	for _, sh := range s.Shares {
		out.Revisions = append(out.Revisions, share{
			Ref: env.RefTo(sh.Entry), Current: sh.Entry != nil && sh.Entry.Current, Children: sh.Children, Passing: sh.Passing,
		})
	}
	for _, w := range s.Waits {
		out.Waits = append(out.Waits, wait{Child: w.Child, Revision: env.RefTo(w.Entry), For: w.For})
	}
	return out
}
