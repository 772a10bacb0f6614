package scenario

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/tools/txtar"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file compares a history with the one that a script's file remembers: the section STAGE.history.

// historySuffix ends the names of the sections with histories.
const historySuffix = ".history"

// Golden returns the history that a script remembers for a stage, and whether it remembers one.
func (s *Script) Golden(stage string) (string, bool) {
	text, ok := s.Files[stage+historySuffix]
	return text, ok
}

// CompareGolden compares a history with the one that the script remembers for a stage. A script that remembers none
// agrees with every history. The error shows the first line that differs.
func (s *Script) CompareGolden(stage string, h *check.History, form Form) error {
	want, ok := s.Golden(stage)
	if !ok {
		return nil
	}
	have := Render(h, form)
	if have == want {
		return nil
	}
	a, b := bytes.Split([]byte(want), []byte("\n")), bytes.Split([]byte(have), []byte("\n"))
	at := 0
	for at < len(a) && at < len(b) && bytes.Equal(a[at], b[at]) {
		at++
	}
	line := func(lines [][]byte) string {
		if at < len(lines) {
			return string(lines[at])
		}
		return "(the end)"
	}
	return fmt.Errorf("%s: section %s%s, line %d: it says\n\t%s\nand this time it was\n\t%s\nall of it:\n%s", s.Name, stage, historySuffix,
		at+1, line(a), line(b), have)
}

// UpdateGolden writes a history into the section of a stage in a script's file, which it adds if there is none. The
// rest of the file stays as it is.
func UpdateGolden(path, stage string, h *check.History, form Form) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("update a history: %w", err)
	}
	archive := txtar.Parse(before)
	section := txtar.File{Name: stage + historySuffix, Data: []byte(Render(h, form))}
	found := false
	for i, f := range archive.Files {
		if f.Name == section.Name {
			archive.Files[i], found = section, true
		}
	}
	if !found {
		archive.Files = append(archive.Files, section)
	}
	after := txtar.Format(archive)
	if bytes.Equal(before, after) {
		return nil
	}
	if err := os.WriteFile(path, after, 0o644); err != nil { //nolint:gosec // a file of the repository
		return fmt.Errorf("update a history: %w", err)
	}
	return nil
}
