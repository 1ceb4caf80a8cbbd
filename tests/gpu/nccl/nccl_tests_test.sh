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
	for name in good other; do cp $$name $(BUILDDIR)/$${name}_perf; done
MAKE
cat > program << 'BASH'
#!/bin/bash
echo "$LD_PRELOAD $*"
echo "# Out of bounds values : 0 OK"
BASH
chmod +x program
cp program sources/good
touch library.so # which the loader leaves out, and says so
check() { # WHAT RC LINE
  said=$(OUT=$TEST_TMPDIR/out bash "$script" sources library.so 2 2>&1)
  local code=$?
  [[ $code == "$2" && $said == *"$3" ]] && return
  echo "FAILED: $1: exit code $code: $said"
  exit 1
}
cp program sources/other
check "all are right" 0 "14 right, 0 wrong, 0 left out"
grep -q "^$TEST_TMPDIR/library.so -c 1 -t 1 -g 2 " out/good_perf-one-thread.log || {
  echo "FAILED: $(cat out/good_perf-one-thread.log)"
  exit 1
}
# Programs that are built already; and none begins when there is no time for it.
check_built() { # WHAT RC LINE SECONDS_LEFT
  said=$(OUT=$TEST_TMPDIR/built SECONDS_LEFT=$4 bash "$script" out/build library.so 2 2>&1)
  local code=$?
  [[ $code == "$2" && $said == *"$3" ]] && return
  echo "FAILED: $1: exit code $code: $said"
  exit 1
}
check_built "built already" 0 "14 right, 0 wrong, 0 left out" ""
[[ ! -e built/make.log ]] || { echo "FAILED: built again"; exit 1; }
check_built "no time" 1 "0 right, 0 wrong, 14 left out" -1
sed 's/: 0 OK/: 3 FAILED/' program > sources/other
check "wrong values" 1 "7 right, 7 wrong, 0 left out"
sed 's/^echo "#.*/exit 0/' program > sources/other
check "nothing was compared" 1 "7 right, 7 wrong, 0 left out"
echo 'exit 7' >> program
cp program sources/other
check "it ended with an error" 1 "7 right, 7 wrong, 0 left out"
rm sources/other
check "it cannot be built" 1 "nccl-tests cannot be built"
