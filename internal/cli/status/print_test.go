package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/status"
)

// TestOneCauseIsOneRow: many children that wait for the same are one row, and a message of two lines is one.
func TestOneCauseIsOneRow(t *testing.T) {
	old, update := &inspect.Entry{Number: 1}, &inspect.Entry{Number: 2}
	s := &status.Status{Waits: []status.Wait{{Child: "Pod a", Entry: old, For: "no node\n is free"}}}
	for n := range 300 {
		s.Waits = append(s.Waits, status.Wait{Child: fmt.Sprint("Pod w-", n), Entry: update, For: "no node is free"})
	}
	var got []string
	for _, row := range waits(s).Rows {
		got = append(got, fmt.Sprintln(row.Cells...))
	}
	if strings.Join(got, "") != "Pod a 1 no node is free\nPod w-0 and 299 more 2 no node is free\n" {
		t.Error(got)
	}
}
