// Command man writes the manual pages of the command line: one for each verb, from the texts that --help prints.
//
//	go run ./internal/cli/man DIRECTORY
//
// SOURCE_DATE_EPOCH is their date. It is a program of its own so that the generator is in no release.
package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/cairn-dev/cairn/internal/cli"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		panic(err)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("it needs a directory to write to")
	}
	root := cli.NewRoot(env.New(genericiooptions.NewTestIOStreamsDiscard(), ""))
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "cairn", Manual: "cairn"}, args[0])
}
