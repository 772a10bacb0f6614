package model_test

import (
	"os"
	"testing"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// TestMain runs the tests, with an API server that nobody but the tests and the garbage collector writes to.
func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, sandbox.Options{Nodes: sandbox.NoNodes, Replaced: sandbox.Kinds()}))
}
