#!/usr/bin/env bash
# Generates, tidies, formats and lints, and fails when that changes a file. Checks the workflows, and compares the exported
# API with that of the last tag. "make verify" calls it.
#
# It does not ask for a clean working tree: it compares the tree before with the tree after, new files included, so it
# says the same in a clone and in the middle of an edit. What was generated or tidied stays on the disk, to be committed.
set -euo pipefail
cd "$(dirname "$0")/.."
make=${1:-make}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# tree prints the id of the git tree that holds the working directory as it is now, ignored files left out. It has an
# index and an object store of its own: the developer's staged changes and the repository stay as they are.
objects=$(git rev-parse --path-format=absolute --git-path objects)
mkdir "$tmp/objects"
export GIT_OBJECT_DIRECTORY=$tmp/objects GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects
tree() {
	rm -f "$tmp/index"
	GIT_INDEX_FILE=$tmp/index git add --all .
	GIT_INDEX_FILE=$tmp/index git write-tree
}

# step says what is being done and how long it took. make gets git's own settings back.
step() {
	local start=$SECONDS status=0
	echo "==> $1"
	env -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES "${@:2}" || status=$?
	echo "    $((SECONDS - start)) s"
	return "$status"
}

failed=""
before=$(tree)

step "generating" "$make" --no-print-directory generate
step "tidying every module" "$make" --no-print-directory tidy
after=$(tree)
if [[ $before != "$after" ]]; then
	echo "==> generating or tidying changed these files (see git diff; commit them):" >&2
	git --no-pager diff --stat "$before" "$after" >&2
	git --no-pager diff "$before" "$after" | sed -n 1,60p >&2
	failed="$failed diff"
fi

echo "==> gofmt"
unformatted=$(git ls-files -z --cached --others --exclude-standard -- '*.go' |
	while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done |
	xargs -0 gofmt -l)
if [[ -n $unformatted ]]; then
	printf '==> gofmt would change these files:\n%s\n' "$unformatted" >&2
	failed="$failed gofmt"
fi

# The workspace picks the higher version of every library. Those who import the root module do not have it.
step "building the root module without the workspace" env GOWORK=off go build ./... || failed="$failed root-alone"
step "checking the workflows" "$make" --no-print-directory actionlint || failed="$failed actionlint"
step "comparing the exported API with the last tag" "$make" --no-print-directory apidiff || failed="$failed apidiff"
step "linting" "$make" --no-print-directory lint || failed="$failed lint"

if [[ -n $failed ]]; then
	echo "==> verify FAILED:$failed" >&2
	exit 1
fi
echo "==> verified in $SECONDS s"
