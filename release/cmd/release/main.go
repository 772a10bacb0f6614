// Command release makes the files of a release. "make image" and "make release" call it.
//
//	go run ./cmd/release -version v0.1.0 -source .. -out ../dist          # everything
//	go run ./cmd/release -version v0.1.0 -source .. -out ../dist image    # the image alone
//	go run ./cmd/release -version v0.1.0 -source .. -out ../dist chart    # the chart, and the manifests for kubectl
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
	helm := flag.String("helm", "helm", "the program that renders the chart")
	builder := flag.String("builder", "local", "who builds: the URI that the provenance names")
	flag.Parse()
	r, err := release.New(ctx, *version, *source, *out)
	if err == nil {
		r.Binaries = *binaries
		m := maker{Release: r, builder: *builder, helm: *helm}
		switch flag.Arg(0) {
		case "image":
			err = m.image(ctx)
		case "chart":
			err = m.chart(ctx)
		default:
			err = m.all(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// maker makes one thing after the other, and says what it has made.
type maker struct {
	*release.Release

	builder, helm string
	made          []string
}

func (m *maker) step(name string, err error) error {
	if err == nil {
		m.made = append(m.made, name)
		fmt.Fprintln(os.Stdout, name)
	}
	return err
}

func (m *maker) image(ctx context.Context) error {
	var linux []release.Platform
	for _, p := range release.Platforms() {
		if p.OS == "linux" {
			linux = append(linux, p)
		}
	}
	digest, folder, archive, err := m.Image(ctx, linux...)
	if err == nil {
		fmt.Fprintf(os.Stdout, "%s:%s@%s in %s\n", release.Repository, m.Version, digest, folder)
	}
	return m.step(archive, err)
}

func (m *maker) chart(ctx context.Context) error {
	chart, err := m.Chart()
	if err := m.step(chart, err); err != nil {
		return err
	}
	installs, err := m.Installs(ctx, m.helm, chart)
	for _, name := range installs {
		err = m.step(name, err)
	}
	return err
}

func (m *maker) all(ctx context.Context) error {
	for _, p := range release.Platforms() {
		if err := m.step(m.Archive(ctx, p)); err != nil {
			return err
		}
		if err := m.step(m.BillOfMaterials(ctx, p)); err != nil {
			return err
		}
	}
	if err := m.step(m.Krew(release.Platforms()...)); err != nil {
		return err
	}
	if err := m.image(ctx); err != nil {
		return err
	}
	if err := m.chart(ctx); err != nil {
		return err
	}
	if err := m.step(m.Provenance(ctx, m.builder, m.made...)); err != nil {
		return err
	}
	return m.step(m.Checksums(m.made...))
}
