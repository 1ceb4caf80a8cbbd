#!/bin/sh
# 'gpu_check adds' without GPUs: it adds where there are network devices, and says so where it has tried
# nothing.
set -eu

says() {  # text, variables...
  text=$1
  shift
  env "$@" tests/gpu/gpu_check adds --host >said || { cat said; exit 1; }
  grep -qF "$text" said || { cat said; echo "it does not say: $text"; exit 1; }
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
cd "$(mktemp -d -p "$TEST_TMPDIR")"
ln -s "$TEST_SRCDIR/$TEST_WORKSPACE"/* .
says "host memory: 5000 adds right" MSCCLC_IBV_SO=tests/fakes/verbs/libfake_verbs.so
says "adds by network devices: 1 right, 0 wrong, 0 not tried" \
  MSCCLC_IBV_SO=tests/fakes/verbs/libfake_verbs.so
says "host memory: nothing was tried: no lanes over verbs: libno_such.so: cannot open" \
  MSCCLC_IBV_SO=libno_such.so
says "adds by network devices: 0 right, 0 wrong, 1 not tried" MSCCLC_IBV_SO=libno_such.so
if MSCCLC_IB_HCA=^^fake0 tests/gpu/gpu_check adds --host >said; then
  echo "a wrong variable is no fault"
  exit 1
fi
grep -qF "MSCCLC_IB_HCA is '^^fake0'" said
