#!/usr/bin/env bash
# Tidies every module: the root, sandbox/, proof/, the examples with one of their own and the tools. "make tidy" calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each module by itself, as its users see it.
GOWORK=off go mod tidy
(cd sandbox && GOWORK=off go mod tidy)
(cd proof && GOWORK=off go mod tidy)
(cd release && GOWORK=off go mod tidy)
(cd deploy/monitoring && GOWORK=off go mod tidy)
(cd examples/fleet && GOWORK=off go mod tidy)
(cd examples/journal && GOWORK=off go mod tidy)

# The workspace needs a few more checksums. Any go command adds those that it misses: these two miss all of them.
go list -m all >/dev/null
go list -deps -test ./... ./sandbox/... ./proof/... >/dev/null

# "go mod tidy -modfile=tools.mod" would take the packages of this directory for those of the tools' module and add
# everything that they import. So the module file is tidied in an empty directory.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for name in tools helm vale; do
	mkdir "$tmp/$name"
	cp $name.mod "$tmp/$name/go.mod"
	cp $name.sum "$tmp/$name/go.sum"
	(cd "$tmp/$name" && GOWORK=off go mod tidy)
	# Copied back only when it is another one: a new date would build the tools again.
	cmp -s "$tmp/$name/go.mod" $name.mod || cp "$tmp/$name/go.mod" $name.mod
	cmp -s "$tmp/$name/go.sum" $name.sum || cp "$tmp/$name/go.sum" $name.sum
done
