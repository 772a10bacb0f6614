#!/usr/bin/env bash
# Runs a go command that takes -v and says how far it has got: quiet when the build cache is warm, a line every few
# seconds when it is cold.
#
#   hack/progress.sh "building the control plane" "./cmd/cairn ./sandbox/..." go build -v -o bin/ ...
#
# First what is being done, then the arguments with which "go list" finds all packages of the build (they are split at
# blanks), then the command itself. Its exit status is ours.
set -euo pipefail

label=$1
list_args=$2
shift 2

interval=5 # seconds between two lines
# The bash that macOS ships cannot tell a timeout from the end of the input: there, lines come only while go prints.
timeout="-t $interval"
if ((BASH_VERSINFO[0] < 4)); then timeout=""; fi

report() {
	local line status downloads=0 compiled=0 total="" next=$interval
	while true; do
		status=0
		# shellcheck disable=SC2086 # the option and its value are two words
		IFS= read -r $timeout line || status=$?
		if ((status == 0)); then
			case $line in
			"go: downloading "*) downloads=$((downloads + 1)) ;;
			"# "* | *": "*) printf '%s\n' "$line" >&2 ;; # an error and its head line
			*) # go build -v prints nothing but import paths; a test's package has " [package.test]" behind it
				if [[ $line =~ ^[A-Za-z0-9_.~/@+-]+(\ \[[A-Za-z0-9_.~/@+-]+\])?$ ]]; then
					compiled=$((compiled + 1))
				else
					printf '%s\n' "$line" >&2
				fi
				;;
			esac
		elif ((status <= 128)); then
			break # the command has ended
		fi
		if ((SECONDS < next)); then continue; fi
		next=$((SECONDS + interval))
		if ((compiled == 0 && downloads > 0)); then
			echo "$label: $downloads modules downloaded, $SECONDS s"
			continue
		fi
		if ((compiled == 0)); then
			echo "$label: nothing compiled so far, $SECONDS s" # loading, or linking with a warm cache
			continue
		fi
		if [[ -z $total ]]; then
			# shellcheck disable=SC2086 # a list of words
			total=$(go list -deps $list_args 2>/dev/null | wc -l | tr -d ' ') || total="?"
		fi
		echo "$label: $compiled of at most $total packages, $SECONDS s" # the rest is in the cache
	done
	if ((SECONDS >= interval)); then
		echo "$label: done, $compiled packages compiled in $SECONDS s"
	fi
}

"$@" 2>&1 >/dev/null | report
