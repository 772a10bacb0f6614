package scenario

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/tools/txtar"
)

// This file reads and writes the text of a script: the lines of its comment part, and the sections after it.

// ParseError says what is wrong with a line of a script, and what was expected there.
type ParseError struct {
	Name string
	Line int
	// Problem is the sentence, without the place.
	Problem string
}

// Error is the place and the problem, as compilers write it.
func (e *ParseError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Problem) }

// Parse reads a script: its lines, and after them the sections of a txtar archive. Name stands in errors. Every step is
// checked against the vocabulary, and all that is wrong is reported at once, each line as a [*ParseError].
func Parse(name string, r io.Reader) (*Script, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	archive := txtar.Parse(text)
	s := &Script{Name: name, Files: map[string]string{}}
	var errs []error
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		if err := s.line(i+1, strings.TrimSpace(line)); err != nil {
			errs = append(errs, &ParseError{Name: name, Line: i + 1, Problem: err.Error()})
		}
	}
	s.Why = strings.TrimSpace(s.Why)
	for _, f := range archive.Files {
		s.setFile(f.Name, string(f.Data))
	}
	for _, step := range s.Steps {
		if _, err := compile(step, s.Files); err != nil {
			errs = append(errs, &ParseError{Name: name, Line: step.Line, Problem: err.Error()})
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return lineOf(a) - lineOf(b) })
	return s, errors.Join(errs...)
}

func lineOf(err error) int {
	if p, ok := errors.AsType[*ParseError](err); ok {
		return p.Line
	}
	return 0
}

// line reads one line: a comment, a header, or a step.
func (s *Script) line(number int, line string) error {
	if comment, ok := strings.CutPrefix(line, "#"); ok {
		if len(s.Steps) == 0 && len(s.Controllers) == 0 {
			s.Why += strings.TrimPrefix(comment, " ") + "\n"
		}
		return nil
	}
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return err
	}
	if set, ok := headers[words[0].text]; ok && !words[0].quoted {
		if len(s.Steps) > 0 {
			return fmt.Errorf("%s has to come before the first step", words[0].text)
		}
		return set(s, plain(words[1:]))
	}
	step, err := toStep(words)
	step.Line = number
	s.Steps = append(s.Steps, step)
	return err
}

// headers are the lines that come before the first step.
var headers = map[string]func(*Script, []string) error{
	"controllers": func(s *Script, words []string) error {
		s.Controllers = append(s.Controllers, words...)
		if len(words) == 0 {
			return errors.New("no names; expected controllers NAME")
		}
		return nil
	},
	"seed": func(s *Script, words []string) (err error) {
		if len(words) == 1 {
			s.Seed, err = strconv.ParseUint(words[0], 10, 64)
		}
		if err != nil || len(words) != 1 {
			return errors.New("expected seed NUMBER")
		}
		return nil
	},
	"only": func(s *Script, words []string) error {
		if len(words) < 3 || words[1] != "because" {
			return errors.New("expected only STAGE because REASON")
		}
		s.Only, s.Because = words[0], strings.Join(words[2:], " ")
		return nil
	},
}

// word is a word of a line. What was quoted is never an option.
type word struct {
	key, text string
	quoted    bool
}

// split cuts a line into words. A word that begins with { goes on to the end of the line; one in quotes is a Go string.
// A word that is # ends the line.
func split(line string) ([]word, error) {
	var out []word
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		if rest[0] == '#' {
			return out, nil
		}
		if rest[0] == '{' && len(out) > 0 {
			return append(out, word{text: rest, quoted: true}), nil
		}
		var w word
		if i := strings.IndexFunc(rest, endsKey); i > 0 && rest[i] == '=' && optionKey(rest[:i]) {
			w.key, rest = rest[:i], rest[i+1:]
		}
		if strings.HasPrefix(rest, `"`) {
			prefix, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("a quoted word does not end: %s", rest)
			}
			if w.text, err = strconv.Unquote(prefix); err != nil {
				return nil, fmt.Errorf("%s: %w", prefix, err)
			}
			w.quoted, rest = true, rest[len(prefix):]
		} else {
			end := strings.IndexFunc(rest, unicode.IsSpace)
			if end < 0 {
				end = len(rest)
			}
			w.text, rest = rest[:end], rest[end:]
		}
		out = append(out, w)
	}
	return out, nil
}

func endsKey(r rune) bool { return unicode.IsSpace(r) || r == '=' || r == '"' }

func plain(words []word) []string {
	var out []string
	for _, w := range words {
		out = append(out, w.text)
	}
	return out
}

func toStep(words []word) (Step, error) {
	step := Step{Verb: words[0].text}
	if words[0].key != "" {
		return step, fmt.Errorf("expected a verb, not the option %s", words[0].key)
	}
	for _, w := range words[1:] {
		if w.key == "" {
			step.Args = append(step.Args, w.text)
			continue
		}
		if step.Options == nil {
			step.Options = map[string]string{}
		}
		if _, twice := step.Options[w.key]; twice {
			return step, fmt.Errorf("the option %s is listed twice", w.key)
		}
		step.Options[w.key] = w.text
	}
	return step, nil
}

// setFile sets a section, which comes last if it is new.
func (s *Script) setFile(name, text string) {
	if _, ok := s.Files[name]; !ok {
		s.order = append(s.order, name)
	}
	if s.Files == nil {
		s.Files = map[string]string{}
	}
	s.Files[name] = text
}

// Format is the script as text that Parse reads. Comments between steps are not kept.
func (s *Script) Format() []byte {
	var b strings.Builder
	if s.Why != "" {
		for line := range strings.SplitSeq(s.Why, "\n") {
			b.WriteString(strings.TrimSpace("# "+line) + "\n")
		}
		b.WriteString("\n")
	}
	if len(s.Controllers) > 0 {
		fmt.Fprintf(&b, "controllers %s\n", strings.Join(s.Controllers, " "))
	}
	if s.Seed != 0 {
		fmt.Fprintf(&b, "seed %d\n", s.Seed)
	}
	if s.Only != "" {
		fmt.Fprintf(&b, "only %s because %s\n", s.Only, s.Because)
	}
	b.WriteString("\n")
	for _, step := range s.Steps {
		b.WriteString(step.String() + "\n")
	}
	archive := &txtar.Archive{Comment: []byte(b.String())}
	for _, name := range s.order {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(s.Files[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if !slices.Contains(s.order, name) {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(s.Files[name])})
		}
	}
	return txtar.Format(archive)
}
