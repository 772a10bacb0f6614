#!/usr/bin/env bash
# Runs all tests of all modules and checks that they leave no process behind. "make test" calls it.
#
# A test that fails is run again by itself, at most RERUNS times (2). If it passes then, the run passes and lists the test
# under FLAKY, with the output of its first failure in bin/test/flaky. RERUNS=0 turns this off: nightly runs do.
#
# Environment: GOTESTSUM (the binary), LDFLAGS (linker flags), TESTFLAGS (more flags for go test), RERUNS, CAIRN_TURN (which
# part of the fault sweeps runs beside the fixed part; default: the number of commits).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

GOTESTSUM=${GOTESTSUM:?is set by the Makefile}
RERUNS=${RERUNS:-2}
timeout=25m # of one test binary: a busy machine needs eight times as long as an idle one
module=github.com/cairn-dev/cairn
logs=$root/bin/test
rm -rf "$logs" && mkdir -p "$logs"

run="CAIRN_TEST_RUN=$$-$(date +%s)"
export CAIRN_TURN=${CAIRN_TURN:-$(git rev-list --count HEAD 2>/dev/null || echo 0)}
# Little garbage collection while memory lasts: several binaries run at once, also on a machine with 8 GB.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

# stage runs the tests of packages of the module in the current directory: NAME FLAGS PACKAGE...
stage() {
	local name=$1 flags=$2
	shift 2
	echo "==> testing: $name"
	# A rerun takes the whole top-level test: its subtests may build on each other.
	# shellcheck disable=SC2086 # FLAGS and TESTFLAGS are lists of words
	env "$run" "$GOTESTSUM" --format pkgname --format-hide-empty-pkg --jsonfile "$logs/$name.json" \
		--rerun-fails="$RERUNS" --rerun-fails-max-failures=5 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--rerun-fails-report "$logs/$name.reruns" --packages "$*" -- \
		-vet=off -timeout "$timeout" -ldflags "${LDFLAGS:-}" ${TESTFLAGS:-} $flags || echo "$name" >>"$logs/failed"
	outside "$logs/$name.json" | sed "s/^/$name: TestMain of /" | tee -a "$logs/failed"
}

# outside lists the packages that failed although none of their tests did: FILE. gotestsum finds no test to rerun there, and
# passes.
outside() {
	awk '!/"Action":"fail"/ || !match($0, /"Package":"[^"]*"/) { next }
		{ package = substr($0, RSTART + 11, RLENGTH - 12) }
		/"Test":/ { failed[package] = 1; next }
		!failed[package] { print package }
		{ delete failed[package] }' "$1"
}

