#!/usr/bin/env bash
# Whether the phases of ./test leave no test out. Run by ./test, as a test cannot ask bazel.
#   tests/structure/phases.sh FILE    one a line: the tests that some phase ran
# Wrong is a test that none ran, and one that tries less with sanitizers without the tag by which it runs
# without them, too (tools/sanitizers.bzl).
set -euo pipefail
cd "$(dirname "$0")/../.."

query() { bazel query "$1" 2>/dev/null | sort; }

# The tests of sources that ask, and those of their libraries of test cases.
tests_that_ask() {
  local sources
  sources=$(find . -path './bazel-*' -prune -o -path ./build -prune -o \( -name '*.cc' -o -name '*.h' \) \
    -exec grep -lF '#include "ir/support/sanitized.h"' {} + | sed -E 's#^\./(.*)/([^/]*)$#//\1:\2#')
  [[ $sources ]] || { echo "no source asks whether a sanitizer watches" >&2; return 1; }
  query "let asking = $(of_rules "set($sources)") in
    kind('_test rule', \$asking union $(of_rules "\$asking"))"
}

# The libraries and tests of the same folder that depend on these.
of_rules() { echo "kind('cc_(library|test) rule', same_pkg_direct_rdeps($1))"; }

all=$(query 'tests(//...) except attr(tags, manual, tests(//...))')
plain=$(query 'attr(tags, "\bplain\b", tests(//...))')
asking=$(tests_that_ask)
[[ $all && $plain ]] || { echo "bazel knows no tests"; exit 1; }
wrong=$(
  comm -23 - <(sort -u "$1") <<<"$all" | sed 's/$/: no phase of .\/test ran it/'
  comm -23 - /dev/fd/3 <<<"$asking" 3<<<"$plain" |
    sed 's/$/ asks whether a sanitizer watches: it has to be a test that depends on \/\/ir\/support:sanitized/'
)
if [[ $wrong ]]; then
  printf '%s\n' "$wrong"
  exit 1
fi
