#!/usr/bin/env bash
# Writes generated files: deepcopy methods and CRDs of api/, and whatever has a go:generate line. "make generate" calls
# it. Generators find the tools of tools.mod first on their PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/bin/tools:$PATH
export PATH

controller-gen object crd paths=./api/... output:crd:dir=deploy/crds
go generate ./...
go generate ./sandbox/... ./proof/...
# A module of its own, as a user's would be.
(cd examples/fleet && GOWORK=off controller-gen object crd paths=./api/... output:crd:dir=config)
