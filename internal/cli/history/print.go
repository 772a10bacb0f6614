package history

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/printable"
)

// This file is the shape of the output. Scripts read json and yaml: fields may be added there, and never renamed.

// log is a history as json and yaml show it.
type log struct {
	env.Header

	Parent     env.Parent `json:"parent"`
	Controller string     `json:"controller,omitempty"` // a CompositeController; absent for kinds that have their own
	Revisions  []entry    `json:"revisions"`
	Warnings   []string   `json:"warnings,omitempty"`
}

type entry struct {
	Revision    int64     `json:"revision"` // 0 if it has no number
	Name        string    `json:"name"`
	Hash        string    `json:"hash,omitempty"`
	Created     time.Time `json:"created"`
	Current     bool      `json:"current"`
	Children    *int      `json:"children,omitempty"` // absent if they could not be counted
	ChangeCause string    `json:"changeCause,omitempty"`
	Deleting    bool      `json:"deleting,omitempty"`
	Unreadable  string    `json:"unreadable,omitempty"`
	Intact      bool      `json:"intact"`
	Doubt       string    `json:"doubt,omitempty"`      // why it is not intact
	Unverified  string    `json:"unverified,omitempty"` // why that cannot be told; then it counts as intact
	Completed   bool      `json:"completed,omitempty"`
	Failed      string    `json:"failed,omitempty"` // why its rollout was undone
	Was         int64     `json:"was,omitempty"`    // the number before the parent went back to it
	Since       time.Time `json:"since,omitzero"`   // when it got its number
	By          string    `json:"by,omitempty"`
	Changes     []string  `json:"changes,omitempty"` // from the revision before
}

// printAll prints a history under a title. width is that of the terminal, 0 where there is none.
func printAll(w io.Writer, title string, h *inspect.History, format string, now time.Time, width int) error {
	if format == "name" {
		for _, e := range h.Entries {
			fmt.Fprintln(w, h.Object(e))
		}
		return nil
	}
	if len(h.Entries) == 0 {
		fmt.Fprintf(w, "%s has no revisions yet\n", title)
		return nil
	}
	fmt.Fprintln(w, title)
	t := table(h, now)
	if width > 0 && format != "wide" {
		shown(t)
		fit(t, width)
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: format == "wide"}).PrintObj(t, w)
}

func table(h *inspect.History, now time.Time) *metav1.Table {
	const wide = 1 // the priority of columns that -o wide adds
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Revision", Type: "string"},
		{Name: "Current", Type: "string"},
		{Name: h.Children, Type: "string"},
		{Name: "Age", Type: "string"},
		{Name: "Name", Type: "string", Format: "name"},
		{Name: "Hash", Type: "string", Priority: wide},
		{Name: "Created", Type: "string", Priority: wide},
		{Name: "Intact", Type: "string", Priority: wide},
		{Name: "Completed", Type: "string", Priority: wide},
		{Name: "By", Type: "string", Priority: wide},
		{Name: "Changed", Type: "string", Priority: wide},
		{Name: "Change-Cause", Type: "string"},
	}}
	for _, e := range h.Entries {
		current, cause := "", e.ChangeCause
		switch {
		case e.Current:
			current = "*"
		case e.Failed != "":
			current = "failed"
		}
		if cause == "" {
			cause = none
		}
		made := strconv.Itoa(e.Children)
		if e.Children == inspect.UnknownCount {
			made = unknown
		}
		age, created := duration.HumanDuration(now.Sub(e.Since)), e.Created.UTC().Format(time.RFC3339)
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{
			env.Number(e.Number), current, made, age, e.Name, e.Hash, created, intact(e), completed(h, e), by(e), changed(e), cause,
		}})
	}
	if h.Children == "" {
		without(t, 2)
	}
	return t
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// completed says whether a rollout to a revision was once complete. Where no revision says so, its controller does not
// note it.
func completed(h *inspect.History, e inspect.Entry) string {
	if !slices.ContainsFunc(h.Entries, func(e inspect.Entry) bool { return e.Completed }) {
		return "unknown"
	}
	return yes(e.Completed)
}

func intact(e inspect.Entry) string {
	doubt, unverified := e.Origin()
	if unverified != "" {
		return "unknown"
	}
	return yes(doubt == "")
}

// unknown stands for a value that is not known, none for no value.
const (
	unknown = "<unknown>"
	none    = "<none>"
)

func by(e inspect.Entry) string {
	if e.By == "" {
		return unknown
	}
	return e.By
}

// changed is what was gone back to, or the first change, and how many more there are.
func changed(e inspect.Entry) string {
	if e.Was > 0 {
		return fmt.Sprintf("rollback to %d", e.Was)
	}
	switch n := len(e.Changes); n {
	case 0:
		return ""
	case 1:
		return e.Changes[0].String()
	default:
		return fmt.Sprintf("%s, +%d more", e.Changes[0], n-1)
	}
}

// without leaves out a column.
func without(t *metav1.Table, column int) {
	t.ColumnDefinitions = slices.Delete(t.ColumnDefinitions, column, column+1)
	for i := range t.Rows {
		t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, column, column+1)
	}
}

func encoded(h *inspect.History) log {
	out := log{
		Header: env.HeaderOf("History"), Parent: env.ParentOf(h.Parent), Controller: h.Controller, Revisions: []entry{}, Warnings: h.Warnings,
	}
	for _, e := range h.Entries {
		doubt, unverified := e.Origin()
		line := entry{
			Revision: e.Number, Name: e.Name, Hash: e.Hash, Created: e.Created.UTC(), Current: e.Current,
			ChangeCause: e.ChangeCause, Deleting: e.Deleting, Intact: doubt == "", Doubt: doubt, Unverified: unverified,
			Completed: e.Completed, Failed: e.Failed, By: e.By, Was: e.Was, Since: e.Since.UTC(),
		}
		for _, change := range e.Changes {
			line.Changes = append(line.Changes, change.String())
		}
		if e.Children != inspect.UnknownCount {
			line.Children = &e.Children
		}
		if e.Unreadable != nil {
			line.Unreadable = e.Unreadable.Error()
		}
		out.Revisions = append(out.Revisions, line)
	}
	return out
}

// printOne prints the content of a revision. As text it has a header, and the content is indented below it.
func printOne(w io.Writer, h *inspect.History, e inspect.Entry, format string) error {
	if format == "name" {
		fmt.Fprintln(w, h.Object(e))
		return nil
	}
	content, err := e.Content()
	if err != nil {
		return &inspect.UnreadableError{Parent: h.Parent, Entry: e}
	}
	if env.Encodes(format) {
		return env.Encode(w, format, json.RawMessage(content))
	}
	text, err := yaml.JSONToYAML(printable.Escape(content))
	if err != nil {
		return err
	}
	if e.Number > 0 {
		fmt.Fprintf(w, "%s with revision #%d\n", h.Parent, e.Number) // as kubectl says it
	} else {
		fmt.Fprintf(w, "%s with %s\n", h.Parent, e)
	}
	for line := range strings.Lines(string(text)) {
		fmt.Fprint(w, "  ", line)
	}
	return nil
}
