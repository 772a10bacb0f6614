#!/usr/bin/env bash
# Runs all tests of both modules and sees that they leave no process behind. "make test" calls it.
#
# Taken from the environment: GOTESTSUM (the binary), LDFLAGS (the linker's flags), TESTFLAGS (more flags for go test).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

GOTESTSUM=${GOTESTSUM:?is set by the Makefile}
timeout=20m # of one test binary: the longest takes seven minutes on two cores

run="CAIRN_TEST_RUN=$$-$(date +%s)"

# gotest runs the tests of the packages below the current directory. -vet=off: "make verify" runs vet, with more checks.
gotest() {
	# shellcheck disable=SC2086 # TESTFLAGS is a list of words
	# client-go panics if a cached object was changed by anybody.
	env "$run" KUBE_CACHE_MUTATION_DETECTOR=true "$GOTESTSUM" --format pkgname --format-hide-empty-pkg -- \
		-vet=off -timeout "$timeout" -ldflags "${LDFLAGS:-}" "$@" ${TESTFLAGS:-} ./...
}

# Compiling is done beforehand only to say how far it has got. go list does not link.
compile() {
	local label=$1
	shift
	"$root/hack/progress.sh" "$label" "-test $* ./..." go list -v -export -test "$@" ./...
}
failed=""

echo "==> testing the root module, with the race detector (1 of 2)"
compile "compiling the root module for the race detector" -race
gotest -race || failed="$failed root"

# No race detector here: the embedded control plane would have to be compiled a second time.
echo "==> testing the sandbox module, against a real control plane (2 of 2)"
cd sandbox
compile "compiling the sandbox's tests"
# -count=1: these tests run binaries and a control plane, and the test cache knows of neither.
gotest -count=1 || failed="$failed sandbox"
cd ..

hack/leftovers.sh "$run" || failed="$failed leftovers"

if [[ -n $failed ]]; then
	echo "==> FAILED:$failed" >&2
	exit 1
fi
echo "==> all tests passed in $SECONDS s; no process was left behind"
