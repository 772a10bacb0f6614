#!/usr/bin/env bash
# Compares the exported API of the root module with that of the last tag v*. "make apidiff" calls it. VERSIONING.md says what
# a difference means: under v0 it is printed, for the changelog; from v1 on one that breaks importers fails.
#
# Taken from the environment: APIDIFF (the binary), or apidiff on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
apidiff=${APIDIFF:-apidiff}

# The highest version among the ancestors; a pre-release is lower than its release.
tag=$(git -c versionsort.suffix=- tag --list 'v[0-9]*' --merged HEAD --sort=-version:refname | sed -n 1p)
if [[ -z $tag ]]; then
	echo "apidiff: no tag yet"
	exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/old"
git archive "$tag" | tar -x -C "$tmp/old"
export GOWORK=off # as importers see it

# packages prints what is promised to importers (VERSIONING.md). The others of this list can be imported, and promise nothing.
packages() {
	local module
	module=$(go list -m)
	go list ./... | grep -vE "^$module/((cmd|controllers|deploy|examples)(/|\$)|(.*/)?internal(/|\$))"
}
packages >"$tmp/new.list"
(cd "$tmp/old" && packages) >"$tmp/old.list"

# Packages one by one: apidiff -m writes a format that golang.org/x/tools no longer has.
changed="" breaks=""
while read -r package; do
	if ! grep -qxF "$package" "$tmp/new.list"; then
		printf '%s: removed\n' "$package"
		changed=yes breaks=yes
		continue
	fi
	(cd "$tmp/old" && "$apidiff" -w "$tmp/old.api" "$package")
	report=$(cd "$root" && "$apidiff" "$tmp/old.api" "$package")
	if [[ -z $report ]]; then continue; fi
	printf '%s\n%s\n' "$package" "$report"
	changed=yes
	if [[ $report == *"Incompatible changes:"* ]]; then breaks=yes; fi
done <"$tmp/old.list"
while read -r package; do
	printf '%s: added\n' "$package"
	changed=yes
done < <(grep -vxFf "$tmp/old.list" "$tmp/new.list")

if [[ -z $changed ]]; then
	echo "apidiff: the exported API is that of $tag"
elif [[ -z $breaks ]]; then
	echo "apidiff: these are the differences from $tag; they break nobody"
elif [[ $tag == v0.* ]]; then
	echo "apidiff: these are the differences from $tag; under v0 they need a line in CHANGELOG.md (VERSIONING.md)"
else
	echo "apidiff: these are the differences from $tag; they break those who import it (VERSIONING.md)" >&2
	exit 1
fi
