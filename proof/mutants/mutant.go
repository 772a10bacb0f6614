package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// This file reads a mutant and makes an overlay of it, with which the go command compiles the fault in.

// Mutant is one deliberate fault.
type Mutant struct {
	// Name is that of its file, without the extension.
	Name string
	// Sentence says what is broken.
	Sentence string
	// Expect are the invariants that it breaks; any of them will do.
	Expect []string
	// World is the kind of world in which it shows, empty if any will do.
	World string
	// Trouble is what goes wrong for longer in that world, empty if nothing does.
	Trouble string
	// Script is a scenario that shows it, for a fault that chance finds too seldom; empty if seeds do.
	Script string
	// Edits are done in this order.
	Edits []Edit
}

// Edit replaces some lines of a file.
type Edit struct {
	// File is the path from the root of the repository, with slashes.
	File string
	// Before occurs exactly once.
	Before, After string
}

// Parse reads a mutant. name is for messages and for [Mutant.Name].
func Parse(name string, data []byte) (*Mutant, error) {
	archive := txtar.Parse(data)
	m := &Mutant{Name: name}
	if err := m.parseComment(string(archive.Comment)); err != nil {
		return nil, fmt.Errorf("mutant %s: %w", name, err)
	}
	if i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "scenario" }); i > 0 {
		m.Script = string(txtar.Format(&txtar.Archive{Comment: archive.Files[i].Data, Files: archive.Files[i+1:]}))
		archive.Files = archive.Files[:i]
	}
	for i := 0; i < len(archive.Files); i += 2 {
		file, ok := strings.CutPrefix(archive.Files[i].Name, "before ")
		if !ok || i+1 == len(archive.Files) || archive.Files[i+1].Name != "after" || len(archive.Files[i].Data) == 0 {
			return nil, fmt.Errorf("mutant %s: section %q: want pairs of \"before <file>\", not empty, and \"after\"",
				name, archive.Files[i].Name)
		}
		m.Edits = append(m.Edits, Edit{File: file, Before: string(archive.Files[i].Data), After: string(archive.Files[i+1].Data)})
	}
	if m.Sentence == "" || len(m.Expect) == 0 || len(m.Edits) == 0 {
		return nil, fmt.Errorf("mutant %s: want a sentence, \"expect:\" and something to replace", name)
	}
	return m, nil
}

func (m *Mutant) parseComment(comment string) error {
	var sentence []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, ": ")
		switch {
		case line == "":
		case ok && key == "expect":
			m.Expect = strings.Fields(value)
		case ok && key == "world":
			m.World = value
		case ok && key == "trouble":
			m.Trouble = value
		case m.Expect != nil:
			return fmt.Errorf("line %q: want \"expect: \", \"world: \" or \"trouble: \"", line)
		default:
			sentence = append(sentence, line)
		}
	}
	m.Sentence = strings.Join(sentence, " ")
	return nil
}

// Apply returns the mutated files by their path. read returns the content of a file of the repository.
func (m *Mutant) Apply(read func(file string) ([]byte, error)) (map[string]string, error) {
	mutated := map[string]string{}
	for _, e := range m.Edits {
		content, ok := mutated[e.File]
		if !ok {
			data, err := read(e.File)
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			content = string(data)
		}
		at := occurrences(content, e.Before)
		if len(at) != 1 {
			return nil, fmt.Errorf("mutant %s: %s has these lines %d times, not once; bring the mutant up to date:\n%s",
				m.Name, e.File, len(at), e.Before)
		}
		mutated[e.File] = content[:at[0]] + e.After + content[at[0]+len(e.Before):]
	}
	return mutated, nil
}

// keepLines makes the lines after each edit of a file keep their numbers for the compiler. was is the file before the
// edits, is the mutated file, path its path. Line numbers are part of the export data of a package. If they change, all
// packages that import it are compiled again, which takes a minute instead of some seconds.
func (m *Mutant) keepLines(path, file, was, is string) string {
	for _, e := range m.Edits {
		old, now := occurrences(was, e.Before), occurrences(is, e.After)
		if e.File != file || e.After == "" || len(old) != 1 || len(now) != 1 || lines(e.Before) == lines(e.After) {
			continue // another file, or what follows it is not known: that is only slower
		}
		end := now[0] + len(e.After)
		is = is[:end] + fmt.Sprintf("//line %s:%d\n", path, lines(was[:old[0]+len(e.Before)])+1) + is[end:]
	}
	return is
}

func lines(text string) int { return strings.Count(text, "\n") }

// occurrences returns where whole lines occur.
func occurrences(content, text string) (at []int) {
	for i := 0; i+len(text) <= len(content); i++ {
		if (i == 0 || content[i-1] == '\n') && strings.HasPrefix(content[i:], text) {
			at = append(at, i)
		}
	}
	return at
}

// Overlay writes the mutated files of the repository at root, and the JSON file for the go command's flag -overlay that
// puts them in place, below dir. It returns the path of that file. root and dir are absolute.
func (m *Mutant) Overlay(root, dir string) (string, error) {
	mutated, err := m.Apply(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(root, file)) })
	if err != nil {
		return "", err
	}
	var overlay struct {
		Replace map[string]string `json:"Replace"`
	}
	overlay.Replace = map[string]string{}
	for file, content := range mutated {
		was, readErr := os.ReadFile(filepath.Join(root, file))
		content = m.keepLines(filepath.Join(root, file), file, string(was), content)
		replacement := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		overlay.Replace[filepath.Join(root, file)] = replacement
		err = errors.Join(err, readErr, os.WriteFile(replacement, []byte(content), 0o600))
	}
	encoded, encodeErr := json.Marshal(overlay)
	path := filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, encodeErr, os.WriteFile(path, encoded, 0o600))
}

// Packages are the folders that the mutant changes, as the go command takes them from the root of the repository.
func (m *Mutant) Packages() []string {
	var out []string
	for _, e := range m.Edits {
		if dir := "./" + filepath.ToSlash(filepath.Dir(e.File)); !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}
