package diff

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/complete"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file reads which two states are meant.

// relative is how the revision before the current one is written. A shell user writes -1, which a parser of flags takes
// for one: see [Arguments].
var relative = regexp.MustCompile(`^[-~]([1-9][0-9]{0,8})$`)

// Arguments returns the arguments of the whole command line with -1, where it stands for a revision, as ~1. It is
// called before flags are parsed.
func Arguments(args []string) []string {
	out := append([]string(nil), args...)
	for i, arg := range out {
		if arg == "--" || i == 0 && arg != "diff" {
			break
		}
		if relative.MatchString(arg) && !strings.HasPrefix(out[i-1], "--") {
			out[i] = "~" + arg[1:]
		}
	}
	return out
}

// split separates the object from the states: TYPE/NAME, or TYPE NAME; with -l or -A it is a TYPE, with -f it is none.
func split(args []string, s *env.Selection) (objects, states []string) {
	n := 1
	switch {
	case s.FromFiles():
		n = 0
	case len(args) > 0 && !strings.Contains(args[0], "/") && !s.Any():
		n = 2
	}
	n = min(n, len(args))
	return args[:n], args[n:]
}

// parse reads the states, which are arguments or flags.
func parse(states []string, from, to string) ([]inspect.Operand, error) {
	if from != "" || to != "" {
		switch {
		case len(states) > 0:
			return nil, env.Usagef("name the states as arguments, or with --revision and --to-revision, not both")
		case from == "":
			return nil, env.Usagef("--to-revision=%s: say with --revision what to compare it with", to)
		}
		var out []inspect.Operand
		for _, flag := range []struct{ name, value string }{{"revision", from}, {"to-revision", to}} {
			if flag.value == "" {
				continue
			}
			find, err := env.Find(flag.name, flag.value)
			if err != nil {
				return nil, err
			}
			out = append(out, inspect.Operand{Find: find})
		}
		return out, nil
	}
	var out []inspect.Operand
	for _, text := range states {
		s, err := state(text)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// state reads one argument. What could be a name or a file is a file if there is one.
func state(text string) (inspect.Operand, error) {
	if text == complete.Live {
		return inspect.Operand{}, nil
	}
	if m := relative.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		return inspect.Operand{Before: n}, err
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		if info, err := os.Stat(text); err == nil && !info.IsDir() {
			return manifest(text)
		}
		if strings.ContainsAny(text, "/\\") || strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".json") {
			return inspect.Operand{}, env.Usagef("there is no file %s", text)
		}
	}
	find, err := env.Find("revision", text)
	return inspect.Operand{Find: find}, err
}

// manifest reads an object from a file, as it is written.
func manifest(file string) (inspect.Operand, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return inspect.Operand{}, err
	}
	var o map[string]any
	if err := yaml.Unmarshal(raw, &o); err != nil {
		return inspect.Operand{}, fmt.Errorf("read %s: %w", file, err)
	}
	if len(o) == 0 {
		return inspect.Operand{}, fmt.Errorf("there is no object in %s", file)
	}
	return inspect.Operand{Given: o, Title: file}, nil
}
