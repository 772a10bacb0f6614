#!/usr/bin/env bash
# Fails when a process of a test run is still there, and ends it.
#
#   hack/leftovers.sh NAME=VALUE
#
# Every process that a test run starts inherits the variable NAME=VALUE, so it can be told from everything else on the
# machine. Where there is no /proc (macOS) nothing is checked.
set -euo pipefail

mark=$1

# left prints the ids of the processes that carry the mark, this script's own excepted.
left() {
	local dir pid
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		if [[ $pid == "$$" || $pid == "$BASHPID" ]]; then continue; fi
		if tr '\0' '\n' 2>/dev/null <"$dir/environ" | grep -qxF "$mark"; then
			echo "$pid"
		fi
	done 2>/dev/null
}

if [[ ! -r /proc/self/environ ]]; then exit 0; fi

unset "${mark%%=*}" # what this script starts from here on is not marked
for _ in 1 2 3 4 5; do # a process that is about to end may do so
	pids=$(left)
	if [[ -z $pids ]]; then exit 0; fi
	sleep 1
done

echo "the tests left processes behind:" >&2
for pid in $pids; do
	echo "  $pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" || true)" >&2
	kill "$pid" 2>/dev/null || true
done
exit 1
