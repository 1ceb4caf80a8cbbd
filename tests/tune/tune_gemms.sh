#!/usr/bin/env bash
# mscclc tune of GEMMs that overlap, on the host device: a table of backends that jobs take.
#   tune_gemms.sh MSCCLC MSCCLC_LINKED_AT_RUN_TIME NCCL
set -euo pipefail
mscclc=$(realpath "$1")
dynamic=$(realpath "$2") nccl=$(realpath "$3")
# shellcheck source=tests/tune/checks.bash
source "$(dirname "$0")/checks.bash"
tune=("$mscclc" tune --device threads --repeats 1)
shapes=(--m '64,32' --k 24 --n 48)

expect_code 0 "${tune[@]}" --collective gemm_reducescatter,allgather_gemm "${shapes[@]}" --layer 48:16 -o tuned
for kind in gemm_reducescatter allgather_gemm; do
  for shape in 'm 32, k 24, n 48' 'm 64, k 24, n 48' 'm 32, k 48, n 16' 'm 64, k 48, n 16'; do
    grep -Eq "^$kind over 2 ranks, bf16, $shape, eager: .*; serial: [0-9.]+ us, 100 %; copy_engine, chunks 1, budget 1: " out ||
      fail "no line of $kind, $shape"
  done
done
grep -q '^2 ranks: runs on host, eager; NCCL was not timed: NCCL needs GPUs$' out || fail "nothing about the device"
grep -Eq '^[0-9]+ rows of tuned/overlap.json; jobs take them with MSCCLC_PLAN_PATH=tuned$' out || fail "nothing about the table"
for kind in gemm_reducescatter allgather_gemm; do
  grep -Eq "\"kind\": \"$kind\", \"mode\": \"eager\", \"ranks\": 2, \"dtype\": \"bf16\", \"rows\": \[(32|64), " tuned/overlap.json ||
    fail "no row of $kind"
done
if grep -q captured tuned/overlap.json; then fail "rows for graphs, which the host device has not"; fi

# Jobs take the row that was measured.
expect_code 0 "${tune[@]}" --collective alltoall_gemm --m 32 --k 24 --n 48 -o served
backend=$(sed -n 's/.*"backend": "\([a-z_]*\)".*/\1/p' served/overlap.json)
MSCCLC_PLAN_PATH=served expect_code 0 "$mscclc" select --collective alltoall_gemm --ranks 2 --m 32 --k 24 --n 48 --dtype bf16 --why
grep -q "^$backend.*measured for .*: 32 to 32 rows, 48 to 48 flops a byte.*served/overlap.json" out || { cat out; fail "no job takes the table"; }

# A folder that has a table stays as it is.
cp tuned/overlap.json before
expect_code 2 "${tune[@]}" --collective allgather_gemm "${shapes[@]}" -o tuned
grep -q "there must be no table yet, and 'tuned/overlap.json' is there" err || fail "a table is replaced"
cmp before tuned/overlap.json || fail "the table has changed"

# Other types, more ranks, more B, and NCCL in turn.
MSCCLC_NCCL=$nccl expect_code 0 "$dynamic" "${tune[@]:1}" --collective alltoall_gemm --ranks 2,4 --m 32 --layer 16:8,24 --dtype f32 -o beside
grep -q '; nccl: [0-9.]* us, [0-9]* %' out || fail "NCCL is not timed"
grep -q '"ranks": 4, "dtype": "f32"' beside/overlap.json || fail "no row of 4 ranks"
MSCCLC_NCCL=$nccl expect_code 0 "$dynamic" "${tune[@]:1}" --collective gemm_allreduce --m 30 --k 8 --n 8 --order ranks -o ordered
if grep -q '; nccl: ' out; then fail "NCCL is timed though it does not keep the order"; fi

# What ends its ranks is named, and the rest is timed by new ones. (This NCCL never has a communicator.)
FAKE_NCCL_STUCK=1 MSCCLC_NCCL=$nccl expect_code 3 "$dynamic" "${tune[@]:1}" --collective gemm_allreduce --m 32,64 --k 8 --n 8 -o hung
(($(grep -c '^  not timed: nccl: it hung or lost a rank: NCCL cannot make' out) == 2)) || { cat out; fail "what hung is not named"; }
grep -q '"kind": "gemm_allreduce"' hung/overlap.json || fail "what was timed is lost"
# Where nothing more can be timed, what was had is kept: 48 ranks need more descriptors.
(ulimit -n 40 && expect_code 3 "${tune[@]}" --collective gemm_allreduce --ranks 2,48 --m 96 --k 8 --n 8 -o kept)
grep -q '"ranks": 2, ' kept/overlap.json || fail "what was timed before an error is lost"

refused() {
  local wanted=$1
  shift
  expect_code 2 "${tune[@]}" "$@" -o x
  grep -q -e "$wanted" err || { cat err; fail "not '$wanted': $*"; }
}
refused 'm must be a multiple of the 2 ranks.*m = 63: pad it to 64' --collective gemm_reducescatter --m 63 --k 8 --n 8
refused 'it has allreduce and gemm_allreduce' --collective allreduce,gemm_allreduce "${shapes[@]}"
refused '--bytes is for collectives; of gemm_allreduce --m, --k' --collective gemm_allreduce "${shapes[@]}" --bytes 1K
refused '--layer is for .*, not for allreduce' --collective allreduce --layer 8:8
refused 'needs --m, and --k with --n, or --layer K:N' --collective gemm_allreduce --m 64
refused "--layer must be K:N, .*; it is '8:8;'" --collective gemm_allreduce --m 64 --layer '8:8;'
refused '--k and --n belong together' --collective gemm_allreduce --m 64 --k 8
refused 'it takes one B, and was given 2' --collective gemm_allreduce --m 64 --layer 8:8,8
refused 'out must be f32, f16 or bf16' --collective gemm_allreduce "${shapes[@]}" --dtype i32
refused "unknown collective 'gemm_red'" --collective gemm_red "${shapes[@]}"
[[ ! -e x ]] || fail "a folder in spite of an error"
echo fine
