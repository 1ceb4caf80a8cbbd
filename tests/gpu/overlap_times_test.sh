#!/bin/sh
# overlap_times on the host device: every kind, results right, and the bits of the serial backend.
set -eu
"$1" --host --ranks 2 --type bf16 allgather_gemm:24,32,16 gemm_reducescatter:24,32,16 \
  gemm_allreduce:24,32,16 alltoall_gemm:24,32,16 > "$TEST_TMPDIR/log"
"$1" --host --ranks 3 --type e4m3 gemm_allreduce:25,48,16 >> "$TEST_TMPDIR/log"
if grep -E 'WRONG|OTHER BITS' "$TEST_TMPDIR/log"; then exit 1; fi
# A result that is off by more than it may be fails: here all are.
status=0
"$1" --host --ranks 2 --runs 1 --within 0 gemm_allreduce:24,32,16 > "$TEST_TMPDIR/off" || status=$?
test $status -eq 1 && grep -q 'WRONG by' "$TEST_TMPDIR/off" || { cat "$TEST_TMPDIR/off"; exit 1; }
for what in 'collective alone' 'GEMM alone' 'serial .* right' 'nccl .* is not there: NCCL needs GPUs'; do
  test "$(grep -c "^$what" "$TEST_TMPDIR/log")" -eq 5 || { cat "$TEST_TMPDIR/log"; exit 1; }
done
# Of 16 forms, those that have room.
test "$(grep -c "right, serial's bits" "$TEST_TMPDIR/log")" -gt 45
# What fails at all ranks at once ends the program with a word, and in no other way.
status=0
"$1" --host --ranks 4 allgather_gemm:1048576,1,1048576 2> "$TEST_TMPDIR/error" || status=$?
test $status -eq 1 && grep -q '^memory: ' "$TEST_TMPDIR/error" || { cat "$TEST_TMPDIR/error"; exit 1; }
