package diff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file has another program compare, as kubectl diff does.

// externalVariable names the program, with its flags.
const externalVariable = "KUBECTL_EXTERNAL_DIFF"

// external writes both states to files, and runs program on them. Exit code 1 says that they differ, which is no
// failure.
func external(ctx context.Context, e *env.Env, program string, d *inspect.Difference) error {
	dir, err := os.MkdirTemp("", "cairn-diff-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	words := strings.Fields(program)
	if len(words) == 0 {
		return env.Usagef("%s is set, and names no program", externalVariable)
	}
	for _, state := range []struct{ folder, title, text string }{{"A", d.A, d.Before}, {"B", d.B, d.After}} {
		if err := os.Mkdir(filepath.Join(dir, state.folder), 0o700); err != nil {
			return err
		}
		file := filepath.Join(dir, state.folder, fileName(state.title))
		if err := os.WriteFile(file, []byte(state.text), 0o600); err != nil {
			return err
		}
		words = append(words, file)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user's own choice of program, as for kubectl
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out, e.ErrOut
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", words[0], err)
	}
	return nil
}

// fileName makes a name of a title.
func fileName(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, title) + ".yaml"
}
