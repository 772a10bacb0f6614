// Command release makes the files of a release. "make image" and "make release" call it.
//
//	go run ./cmd/release -version v0.1.0 -source .. -out ../dist          # everything
//	go run ./cmd/release -version v0.1.0 -source .. -out ../dist image    # the image alone
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/cairn-dev/cairn/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	version := flag.String("version", "", "the tag, as v0.1.0")
	source := flag.String("source", ".", "the folder of the repository")
	out := flag.String("out", "dist", "the folder to write to")
	binaries := flag.String("binaries", "", "a folder with programs that are built already, as linux_amd64/cairn")
	builder := flag.String("builder", "local", "who builds: the URI that the provenance names")
	flag.Parse()
	r, err := release.New(ctx, *version, *source, *out)
	if err == nil {
		r.Binaries = *binaries
		m := maker{r, *builder}
		if flag.Arg(0) == "image" {
			_, err = m.image(ctx)
		} else {
			err = m.all(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// maker says what it has made.
type maker struct {
	*release.Release

	builder string
}

func (m maker) image(ctx context.Context) (archive string, err error) {
	var linux []release.Platform
	for _, p := range release.Platforms() {
		if p.OS == "linux" {
			linux = append(linux, p)
		}
	}
	digest, folder, archive, err := m.Image(ctx, linux...)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stdout, "%s:%s@%s\n  %s, %s\n", release.Repository, m.Version, digest, folder, archive)
	return archive, nil
}

func (m maker) all(ctx context.Context) error {
	var made []string
	step := func(name string, err error) error {
		if err == nil {
			made = append(made, name)
			fmt.Fprintln(os.Stdout, name)
		}
		return err
	}
	for _, p := range release.Platforms() {
		if err := step(m.Archive(ctx, p)); err != nil {
			return err
		}
		if err := step(m.BillOfMaterials(ctx, p)); err != nil {
			return err
		}
	}
	if err := step(m.Krew(release.Platforms()...)); err != nil {
		return err
	}
	if err := step(m.image(ctx)); err != nil {
		return err
	}
	if err := step(m.Provenance(ctx, m.builder, made...)); err != nil {
		return err
	}
	return step(m.Checksums(made...))
}
