// Command published prints the directory of a module of package compat, which it downloads: published
// github.com/argoproj/argo-rollouts.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cairn-dev/cairn/proof/compat"
)

func main() {
	if len(os.Args) != 2 { //nolint:mnd // the name, and one module
		fmt.Fprintln(os.Stderr, "published: name one module")
		os.Exit(2)
	}
	dir, err := compat.Dir(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "published:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
