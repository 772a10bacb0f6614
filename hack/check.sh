#!/usr/bin/env bash
# Looks for broken promises in full; "make test" runs a short cut of the same. On two cores each takes about 50 minutes.
#
#   check.sh controllers   "make check": simulation (L0), every fault against a real API server (L1), scenarios
#   check.sh checker       "make calibrate": whether the checker finds what it must find (bugs of upstream's controllers,
#                          ours with one line spoilt), and whether the simulation's API server is like the real one
#
# Tests print what they have done in lines that begin with "check: ":
#
#   check: L1 daemonset: 512 faults injected, 60234 states checked, 0 violations, 71 s
#
# They become the table at the end. The exit status is 1 if a test failed or a promise was broken.
#
# Taken from the environment: LDFLAGS (the linker's flags), CHECKFLAGS (more flags for go test, "-run L0" say).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

timeout=90m # of one test binary: the fault sweeps take 25 minutes alone on two processors, the mutants 52 minutes of CPU for 88 of 125
run="CAIRN_TEST_RUN=check-$$-$(date +%s)"
logs=$root/bin/check/${1:-}
rm -rf "$logs" && mkdir -p "$logs"

# Two lanes run side by side: the first one computes, the second one mostly waits. A lane is a list of packages of the
# proof module; what does not exist yet is left out.
case ${1:-} in
controllers)
	computing=(./sim)
	waiting=(./fault/... ./scenario/...)
	;;
checker)
	computing=(./mutants)
	waiting=(./calibrate/... ./check/... ./sim/model)
	;;
*)
	echo "usage: $0 controllers | checker" >&2
	exit 2
	;;
esac

# stage runs the tests of one pattern: NICENESS PATTERN. What it prints goes to a log, what matters of it to the screen.
stage() {
	local nice=$1 pattern=$2 name=${2#./} status=0 start=$SECONDS log
	name=${name%/...}
	log=$logs/${name//\//-}.log
	# Little garbage collection while memory lasts: two of these run side by side, also on a machine with 8 GB.
	local -a vars=("$run" CAIRN_CHECK=full GOGC="${GOGC:-500}" GOMEMLIMIT="${GOMEMLIMIT:-4500MiB}")
	# client-go panics if a cached object was changed by anybody. To find out it compares every version of the last
	# minutes, each second: with hundreds of managers in one process that would be all it does. The cut of the sweep that
	# "make test" runs has it on.
	if [[ $pattern != ./fault/... ]]; then vars+=(KUBE_CACHE_MUTATION_DETECTOR=true); fi
	# shellcheck disable=SC2086 # CHECKFLAGS is a list of words
	env "${vars[@]}" nice -n "$nice" go test -v -count=1 -vet=off -timeout "$timeout" -ldflags "${LDFLAGS:-}" \
		${CHECKFLAGS:-} "$pattern" >"$log" 2>&1 || status=$?
	echo "$status $((SECONDS - start)) $name" >>"$logs/stages"
	if ((status == 0)); then
		echo "    $name: passed in $((SECONDS - start)) s"
	else
		echo "    $name: FAILED after $((SECONDS - start)) s, see $log"
	fi
}

# lane runs stages one after the other: NICENESS PATTERN...
lane() {
	local nice=$1 pattern
	shift
	for pattern in "$@"; do
		if [[ -d ${pattern%/...} ]]; then stage "$nice" "$pattern"; fi
	done
}

cd proof
"$root/hack/progress.sh" "compiling the checks" "-test ./..." go list -v -export -test ./...
echo "==> checking, in two lanes: $((${#computing[@]} + ${#waiting[@]})) stages"
# Who computes stands back: a manager that gets no time looks like one that has nothing to do.
lane 10 "${computing[@]}" &
computes=$!
lane 0 "${waiting[@]}" &
waits=$!
trap 'kill "$computes" "$waits" 2>/dev/null; "$root/hack/leftovers.sh" "$run" || true' INT TERM
wait "$computes" "$waits"
cd ..

failed=""
while read -r status _ name; do
	if ((status == 0)); then continue; fi
	failed="$failed $name"
	echo
	echo "==> $name FAILED; the end of what it printed (all of it: ${logs#"$root"/}/${name//\//-}.log)"
	# What a failed test has logged stands below its line, indented.
	awk '/^ *--- FAIL|^panic:|^FAIL|DATA RACE/ { show = 1 } /^ *--- PASS|^=== RUN|^ok / { show = 0 } show' "$logs/${name//\//-}.log" | head -n 120
done <"$logs/stages"

# table turns the lines that begin with "check: " into columns.
table() {
	awk '
	function take(what,   m) { return match(rest, "[0-9]+ " what) ? substr(rest, RSTART, RLENGTH - length(what) - 1) : "" }
	function cell(v) { return v == "" ? "-" : v }
	/^check: / {
		line = substr($0, 8); colon = index(line, ": ")
		stage = substr(line, 1, colon - 1); rest = substr(line, colon + 2)
		f = take("faults injected"); s = take("states checked"); v = take("violations"); t = match(rest, "[0-9]+ s$") ? substr(rest, RSTART, RLENGTH - 2) : ""
		note = (f s v == "") ? rest : ""
		printf "%-34s %15s %15s %11s %8s  %s\n", stage, cell(f), cell(s), cell(v), cell(t), note
		faults += f; states += s; violations += v
	}
	END { printf "%-34s %15d %15d %11d %8d\n", "all", faults, states, violations, seconds; exit violations > 0 }
	' seconds="$SECONDS" "$@"
}

echo
printf '%-34s %15s %15s %11s %8s\n' "" "faults injected" "states checked" violations seconds
table "$logs"/*.log || failed="$failed violations"

hack/leftovers.sh "$run" || failed="$failed leftovers"
if [[ -n $failed ]]; then
	echo "==> check FAILED:$failed" >&2
	exit 1
fi
case $1 in
controllers) echo "==> no promise was broken; $SECONDS s; no process was left behind" ;;
checker) echo "==> the checker found what it must; $SECONDS s; no process was left behind" ;;
esac
