#!/usr/bin/env bash
# nccl_tests.sh over sources of two programs that stand for nccl-tests: it builds them, runs each in
# every way with the library in front, and takes nothing for right that did not say so.
set -uo pipefail
script=$(realpath "$1")
cd "$TEST_TMPDIR" || exit 1
mkdir sources
cat > sources/Makefile << 'MAKE'
all:
	mkdir -p $(BUILDDIR)
	cp good_perf other_perf $(BUILDDIR)
MAKE
cat > program << 'BASH'
#!/bin/bash
echo "$LD_PRELOAD $*"
echo "# Out of bounds values : 0 OK"
BASH
chmod +x program
cp program sources/good_perf
touch library.so # which the loader leaves out, and says so
check() { # WHAT RC LINE
  said=$(OUT=$TEST_TMPDIR/out bash "$script" sources library.so 2 2>&1)
  local code=$?
  [[ $code == "$2" && $said == *"$3" ]] && return
  echo "FAILED: $1: exit code $code: $said"
  exit 1
}
cp program sources/other_perf
check "all are right" 0 "10 right, 0 wrong"
grep -q "^$TEST_TMPDIR/library.so -c 1 -t 1 -g 2 " out/good_perf-one-thread.log || {
  echo "FAILED: $(cat out/good_perf-one-thread.log)"
  exit 1
}
sed 's/: 0 OK/: 3 FAILED/' program > sources/other_perf
check "wrong values" 1 "5 right, 5 wrong"
sed 's/^echo "#.*/exit 0/' program > sources/other_perf
check "nothing was compared" 1 "5 right, 5 wrong"
echo 'exit 7' >> program
cp program sources/other_perf
check "it ended with an error" 1 "5 right, 5 wrong"
rm sources/other_perf
check "it cannot be built" 1 "nccl-tests cannot be built"
