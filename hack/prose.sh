#!/usr/bin/env bash
# Lints the prose: Markdown, Go comments, and the strings of programs. "make prose" calls it; hack/prose has the rules.
#
#   prose.sh             a table of findings: a line for each rule, a column for each top folder
#   prose.sh SINCE       the findings on lines that differ from commit SINCE, as FILE:LINE: RULE: MESSAGE
#   prose.sh --ratchet   fails if there are more findings than hack/prose/total allows, and lowers that number if there are fewer
#
# Environment: VALE (the binary), or vale on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=hack/prose/total

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# All files that git has or will have, and that exist.
git ls-files -z --cached --others --exclude-standard --deduplicate -- '*.md' '*.go' ':!*testdata/*' ':!*zz_*' |
	while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done >"$tmp/files"
xargs -0 "${VALE:-vale}" --no-global --no-exit --output=line <"$tmp/files" >"$tmp/all"
# Other lines are errors in the configuration.
if grep -vE '^[^:]+:[0-9]+:[0-9]+:cairn\.' "$tmp/all" >&2; then exit 2; fi

# table counts by rule and by folder.
table() {
	local rules
	rules=$(cd hack/prose/cairn && printf '%s ' *.yml)
	awk -F: -v rules="${rules//.yml/} total" '
		function row(name, folder,  i, line) {
			line = sprintf("%-12s", name)
			for (i = 1; i <= columns; i++) line = line sprintf("%9s", folder == "" ? rule[i] : n[rule[i], folder] + 0)
			return line
		}
		{
			folder = $1; if (!sub("/.*", "", folder)) folder = "."
			sub("cairn[.]", "", $4)
			folders[folder]; n[$4, folder]++; n[$4, "all"]++; n["total", folder]++; n["total", "all"]++
		}
		END {
			columns = split(rules, rule, " ")
			print row("folder", "")
			for (folder in folders) print row(folder, folder) | "LC_ALL=C sort"
			close("LC_ALL=C sort")
			print row("total", "all")
		}' "$tmp/all"
}

# since prints the findings on lines that differ from a commit. The rule Sentence reports the first line of a sentence, so
# a change of the three lines after it counts too.
since() {
	{
		git -c core.quotePath=false diff --unified=0 --no-color --no-ext-diff --src-prefix=a/ --dst-prefix=b/ "$1" --
		git ls-files --others --exclude-standard | sed 's/^/new /'
	} | awk -F: '
		NR == FNR && /^new / { whole[substr($0, 5)]; next }
		NR == FNR && /^[+][+][+] b\// { file = substr($0, 7); next }
		NR == FNR && /^@@ / {
			split($0, part, " "); n = split(substr(part[3], 2), range, ",")
			last = range[1] + (n == 1 ? 1 : range[2])
			for (i = range[1]; i < last; i++) changed[file, i]
			next
		}
		NR == FNR { next }
		{
			last = $2 + ($4 == "cairn.Sentence" ? 3 : 0); hit = $1 in whole
			for (i = $2; i <= last; i++) if (($1, i) in changed) hit = 1
			if (hit) { message = $0; sub(/^[^:]+:[0-9]+:[0-9]+:/, "", message); sub(":", ": ", message); print $1 ":" $2 ": " message }
		}' - "$tmp/all" | sort -t: -k1,1 -k2,2n
}

total=$(wc -l <"$tmp/all" | tr -d ' ')
case ${1:-} in
"") table ;;
--ratchet)
	allowed=$(<"$limit") || exit 2
	if ((total > allowed)); then
		# The lines of this branch with those that are not committed, or else those of the last commit.
		base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
		if [[ $base == "$(git rev-parse HEAD)" && -z $(git status --porcelain) ]]; then base=HEAD~1; fi
		since "$base"
		echo "prose: $total findings, and $limit allows $allowed. Remove $((total - allowed)); above are those on lines that changed since ${base:0:12}." >&2
		exit 1
	fi
	if ((total < allowed)); then echo "$total" >"$limit"; fi
	echo "prose: $total findings, $allowed allowed"
	;;
*)
	git rev-parse --verify --quiet "$1^{commit}" >/dev/null || { echo "prose: unknown commit $1" >&2 && exit 2; }
	since "$1"
	;;
esac
