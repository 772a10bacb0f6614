package status

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/cli/follow"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// report is a status as json and yaml show it.
type report struct {
	env.Header

	Parent     env.Parent  `json:"parent"`
	Controller string      `json:"controller,omitempty"` // a CompositeController; absent for kinds that have their own
	State      string      `json:"state"`                // Done, InProgress or Failed
	Reason     string      `json:"reason"`
	Complete   bool        `json:"complete"` // the state is Done
	Conditions []condition `json:"conditions"`
	Update     *env.Ref    `json:"update"` // null if the spec is recorded in no revision
	Children   counts      `json:"children"`
	// Counters are the numbers that the controller reports in the status.
	Counters  map[string]int64 `json:"counters,omitempty"`
	Revisions []share          `json:"revisions"`
	Waits     []wait           `json:"waits"`
	Held      []string         `json:"held,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type counts struct {
	Total     int `json:"total"`
	Wanted    int `json:"wanted,omitempty"` // pods that the parent asks for
	Available int `json:"passing"`          // fields of a version are never renamed
	Rolled    int `json:"rolled"`           // of kinds that are rolled out
	Updated   int `json:"updated"`
}

type share struct {
	*env.Ref // absent for children that belong to no revision

	Current   bool `json:"current"`
	Children  int  `json:"children"`
	Available int  `json:"passing"` // fields of a version are never renamed
}

type wait struct {
	Child    string   `json:"child"`
	Revision *env.Ref `json:"revision,omitempty"`
	For      string   `json:"for"`
}

func show(e *env.Env, found *env.Found, all []*status.Status, format string) error {
	switch {
	case env.Encodes(format):
		reports := make([]report, 0, len(all))
		for _, s := range all {
			reports = append(reports, encoded(s))
		}
		return env.EncodeAll(e.Out, format, found, "Status", reports)
	case format == "name":
		for _, s := range all {
			fmt.Fprintln(e.Out, s.Parent)
		}
		return nil
	case !found.One:
		return overview(e, found, all)
	}
	s, t := all[0], e.Terminal()
	if t == nil || !t.Colours {
		return view(e.Out, s)
	}
	var text bytes.Buffer
	if err := view(&text, s); err != nil {
		return err
	}
	_, err := t.W.Write(follow.Paint(text.Bytes(), s))
	return err
}

// overview has a line for each object. A terminal shows as much of why as there is room.
func overview(e *env.Env, found *env.Found, all []*status.Status) error {
	if len(all) == 0 {
		return nil
	}
	t := columns("Namespace", "Object", "State", "Message")
	for _, s := range all {
		add(t, s.Parent.Namespace, s.Parent.String(), string(s.State), s.Message())
	}
	if !found.Everywhere {
		t.ColumnDefinitions = t.ColumnDefinitions[1:]
		for n := range t.Rows {
			t.Rows[n].Cells = t.Rows[n].Cells[1:]
		}
	}
	var text bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, &text); err != nil {
		return err
	}
	terminal := e.Terminal()
	if terminal == nil {
		_, err := e.Out.Write(text.Bytes())
		return err
	}
	width, _ := terminal.Size()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(e.Out, env.Cut(strings.TrimRight(line, " \n"), width))
	}
	return nil
}

// view is a status for people.
func view(w io.Writer, s *status.Status) error {
	fmt.Fprintln(w, s.Line())
	tables := []*metav1.Table{conditions(s), shares(s), waits(s)}
	if s.Children == "" {
		tables = []*metav1.Table{conditions(s), reported(s), waits(s)}
	} else if s.Complete() && s.Runs {
		tables = nil
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

func columns(names ...string) *metav1.Table {
	t := &metav1.Table{}
	for _, name := range names {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return t
}

func add(t *metav1.Table, cells ...any) { t.Rows = append(t.Rows, metav1.TableRow{Cells: cells}) }

func conditions(s *status.Status) *metav1.Table {
	t := columns("Condition", "Status", "Reason", "Message")
	for _, c := range s.Conditions {
		add(t, c.Type, c.Status, c.Reason, c.Message)
	}
	return t
}

func shares(s *status.Status) *metav1.Table {
	t := columns("Revision", "Current", s.Children, "Available", "Name")
	for _, share := range s.Shares {
		number, current, name := "<none>", "", "<none>"
		if e := share.Entry; e != nil {
			number, name = env.Number(e.Number), e.Name
			if e.Current {
				current = "*"
			}
		}
		add(t, number, current, share.Children, share.Available, name)
	}
	return t
}

// reported are the numbers of objects whose children are not known.
func reported(s *status.Status) *metav1.Table {
	t := columns("Counter", "Reported")
	for _, c := range s.Counters {
		add(t, c.Name, c.Value)
	}
	return t
}

// waits are the children that are waited for. Those that wait for the same are one row: 300 pods for which there is no
// node have one cause.
func waits(s *status.Status) *metav1.Table {
	type cause struct{ revision, why string }
	var causes []cause
	children := map[cause][]string{}
	for _, wait := range s.Waits {
		number := "<none>"
		if wait.Entry != nil {
			number = env.Number(wait.Entry.Number)
		}
		c := cause{number, strings.Join(strings.Fields(wait.For), " ")}
		if children[c] == nil {
			causes = append(causes, c)
		}
		children[c] = append(children[c], wait.Child)
	}
	t := columns("Waits for", "Revision", "Because")
	for _, c := range causes {
		who := children[c][0]
		if more := len(children[c]) - 1; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		add(t, who, c.revision, c.why)
	}
	return t
}

func encoded(s *status.Status) report {
	out := report{
		Header: env.HeaderOf("Status"),
		Parent: env.ParentOf(s.Parent), Controller: s.Controller, Update: env.RefTo(s.Update),
		State: string(s.State), Reason: s.Reason, Complete: s.Complete(),
		Children:   counts{Total: s.Total, Wanted: s.Wanted, Available: s.Available, Rolled: s.Rolled, Updated: s.Updated},
		Conditions: []condition{}, Revisions: []share{}, Waits: []wait{}, Held: s.Held, Warnings: s.Warnings, Counters: map[string]int64{},
	}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, condition(c))
	}
	for _, c := range s.Counters {
		out.Counters[c.Name] = c.Value
	}
	for _, sh := range s.Shares {
		out.Revisions = append(out.Revisions, share{
			Ref: env.RefTo(sh.Entry), Current: sh.Entry != nil && sh.Entry.Current, Children: sh.Children, Available: sh.Available,
		})
	}
	for _, w := range s.Waits {
		out.Waits = append(out.Waits, wait{Child: w.Child, Revision: env.RefTo(w.Entry), For: w.For})
	}
	return out
}
