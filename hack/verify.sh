#!/usr/bin/env bash
# Generates, tidies, checks the prose, formats and lints. Checks the workflows, and compares the exported API with the last
# tag. Fails if a check fails or a file changes. "make verify" calls it.
#
# A clean working tree is not required: the script compares the tree before with the tree after, new files included. The
# result is the same in a clone and in the middle of an edit. Generated and tidied files stay on the disk, to be committed.
#
# All checks run. The output of those that failed is printed again at the end, and the last line lists their names.
set -euo pipefail
cd "$(dirname "$0")/.."
make=${1:-make}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# apart runs git with an index and an object store of its own: the developer's staged changes and the repository do not
# change.
objects=$(git rev-parse --path-format=absolute --git-path objects)
mkdir "$tmp/objects"
apart() {
	GIT_INDEX_FILE=$tmp/index GIT_OBJECT_DIRECTORY=$tmp/objects GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects git --no-pager "$@"
}

# tree prints the id of the git tree that holds the working directory, without ignored files.
tree() {
	rm -f "$tmp/index"
	apart add --all .
	apart write-tree
}

# check runs a command and prints its duration: NAME LABEL COMMAND... It keeps the output and notes a failure.
failed=()
check() {
	local name=$1 start=$SECONDS
	echo "==> $2"
	if ! "${@:3}" 2>&1 | tee "$tmp/$name.out"; then failed+=("$name"); fi
	echo "    $((SECONDS - start)) s"
}

target() { "$make" --no-print-directory "$@"; }

before=$(tree)
unchanged() {
	local after
	after=$(tree)
	if [[ $before == "$after" ]]; then return 0; fi
	echo "these files changed (see git diff; commit them):"
	apart diff --stat "$before" "$after"
	apart diff "$before" "$after" >"$tmp/diff"
	sed -n 1,60p "$tmp/diff"
	return 1
}

formatted() {
	local files
	files=$(git ls-files -z --cached --others --exclude-standard -- '*.go' |
		while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done |
		xargs -0 gofmt -l) || return 1
	if [[ -z $files ]]; then return 0; fi
	printf 'gofmt would change these files:\n%s\n' "$files"
	return 1
}

check generate "generating" target generate
check tidy "tidying every module" target tidy
check prose "comparing the findings in prose with hack/prose/total" target prose-ratchet
check diff "looking for files that these steps changed" unchanged
check gofmt "gofmt" formatted
# The workspace picks the higher version of every library. A module that imports the root module does not have the workspace.
check root-alone "building the root module without the workspace" env GOWORK=off go build ./...
check actionlint "checking the workflows" target actionlint
check apidiff "comparing the exported API with the last tag" target apidiff
check lint "linting" target lint

recent=$(hack/commit-msg --recent)
if [[ -n $recent ]]; then printf '==> warning: recent commit messages of another form than CONTRIBUTING.md asks for\n%s\n' "$recent"; fi

if ((${#failed[@]} > 0)); then
	for name in "${failed[@]}"; do
		printf '\n==> FAILED: %s\n' "$name"
		cat "$tmp/$name.out"
	done >&2
	echo "==> verify FAILED: ${failed[*]}" >&2
	exit 1
fi
echo "==> verified in $SECONDS s"
