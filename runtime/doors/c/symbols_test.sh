#!/bin/sh
# What libmscclc.so.0 exports and needs, against symbols.txt; and its size.
set -eu
export LC_ALL=C
library=$1
expected=$2
nm -D --defined-only "$library" | awk '{print $NF}' | sort > "$TEST_TMPDIR/symbols"
if ! diff "$expected" "$TEST_TMPDIR/symbols"; then
  echo "the symbols above differ: a new one is added to symbols.txt; an old one may not go"
  exit 1
fi
readelf -d "$library" > "$TEST_TMPDIR/dynamic"
if grep -E 'NEEDED.*(libcuda|libnccl|libstdc)' "$TEST_TMPDIR/dynamic"; then
  echo "the library must not need these"
  exit 1
fi
grep -q 'SONAME.*\[libmscclc.so.0\]' "$TEST_TMPDIR/dynamic"
bytes=$(stat -L -c %s "$library")
echo "$bytes bytes"
test "$bytes" -lt 15728640
