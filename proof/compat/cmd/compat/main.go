// Command compat runs the real controllers of other projects against the sandbox, and asks the command line about
// their objects:
//
//	compat kruise     one project; without a name all of them
//	compat v1.36.3   the tests against that version of Kubernetes
//
// It is started in the root of the repository, after "make build". The controllers are built from their published
// modules (package compat), with these modules' own dependencies, into bin/compat: some minutes the first time. What is
// seen becomes the table in docs/kinds.md, or in docs/versions.md; the exit code is 1 if a row says that something went
// wrong.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := play(ctx, os.Stdout, strings.Join(os.Args[1:], " "))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// play runs the system with that name, or all, and writes the page. It says whether every row of theirs is as it
// should be.
func play(ctx context.Context, out io.Writer, name string) (ok bool, err error) {
	if isVersion(name) {
		return tryVersion(ctx, out, name)
	}
	chosen := systems
	if name != "" {
		i := slices.IndexFunc(systems, func(s system) bool { return s.name == name })
		if i < 0 {
			return false, fmt.Errorf("there is no %q; there are: %s", name, strings.Join(names(), ", "))
		}
		chosen = systems[i : i+1]
	}
	ok = true
	for _, s := range chosen {
		rows, err := s.run(ctx, out)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		for _, r := range rows {
			fmt.Fprintln(out, r.text)
			ok = ok && !r.failed
		}
		if err := theKinds.change(filepath.Join("docs", "kinds.md"), s.replaced(rows)); err != nil {
			return false, err
		}
	}
	return ok, nil
}

// names are the names of all systems.
func names() (out []string) {
	for _, s := range systems {
		out = append(out, s.name)
	}
	return out
}
