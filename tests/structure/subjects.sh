#!/usr/bin/env bash
# Whether subjects of commits are as CONTRIBUTING.md says: at most 65 characters, no full stop at the end.
# Run by ./test, as a test of bazel has no history.
#   tests/structure/subjects.sh          the commits after $since
#   tests/structure/subjects.sh --can    is there the history for that? Not in an archive or a shallow clone
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C.UTF-8  # characters, not bytes

since=85b5535224e51dddd6af5496338da96bd0ed3a18  # of 28 November 2026

# What is wrong with the lines "hash subject" of the input.
wrong_ones() {
  local hash subject
  while read -r hash subject; do
    if ((${#subject} > 65)); then echo "$hash: ${#subject} characters, at most 65: $subject"; fi
    if [[ $subject == *. ]]; then echo "$hash: a full stop at the end: $subject"; fi
  done
}

if [[ ${1:-} == --can ]]; then
  git merge-base --is-ancestor $since HEAD 2>/dev/null
  exit
fi
wrong=$(git log --no-merges --format='%h %s' $since..HEAD | wrong_ones)
if [[ $wrong ]]; then
  printf '%s\n' "$wrong"
  exit 1
fi