# flaky lists the tests that failed and passed on a rerun, with the end of the first failure, and saves the whole of it.
flaky() {
	local package test runs failures log
	if ! compgen -G "$logs/*.reruns" >/dev/null; then return; fi
	cat "$logs"/*.reruns |
		sed -nE "s|^$module/?([^.]*)\.([^/:]+): ([0-9]+) runs, ([0-9]+) failures\$|\1 \2 \3 \4|p" |
		while read -r package test runs failures; do
			if ((failures == runs)); then continue; fi
			log=$logs/flaky/${package//\//-}.$test.log
			mkdir -p "$logs/flaky"
			first_failure "$module/$package" "$test" >"$log"
			echo "  $package $test: failed in $failures of $runs runs; the end of ${log#"$root"/}:"
			tail -n 15 "$log" | cut -c1-400 | sed 's/^/    /'
		done
}

# first_failure prints the output of a test and its subtests up to its first failure: PACKAGE TEST
first_failure() {
	awk -v package="\"Package\":\"$1\"" -v test="\"Test\":\"$2" '
		!index($0, package) || !match($0, /"Test":"[^"]*"/) { next }
		{ name = substr($0, RSTART, RLENGTH) }
		name != test "\"" && index(name, test "/") != 1 { next }
		/"Action":"output"/ && match($0, /"Output":".*"/) { print substr($0, RSTART + 10, RLENGTH - 11) }
		/"Action":"fail"/ && name == test "\"" { exit }
	' "$logs"/*.json | sed -E 's/\\n$//; s/\\"/"/g' | while IFS= read -r line; do printf '%b\n' "$line"; done
}

# took says how long a part took, and how busy it has kept the processors: where they are idle, a test waits.
took() {
	local work
	times >"$logs/times" # not in a pipe: there it would be that of a subshell
	work=$(awk -F'[ms ]' 'NR == 2 { printf "%d", 60 * ($1 + $4) + $2 + $5 }' "$logs/times")
	printf '%-12s %4d s, processors %3d %% busy\n' "$1" $((SECONDS - start)) \
		$((100 * (work - worked) / (1 + SECONDS - start) / $(getconf _NPROCESSORS_ONLN))) >>"$logs/parts"
	worked=$work start=$SECONDS
}
worked=0 start=0

# Compiling is done beforehand only to say how far it has got. go list does not link.
compile() {
	local label=$1 flags=$2
	shift 2
	# shellcheck disable=SC2086 # a list of words
	"$root/hack/progress.sh" "$label" "-test $flags $*" go list -v -export -test $flags "$@"
}

# The race detector, which needs C, is for packages that start goroutines or guard something from them, in their code or
# their tests.
mapfile -t shared < <(git grep -lE '^\s*go [a-z(]|\.Go\(|^\s*"(sync|sync/atomic)"$' -- '*.go' ':!sandbox' ':!proof' ':!release' | xargs -n1 dirname | sort -u | sed 's|^|./|')
mapfile -t plain < <(go list -f '{{.Dir}}' ./... | sed "s|^$root|.|" | grep -vxF "$(printf '%s\n' "${shared[@]}")")
CGO_ENABLED=1 compile "compiling the root module, with the race detector" -race "${shared[@]}"
compile "compiling the root module" "" "${plain[@]}"
took compiling

# client-go panics if a cached object was changed. To find out it compares every version of the last minutes, each second:
# it is on where a process has one manager, and off where it has many.
export KUBE_CACHE_MUTATION_DETECTOR=true
# Tests that compute for long in one goroutine: the race detector makes them ten times slower and has nothing to find.
single='^Test(EveryFieldOf|EveryOtherChangeOf|NilAndPointerToZero|MemoryOfAnswersIsBounded|Estimate)'
CGO_ENABLED=1 stage shared "-race -skip $single" "${shared[@]}"
stage plain "" "${plain[@]}" ./revision ./internal/metacontroller/hook
took root

# No race detector here: the embedded control plane would have to be compiled a second time. -count=1: these tests run
# binaries and a control plane, and the test cache knows of neither.
compile "compiling the sandbox and the proof" "" ./sandbox/... ./proof/...
took compiling
# Three lanes. Packages that start a control plane mostly wait; the longest come first, or one of them would be left for
# the end. Packages that compute step back for them: a manager without CPU time looks like one with nothing to do.
waits=$(go list -test -f '{{if .ForTest}}{{range .Deps}}{{if eq . "k8s.io/kubernetes/pkg/controlplane"}}{{$.ForTest}}{{end}}{{end}}{{end}}' \
	./proof/... ./sandbox/... | sort -u | grep -v /proof/scenario/)
first=("$module"/proof/{e2e,fault,differential,e2e/composite,bench/composite})
mapfile -t waiting < <(printf '%s\n' "${first[@]}" && grep -vxF "$(printf '%s\n' "${first[@]}")" <<<"$waits")
mapfile -t computing < <(go list ./proof/... ./sandbox/... | grep -v /proof/scenario | grep -vxF "$(printf '%s\n' "${waiting[@]}")")
stage scenarios -count=1 ./proof/scenario/... &
scenarios=$!
{
	renice -n 10 "$BASHPID" >/dev/null || true
	stage computing -count=1 "${computing[@]}"
	# Modules that are not part of the workspace.
	(cd release && GOWORK=off stage release -count=1 ./...)
	(cd deploy/monitoring && GOWORK=off stage monitoring -count=1 ./...)
} &
lane=$!
KUBE_CACHE_MUTATION_DETECTOR=false stage waiting "-count=1 -p 3" "${waiting[@]}"
wait "$scenarios" || echo scenarios >>"$logs/failed" # a lane that ends early, not only one whose tests fail
wait "$lane" || echo computing >>"$logs/failed"
took proof

# slowest prints the ten packages or tests that took longest: what stands between the package and the seconds in go test's JSON.
slowest() {
	sed -nE 's|.*"Action":"pass","Package":"'"$module"'/?([^"]*)"'"$1"',"Elapsed":([0-9.]+).*|\'"$2"' \1 '"$3"'|p' "$logs"/*.json |
		sort -rn | awk 'NR <= 10 { printf "  %7.1f s  %s %s\n", $1, $2, $3 }' # not head: its end would be a failure of sort
}
printf '\n==> the slowest packages\n' && slowest '' 2 ''
printf '==> the slowest tests\n' && slowest ',"Test":"([^"]*)"' 3 '\2'
printf '==> the parts\n' && cat "$logs/parts"
flakes=$(flaky)
if [[ -n $flakes ]]; then printf '\n==> FLAKY:\n%s\n' "$flakes"; fi

hack/leftovers.sh "$run" || echo leftovers >>"$logs/failed"
if [[ -s $logs/failed ]]; then
	echo "==> FAILED:" $(cat "$logs/failed") >&2
	exit 1
fi
echo "==> all tests passed in $SECONDS s; no process was left behind"
