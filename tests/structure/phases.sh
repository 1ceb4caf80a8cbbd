#!/usr/bin/env bash
# Whether the phases of ./test leave no test out. Run by ./test, as a test cannot ask bazel.
#   tests/structure/phases.sh FILE    one a line: the tests that some phase ran
# Wrong is a test that none ran, and one that tries less with sanitizers without the tag by which it runs
# without them, too (tools/sanitizers.bzl).
set -euo pipefail
cd "$(dirname "$0")/../.."

query() { bazel query "$1" 2>/dev/null | sort; }

# x_test.cc is the test x_test of its folder, whose macro looks for the dependency.
tests_that_ask() {
  find . -path './bazel-*' -prune -o -path ./build -prune -o \( -name '*.cc' -o -name '*.h' \) \
    -exec grep -lF '#include "ir/base/sanitized.h"' {} + | sed -E 's#^\./(.*)/([^/]*)\.[a-z]+$#//\1:\2#' | sort
}

all=$(query 'tests(//...) except attr(tags, manual, tests(//...))')
plain=$(query 'attr(tags, "\bplain\b", tests(//...))')
[[ $all && $plain ]] || { echo "bazel knows no tests"; exit 1; }
wrong=$(
  comm -23 - <(sort -u "$1") <<<"$all" | sed 's/$/: no phase of .\/test ran it/'
  comm -23 <(tests_that_ask) - <<<"$plain" |
    sed 's/$/ asks whether a sanitizer watches: it has to be a test that depends on \/\/ir\/base:sanitized/'
)
if [[ $wrong ]]; then
  printf '%s\n' "$wrong"
  exit 1
fi
